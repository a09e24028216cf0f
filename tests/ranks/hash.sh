#!/usr/bin/env bash
# One state_hash for each run of this folder, however many processes and threads take it, and whatever they divide.
#   hash.sh SOURCE-TREE [--threads N] [--shard STRATEGY] [--micro SAMPLES] [--runs "NAME..."] [--isa LEVEL] [--record] [LAUNCHER...]
# LAUNCHER is put before the command: mpirun.openmpi -n 3. hashes.txt has the hashes of one process without one;
# --record writes them. Each run has the level of instructions that its config names, and is left out where there is no
# such level. With --isa, all runs have LEVEL, and their hashes are in hashes-LEVEL.txt. With --micro, a micro-batch has
# room for several leaves.
source "$(dirname "$0")/../cli/preamble.sh"
tree=$1 here=$1/tests/ranks threads=1 shard=none names= isa= record= micro=
shift
while [ $# -gt 0 ]; do
    case $1 in
    --threads) threads=$2 && shift 2 ;;
    --shard) shard=$2 && shift 2 ;;
    --runs) names=$2 && shift 2 ;;
    --micro) micro=$2 && shift 2 ;;
    --isa) isa=$2 && shift 2 ;;
    --record) record=1 && shift ;;
    *) break ;;
    esac
done
recorded=$here/hashes${isa:+-$isa}.txt
ln -s "$tree/examples" examples
cp "$here"/*.yaml .
python3 "$here/make_data.py" "$tree"
# With more room, they would have leaves of one, and other bits.
[ -z "$micro" ] || rm -f gpt-f32.yaml mlp.yaml

: >hashes.txt
missing=
for config in *.yaml; do
    name=${config%.yaml}
    case " ${names:-$name} " in *" $name "*) ;; *) continue ;; esac
    level=${isa:-$(sed -nE 's/^run:.* isa: ([a-z0-9]+).*/\1/p' "$config")}
    has_level "$level" || { missing=$level && continue; }
    "$@" "${anneal[@]}" train "$config" --set run.dir="$name" --set run.isa="$level" --set ranks.threads="$threads" --set ranks.shard="$shard" ${micro:+--set batch.micro="$micro"} >out 2>err || fail "$name: it ended with $?"
    printf '%s %s\n' "$name" "$(field "$name/summary.json" 'd["state_hash"]')" >>hashes.txt
done
if [ ! -s hashes.txt ]; then
    [ -n "$missing" ] || fail "no run is called '$names'"
    need_level "$missing"
fi
if [ -n "$record" ]; then
    [ -z "$names$missing" ] && [ "$shard" = none ] && [ $# = 0 ] || fail "--record is for all runs, on one process"
    cp hashes.txt "$recorded"
else
    sed 's/ .*//' hashes.txt | while read -r name; do grep "^$name " "$recorded" || echo "$name is not recorded"; done >expected.txt
    diff expected.txt hashes.txt || fail "other hashes (> is what came, with $threads threads, ranks.shard $shard and '$*')"
    [ -z "$missing" ] || echo "the runs of instruction level $missing were left out"
fi
