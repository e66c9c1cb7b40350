#!/bin/sh
# Install Debian packages without starting anything: no cluster is made, no service is started or left enabled.
# What is needed for that is put in place for the time of the installation only. Runs as root.
set -eu

policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/pyidem.conf
cleanup=true
trap 'eval "$cleanup"' EXIT
trap 'exit 1' HUP INT TERM

undo() { cleanup="$*; $cleanup"; }

if [ ! -e "$policy" ]; then
    undo "rm -f $policy"
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

for directory in /etc/postgresql-common "$(dirname "$cluster")"; do
    [ -d "$directory" ] || { mkdir "$directory"; undo "rmdir --ignore-fail-on-non-empty $directory"; }
done
undo "rm -f $cluster"
echo 'create_main_cluster = false' >"$cluster"

services='pgbouncer prometheus prometheus-postgres-exporter'
installed() { command -v "$1" >/dev/null; }
new=
for service in $services; do
    installed "$service" || new="$new $service"
done
export DEBIAN_FRONTEND=noninteractive
apt-get -q update || echo 'apt-get update failed: trying with the lists at hand' >&2
apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"
for service in $new; do
    if [ -e "/etc/init.d/$service" ]; then
        update-rc.d "$service" disable
    elif installed "$service"; then
        deb-systemd-helper disable "$service.service"
    fi
done
