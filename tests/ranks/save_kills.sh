#!/usr/bin/env bash
# A rank is killed in each phase of a save, in all of them and on each rank in turn; every start has another strategy,
# and the run ends with the hash of one process.
#   save_kills.sh SOURCE-TREE BUILD-FOLDER MPI TIMES
# STRATEGIES has the names, PHASES those of phases, RANKS (3) the number of ranks; by `hybrid`, an even number is on two
# hosts. Every phase comes TIMES on each rank, by turns right before a call of it and right after it. With
# KILLS_DONE=FILE, what has passed is noted there, and is not done again.
export ANNEAL_BIN=$2/bin
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
tree=$1 build=$2 mpi=$3 times=$4 config=gpt-shard ranks=${RANKS:-3} every=5 last=60
strategies=(${STRATEGIES:-none optimizer gradients full})
phases=(${PHASES:-part sync hash manifest rename})
most=6 # kills in a run
export OMP_WAIT_POLICY=passive MPIRUN_SECONDS=120 OMPI_MCA_odls_base_sigkill_timeout=0
need_level avx512
launcher "$mpi" $ranks
python3 "$tree/tests/ranks/make_data.py" "$tree"
cp "$tree/tests/ranks/$config.yaml" .
expected=$(sed -n "s/^$config //p" "$tree/tests/ranks/hashes.txt")
[ -n "$expected" ] || fail "hashes.txt does not have $config"

# What a launcher starts: notes the number of its process. The rank that is to notice the moment has libraries before
# the system's.
cat >rank <<'R'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
echo $$ >process.$rank
[ "$rank" != "${ACTOR:-none}" ] || export LD_PRELOAD="$LIBRARY${LD_PRELOAD:+:$LD_PRELOAD}"
exec "$@"
R
chmod +x rank

# newest: the step of the newest checkpoint that has its name; 0: there is none
newest() { find run/checkpoints -maxdepth 1 -name 'step-*' 2>/dev/null | sed 's/.*step-0*\([0-9]*\)-.*/\1/' | sort -n | tail -n 1 | grep . || echo 0; }
# train RANKS: one start, with the next strategy and what the environment says is to happen; `code` is the launcher's
train() {
    starts=$((starts + 1)) two_hosts=()
    shard=${strategies[starts % ${#strategies[@]}]}
    [ "$shard" != hybrid ] || two_hosts "$build" "$mpi" "$1"
    echo "$shard" >>all
    code=0
    "$tree/tests/comm/mpirun.sh" "$mpi" "$1" "${two_hosts[@]}" "$work/rank" "${anneal[@]}" train $config.yaml --set run.dir=run --set ranks.threads=1 --set ranks.shard="$shard" --set "save.every=$every steps" >out 2>err || code=$?
}
# kill_in PHASE RANK before|after: one start that ends there, in the save of step `at`
kill_in() {
    local phase=$1 victim=$2 mode=$3 launch=$((launches + 1)) folder p
    folder=run/checkpoints/$(printf 'unfinished-%08d-%d' $at $launch)
    export LIBRARY=$build/lib/libinterpose.so ACTOR=$victim FAULT_FOLDER=$PWD FAULT_VICTIM=process.$victim FAULT_MODE=$mode
    case $phase in
    part) FAULT_AT="write 1 $folder/$(printf 'part-%05d.safetensors' "$victim")" ;;
    sync) FAULT_AT="fsync 1 $folder/$(printf 'part-%05d.safetensors' "$victim")" ;;
    hash) # rank 0 receives one of every other rank
        LIBRARY=$build/lib/libkill_hash_$mpi.so FAULT_AT=
        HASH_NTH=$((at / every - here / every)) HASH_MODE=$mode
        [ "$victim" != 0 ] || HASH_NTH=$((HASH_NTH * (ranks - 1) - RANDOM % (ranks - 1)))
        export HASH_NTH HASH_MODE
        ;;
    manifest) FAULT_AT="write 1 $folder/manifest.json" ACTOR=0 ;;
    rename) FAULT_AT="rename 1 $folder -> ${folder/unfinished/step}" ACTOR=0 ;;
    *) fail "no phase is called $phase" ;;
    esac
    export FAULT_AT
    rm -f process.*
    train $ranks
    unset LIBRARY ACTOR FAULT_FOLDER FAULT_VICTIM FAULT_MODE FAULT_AT HASH_NTH HASH_MODE
    launches=$launch
    for p in $(cat process.*); do
        until_true 20 is_gone "$p" || fail "$what: process $p is left"
    done
    [ "$(field run/outcome.json 'd["end"] == "done", d["generation"]')" = "False $launch" ] || fail "$what: nobody was killed: $(cat run/outcome.json)"
    # What there must be, and must not be: if another rank dies, rank 0 may come a little further. The best evaluation
    # is saved too, between other saves.
    now=$(newest)
    case $phase-$mode-$victim in
    rename-after-*) [ "$now" = $at ] || fail "$what: the newest checkpoint is that of step $now, and that of step $at had its name" ;;
    manifest-*-[!0] | rename-*-[!0]) [ "$now" -le $at ] || fail "$what: the newest checkpoint is that of step $now" ;;
    *) [ "$now" -lt $at ] || fail "$what: the newest checkpoint is that of step $now, whose save was not complete" ;;
    esac
    [ "$now" -ge "$here" ] || fail "$what: the newest checkpoint is that of step $now, and there was one of step $here"
}
is_gone() { ! kill -0 "$1" 2>/dev/null || grep -qs '^State:.*Z' "/proc/$1/status"; }

# finish: the run goes to its end, on another number of ranks
finish() {
    train $((RANDOM % 4 + 1))
    [ "$code" = 0 ] && [ -e run/summary.json ] || fail "after $did: the run ended with $code"
    hash=$(field run/summary.json 'd["state_hash"]')
    [ "$hash" = "$expected" ] || fail "after $did: state_hash $hash, and not $expected"
    [ -z "${KILLS_DONE:-}" ] || sed "s/^/$mpi /" undone >>"$KILLS_DONE"
    kills=$((kills + $(wc -l <undone)))
    begin
}
begin() {
    rm -rf run
    : >undone
    did='' launches=0 here=0 in_run=0
}

starts=0 kills=0 already=0
: >all
begin
for turn in $(seq "$times"); do
    for phase in "${phases[@]}"; do
        for ((victim = 0; victim < ranks; victim++)); do
            if [ -n "${KILLS_DONE:-}" ] && grep -qsx "$mpi $turn $phase $victim" "$KILLS_DONE"; then
                already=$((already + 1))
                continue
            fi
            here=$(newest)
            at=$((here / every * every + every * (1 + RANDOM % 2)))
            [ $at -lt $last ] && [ $in_run -lt $most ] || {
                finish
                at=$((every * (1 + RANDOM % 2)))
            }
            modes=(before after)
            mode=${modes[(turn + victim) % 2]} what="$mpi, rank $victim killed $mode: $phase of step $at, turn $turn"
            did+="${did:+, }$phase $mode on $victim"
            kill_in "$phase" "$victim" $mode
            in_run=$((in_run + 1))
            echo "$turn $phase $victim" >>undone
        done
    done
done
[ ! -s undone ] || finish
for shard in "${strategies[@]}"; do
    [ "$kills" -lt 15 ] || grep -qx "$shard" all || fail "no start had ranks.shard $shard"
done
echo "$((kills + already)) kills with $mpi in the phases ${phases[*]} ($already before), $times on each of $ranks ranks: every run has the hash of one process; starts: $(sort all | uniq -c | tr -s ' \n' ' ')"
