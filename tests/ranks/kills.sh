#!/usr/bin/env bash
# Ranks die, and so does their launcher: a supervised run goes on with fewer ranks and again with all, and ends
# bit-identical to one process that nobody disturbed.
#   kills.sh SOURCE-TREE MPI KILLS
# Every start takes one of the strategies of STRATEGIES="none", at random among those that the fewest starts had; by
# `hybrid`, an even number of ranks is on two hosts. Runs of gpt-bf16.yaml: by turns one with more steps, which most
# kills interrupt in its steps, evaluations and saves, and the run of hashes.txt, which is so short that they interrupt
# its start and its end. With KILLS_DONE=FILE, the runs that have passed are noted there with their kills, and are not
# done again.
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
tree=$1 mpi=$2 wanted=$3
ranks=4 config=gpt-bf16 steps=3000
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
need_level avx512
launcher "$mpi" $ranks
# The supervisor's launcher gets a word more: the strategy, the same for all ranks of a start.
mkdir bin
cat >"bin/mpirun.$mpi" <<L
#!/usr/bin/env bash
shard=\$(for s in ${STRATEGIES:-none}; do echo "\$(grep -cx \$s "$PWD/starts") \$RANDOM \$s"; done | sort -n -k1,1 -k2,2 | sed -n '1s/.* //p')
echo \$shard >>"$PWD/starts"
source "$tree/tests/ranks/launch.sh"
two_hosts=() last=
for word; do
    shift
    [ "\$last" != -n ] || [ \$shard != hybrid ] || two_hosts "${ANNEAL_BIN%/bin}" $mpi \$word
    case \$word in */anneal) set -- "\$@" "\${two_hosts[@]}" ;; esac
    set -- "\$@" "\$word"
    [ "\$word" != train ] || set -- "\$@" --set ranks.shard=\$shard
    last=\$word
done
exec "$(command -v "mpirun.$mpi")" "\$@"
L
chmod +x "bin/mpirun.$mpi"
: >starts
at_end() {
    local all
    [ -n "$process" ] || return 0
    all=$(descendants "$process")
    kill -KILL $process $all 2>/dev/null || true
}

ln -s "$tree/examples" examples
cp "$tree/tests/ranks/$config.yaml" .
python3 "$tree/tests/ranks/make_data.py" "$tree"
"${anneal[@]}" train $config.yaml --set run.dir=alone --set run.steps=$steps >out 2>err || fail "a run that nobody disturbs: $?"
long_hash=$(field alone/summary.json 'd["state_hash"]')
short_hash=$(sed -n "s/^$config //p" "$tree/tests/ranks/hashes.txt")
[ "$long_hash" != "$short_hash" ] || fail "two runs of different lengths have one hash"

# What there is to kill: ranks, and the launcher, which is the supervisor's child.
victims() {
    local p name
    for p in $(descendants "$process"); do
        name=$(cat "/proc/$p/comm" 2>/dev/null) || continue
        case $name in anneal | mpirun* | mpiexec* | orterun) echo "$p $name" ;; esac
    done
}
has_victims() { [ "$(victims | wc -l)" -ge 2 ]; }
is_gone() { ! kill -0 "$process" 2>/dev/null; }
# Whoever waits on for a run that has ended starts so many processes that one gets the number of the run, whose exit
# code is then lost.
has_victims_or_is_gone() { has_victims || is_gone; }

kills=0 runs=0 launchers=0
: >restarts
[ -z "${KILLS_DONE:-}" ] || while read -r _ n; do kills=$((kills + n)); done < <(grep -s "^$mpi " "$KILLS_DONE")
before=$kills
while [ "$kills" -lt "$wanted" ]; do
    runs=$((runs + 1))
    here=0
    most=12 settings=(--set "run.steps=$steps" --set "save.every=100 steps") expected=$long_hash
    [ $((runs % 2)) = 1 ] || most=3 settings=(--set "save.every=2 steps") expected=$short_hash
    PATH=$PWD/bin:$PATH "${anneal[@]}" train $config.yaml --supervise -n $ranks --min-ranks 1 --mpi "$mpi" --restarts 10000 --set run.dir=run-$runs "${settings[@]}" >out 2>err &
    process=$!
    while [ $((kills + here)) -lt "$wanted" ] && [ $here -lt $most ]; do
        until_true 120 has_victims_or_is_gone || break
        sleep "$((RANDOM % 3)).$((RANDOM % 10))"
        is_gone && break
        victim=$(victims | shuf -n 1)
        [ -n "$victim" ] || continue
        kill -KILL "${victim% *}" 2>/dev/null || continue
        here=$((here + 1))
        case $victim in *anneal) ;; *) launchers=$((launchers + 1)) ;; esac
    done
    code=0
    wait $process || code=$?
    left=$(descendants $process)
    process=
    [ "$code" = 0 ] || fail "run $runs after $here kills: exit code $code"
    [ -z "$left" ] || fail "processes are left: $left"
    hash=$(field run-$runs/summary.json 'd["state_hash"]')
    [ "$hash" = "$expected" ] || fail "run $runs after $here kills has state_hash $hash, and not $expected"
    # A start that fails by itself is restarted too, with another strategy: the hash alone does not show it.
    ! grep -E 'has other weights|must have the same|must make the same calls' err || fail "run $runs: a start failed that nobody had disturbed"
    [ "$(grep -c 'restarting it' err)" -le $here ] || fail "run $runs: more restarts than its $here kills"
    grep -oE 'restarting it with [1-4] of 4 ranks' err >>restarts || true
    kills=$((kills + here))
    [ -z "${KILLS_DONE:-}" ] || echo "$mpi $here" >>"$KILLS_DONE"
    rm -rf run-$runs
done
# A kill after the last step restarts nothing; the others do.
again=$(wc -l <restarts)
[ $((2 * again)) -ge $((kills - before)) ] || fail "$((kills - before)) kills caused $again restarts"
echo "$kills kills with $mpi ($runs runs here, $launchers kills of the launcher): every run has the hash of the run that nobody disturbed"
for shard in ${STRATEGIES:-none}; do
    grep -qx "$shard" starts || [ "$kills" -lt 20 ] || fail "no start had ranks.shard $shard"
done
echo "starts: $(sort starts | uniq -c | tr -s ' \n' ' ')"
echo "restarts: $(sort restarts | uniq -c | sed 's/ *\([0-9]*\) restarting it with \(.\) of 4 ranks/\1 with \2 ranks,/' | tr '\n' ' ')"
