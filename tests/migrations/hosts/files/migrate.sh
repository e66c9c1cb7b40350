#!/bin/sh
# Runs each file of migrations/ once, in the order of their numbers, as tools for plain SQL files do.
set -eu
psql -X -q -c 'create table if not exists migrated (file text primary key)' 2>/dev/null
for file in $(ls migrations | sort -V); do
    [ -z "$(psql -X -q -A -t -c "select 1 from migrated where file = '$file'")" ] || continue
    psql -X -q -o /dev/null -v ON_ERROR_STOP=1 -f "migrations/$file"
    psql -X -q -c "insert into migrated values ('$file')"
    echo "migrated $file"
done
