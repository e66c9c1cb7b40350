"""See to it that everything the tests need is installed: ``python -m tests.support.provision``.

Installs Debian packages where it may (as root, or with a sudo that asks for no password); otherwise it names what is
missing and the command that installs it. Where nothing is missing it does nothing.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.server import find_server, missing_parts

_INSTALLER = Path(__file__).with_name("apt_install.sh")


def main() -> None:
    """Install what is missing, or exit with a message that says what to do."""
    server = find_server()
    missing = missing_parts(server)
    if not missing:
        return
    if named := os.environ.get("PYIDEM_PG_BINDIR"):
        sys.exit(_message(missing, f"PYIDEM_PG_BINDIR={named} was searched."))
    if shutil.which("apt-get") is None or not (server is None or server.packaged):
        sys.exit(_message(missing, "Install them, or name a server that has them with PYIDEM_PG_BINDIR."))

    major = server.major if server else _debian_major()
    packages = sorted({package.replace("VERSION", str(major)) for package in missing.values()})
    if problem := install(packages):
        sys.exit(_message(missing, problem))
    if still := missing_parts(find_server()):
        sys.exit(_message(still, "They are missing although their packages were installed."))


def install(packages: Sequence[str]) -> str | None:
    """Install Debian packages; return what to do where that is not allowed or fails."""
    as_root = _as_root()
    if as_root is None:
        return f"Run: sudo apt-get install --no-install-recommends {shlex.join(packages)}"
    print(f"Installing for the tests: {' '.join(packages)}", flush=True)
    if subprocess.run([*as_root, "sh", _INSTALLER, *packages], check=False).returncode != 0:
        return "apt-get could not install them; its messages are above."
    return None


def _message(missing: dict[str, str], advice: str) -> str:
    lines = [f"  {part} (Debian package {package})" for part, package in missing.items()]
    return "\n".join(["The tests need what this system lacks:", *lines, advice])


def _as_root() -> list[str] | None:
    """Return the prefix that makes a command run as root, or None where that is not allowed."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], check=False, capture_output=True).returncode == 0:
        return [sudo, "-n"]
    return None


def _debian_major() -> int:
    """Return the major version that this Debian release has, named by its package `postgresql`."""
    shown = subprocess.run(["apt-cache", "depends", "postgresql"], check=False, capture_output=True, text=True).stdout
    version = re.search(r"Depends: postgresql-(\d+)", shown)
    if version is None:
        sys.exit("apt knows no package postgresql. Run: apt-get update")
    return int(version[1])


if __name__ == "__main__":
    main()
