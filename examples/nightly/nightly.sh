#!/bin/sh
# De-identify tonight's load: nightly.sh DATABASE FOLDER
#
#     MAILTO=you@example.org
#     PATH=/opt/sqldeid/bin:/usr/bin:/bin
#     17 3 * * *  /srv/release/nightly.sh postgresql://deid@db.example.org/hospital /srv/release
#
# DATABASE is a file, or the URL of a Postgres, without its password: that stands in ~/.pgpass of the user whose cron
# this is (db.example.org:5432:hospital:deid:PASSWORD, mode 600). FOLDER holds job.toml and the key. The first run
# searches and keeps its result as policy.json; each later one applies that. cron mails what is printed to MAILTO.
set -eu
case $1 in
*://*) database=$1 ;;
*) database=$(realpath "$1") ;;
esac
folder=$2
cd "$folder"
umask 077
exec 9>lock
flock -n 9 || { echo "code 1: another run is at work here, or flock is missing; nothing was done" >&2; exit 1; }
rm -f tonight.json # so that what is there afterwards is tonight's

if [ -e policy.json ]; then set -- --policy policy.json; else set --; fi
code=0
sqldeid anonymize "$database" --job job.toml "$@" --ledger ledger.duckdb --key-file key --replace \
    --json tonight.json --quiet || code=$?

case $code in
0)
    if [ ! -e policy.json ]; then
        cp tonight.json policy.new
        mv policy.new policy.json
    fi
    if grep -q '"held_back_share": \(1\.0,*$\|0\.0[5-9]\|0\.[1-9]\)' tonight.json; then
        echo "released, but many rows are held back: see the warnings in tonight.json" >&2
    fi
    ;;
1) echo "code 1: a lock, the disk, a right or the server, see above; the next night tries again" >&2 ;;
2 | 3) echo "code $code: the last release stays until job.toml or the source is mended, see above" >&2 ;;
4) echo "code 4: the last release stays; where the data has changed for good, search anew: remove policy.json" >&2 ;;
*) echo "code $code: no release tonight, see above" >&2 ;;
esac
exit "$code"
