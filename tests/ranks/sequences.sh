#!/usr/bin/env bash
# Runs that move: each is stopped at random steps and goes on from its checkpoint with another number of ranks and
# threads, another MPI, strategy and number of writers, and ends with the hash of one process.
#   sequences.sh SOURCE-TREE BUILD-FOLDER COUNT [SEED]
# STRATEGIES="none optimizer" has the names to choose from. A sequence is chosen by SEED and its number, so a failure
# can be repeated but for the moment of a stop. With SEQUENCES_DONE=FILE, what has passed is noted there and not done
# again.
export ANNEAL_BIN=$2/bin
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
tree=$1 build=$2 count=$3 seed=${4:-1} config=gpt-shard
strategies=(${STRATEGIES:-none optimizer})
last_step=60
export OMP_WAIT_POLICY=passive
need_level avx512
libraries=()
for mpi in openmpi mpich; do
    ! command -v "mpirun.$mpi" >/dev/null || [ ! -e "$build/lib/libtwo_hosts_$mpi.so" ] || libraries+=("$mpi")
done
[ ${#libraries[@]} -gt 0 ] || {
    echo "SKIPPED: there is no MPI"
    exit 77
}
at_end() {
    local all
    [ -n "$process" ] || return 0
    all=$(descendants "$process")
    kill -KILL $process $all 2>/dev/null || true
}
ln -s "$tree/examples" examples
cp "$tree/tests/ranks/$config.yaml" .
python3 "$tree/tests/ranks/make_data.py" "$tree"
expected=$(sed -n "s/^$config //p" "$tree/tests/ranks/hashes.txt")
[ -n "$expected" ] || fail "hashes.txt does not have $config"

# pick WORD...: one of them, in `picked` (a subshell would have random numbers of its own)
pick() { shift $((RANDOM % $#)) && picked=$1; }
choose_start() {
    pick 1 2 && threads=$picked
    pick auto 1 2 3 8 && writers=$picked
    pick "${strategies[@]}" && shard=$picked
    pick 1 2 3 4 5 6 7 8 && ranks=$picked
    pick "${libraries[@]}" && mpi=$picked
    mpirun=()
    [ $shard != hybrid ] || ranks=$((ranks + ranks % 2))
    [ $ranks = 1 ] || launcher "$mpi" $ranks
    [ $shard != hybrid ] || { two_hosts "$build" "$mpi" $ranks && mpirun+=("${two_hosts[@]}"); }
    [ $ranks != 1 ] || mpi=alone
    start="$mpi-$ranks×$threads-$shard-$writers"
}
# train STOP: until it has made that many steps, or to the end; `reached` is the last step
train() {
    local line
    "${mpirun[@]}" "${anneal[@]}" train $config.yaml --set run.dir=run --set "log.every=1 steps" --set ranks.threads=$threads --set ranks.shard=$shard --set save.writers=$writers >lines 2>err &
    process=$!
    exec 3<lines
    : >out
    while read -r -t 120 line <&3; do
        echo "$line" >>out
        [[ $line =~ ^step\ +([0-9]+)/ ]] || continue
        [ "${BASH_REMATCH[1]}" -lt "$1" ] || {
            kill -USR1 $process 2>/dev/null || true # it may have ended by itself
            break
        }
    done
    timeout 120 cat <&3 >>out || fail "sequence $number of seed $seed ($did): it does not end"
    exec 3<&-
    wait $process || true # launchers do not pass exit codes on: the folder says how it ended
    process=
    how=nothing reached=0
    [ ! -e run/outcome.json ] || read -r reached how < <(field run/outcome.json 'd["step"], d["end"]')
}

mkfifo lines
starts=0 stops=0 already=0
: >all
for number in $(seq "$count"); do
    if [ -n "${SEQUENCES_DONE:-}" ] && grep -qsxF "$seed $number" "$SEQUENCES_DONE"; then
        already=$((already + 1))
        continue
    fi
    RANDOM=$((seed * 1000 + number))
    rm -rf run
    did='' at=0
    for part in $(seq $((RANDOM % 3 + 2)) -1 1); do
        choose_start
        stop=$((last_step + 1))
        [ "$part" = 1 ] || [ "$at" -ge $last_step ] || stop=$((at + 1 + RANDOM % (last_step - at))) # it may make a few steps more
        did+="${did:+, }$at: $start"
        rm -f run/outcome.json
        train $stop
        starts=$((starts + 1))
        echo "$shard" >>all
        [ "$how" != done ] || break
        [ "$how" = "stopped on request" ] && [ "$part" != 1 ] || fail "sequence $number of seed $seed ($did): it ended with '$how'"
        stops=$((stops + 1)) at=$reached
    done
    [ "$how" = done ] || fail "sequence $number of seed $seed ($did): it has not finished"
    hash=$(field run/summary.json 'd["state_hash"]')
    [ "$hash" = "$expected" ] || fail "sequence $number of seed $seed ($did): state_hash $hash, and not $expected"
    echo "$number: $did"
    [ -z "${SEQUENCES_DONE:-}" ] || echo "$seed $number" >>"$SEQUENCES_DONE"
done
[ "$number" = "$count" ] && [ $stops -ge $(((count - already) / 2)) ] || fail "$starts starts, and only $stops stops"
echo "$count sequences of seed $seed ($already done before): the hash of one process; $starts starts, $stops stops; $(sort all | uniq -c | tr -s ' \n' ' ')"
