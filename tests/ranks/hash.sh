#!/usr/bin/env bash
# One state_hash for each run of this folder, however many processes and threads take it.
#   hash.sh SOURCE-TREE [--threads N] [--record] [LAUNCHER...]
# LAUNCHER is put before the command: mpirun.openmpi -n 3. hashes.txt has the hashes of one process without one; --record writes them.
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 here=$1/tests/ranks threads=1 record=
shift
while [ $# -gt 0 ]; do
    case $1 in
    --threads) threads=$2 && shift 2 ;;
    --record) record=1 && shift ;;
    *) break ;;
    esac
done
grep -qw avx512f /proc/cpuinfo || {
    echo "the hashes are those of instruction level avx512, which this machine does not have"
    exit 77
}
ln -s "$tree/examples" examples
cp "$here"/*.yaml .
python3 "$here/make_data.py" "$tree"

for config in *.yaml; do
    name=${config%.yaml}
    "$@" "${anneal[@]}" train "$config" --set run.dir="$name" --set ranks.threads="$threads" >out 2>err || fail "$name: it ended with $?"
    printf '%s %s\n' "$name" "$(field "$name/summary.json" 'd["state_hash"]')"
done >hashes.txt
if [ -n "$record" ]; then
    cp hashes.txt "$here/hashes.txt"
else
    diff "$here/hashes.txt" hashes.txt || fail "other hashes (> is what came, with $threads threads and '$*')"
fi
