#!/bin/sh
# De-identify tonight's load: nightly.sh DATABASE FOLDER
#
#     17 3 * * *  /srv/release/nightly.sh /srv/hospital.duckdb /srv/release || mail -s 'no release' you < /dev/null
#
# FOLDER holds job.toml and the key (openssl rand -hex 32 > key; chmod 600 key). The first run searches and keeps its
# result as policy.json; each later one applies that. To search anew, remove policy.json, never the ledger.
set -eu
database=$(realpath "$1")
folder=$2
cd "$folder"
umask 077
rm -f tonight.json # so that what is there afterwards is tonight's

if [ -e policy.json ]; then set -- --policy policy.json; else set --; fi
code=0
sqldeid anonymize "$database" --job job.toml "$@" --ledger ledger.duckdb --key-file key --replace \
    --json tonight.json --quiet || code=$?

case $code in
0) [ -e policy.json ] || cp tonight.json policy.json ;;
4) echo "the criteria no longer hold, or every row is held back: the last release stays; see $folder/tonight.json" >&2 ;;
*) echo "no release tonight (code $code): the last one stays" >&2 ;;
esac
exit "$code"
