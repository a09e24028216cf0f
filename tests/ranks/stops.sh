#!/usr/bin/env bash
# Stops and starts under launchers: a request to stop gives a checkpoint and exit code 75 although the launcher passes
# no signal on, and a rank that stops or dies while it starts is named and nothing is left behind.
#   stops.sh MPI SCENARIO TIMES [REPORT_AFTER [LATE]]
# SCENARIO: requests (TERM, INT, USR1 and `anneal stop`, of -n and of --supervise, TIMES each), before (the same before
# the first step), second (a second TERM ends all at once), stopped, killed (one of the ranks, at TIMES moments of the
# start), leader (the leader is killed at as many), bare (`anneal stop` under mpirun itself). The launcher is a script
# that starts the real one, ignores signals, and can stop or kill a rank so many milliseconds after it was started.
# REPORT_AFTER: ranks.report_after, in seconds; a rank is to be named LATE seconds after that: 5 is what we promise of a
# machine that is not overloaded; beside other tests, seconds say nothing about the code, so CI allows more. With
# STOPS_DONE=FILE, what has passed is noted there and not done again.
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
mpi=$1 scenario=$2 times=$3 report_after=${4:-10} late=${5:-5}
ranks=${RANKS:-3}
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
launcher "$mpi" $ranks
export STOPS_MARK=stops-$$-$RANDOM # which every process has that this script starts
real=$(command -v "mpirun.$mpi")
mkdir bin
cat >"bin/mpirun.$mpi" <<L
#!/usr/bin/env bash
trap '' USR1 TERM INT
words=()
for word; do
    case \$word in */anneal) words+=("$work/rank.sh") ;; esac
    words+=("\$word")
done
"$real" "\${words[@]}" &
wait \$!
L
# The rank itself, of whose start the moment is counted. The process that disturbs it says which it was.
cat >rank.sh <<'R'
#!/usr/bin/env bash
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
if [ "$rank" = "${VICTIM:-none}" ]; then
    self=$$
    { sleep "$MOMENT"; echo $self >"$PLACE/victim"; kill "-$SIGNAL" $self; } </dev/null >/dev/null 2>&1 &
fi
exec "$@"
R
chmod +x "bin/mpirun.$mpi" rank.sh
export PLACE=$work

# marked: processes that this script has started, itself and its own children left out
marked() {
    local p
    for p in $(grep -lzsx "STOPS_MARK=$STOPS_MARK" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3); do
        [ "$p" != $$ ] && [ "$(awk '{ print $4 }' "/proc/$p/stat" 2>/dev/null)" != $$ ] && grep -qs '^State:.*[^Z] (' "/proc/$p/status" && echo "$p"
    done
    return 0
}
nothing_is_left() { [ -z "$(marked)" ]; }
at_end() {
    local all
    all=$(marked)
    [ -z "$all" ] || kill -KILL $all 2>/dev/null || true
}
done_already() { [ -n "${STOPS_DONE:-}" ] && grep -qsxF "$mpi $scenario $*" "$STOPS_DONE"; }
note_done() { [ -z "${STOPS_DONE:-}" ] || echo "$mpi $scenario $*" >>"$STOPS_DONE"; }

python3 -c "
import struct
open('tokens.bin', 'wb').write(b''.join(struct.pack('<H', i * i % 61) for i in range(40000)))"
# A step takes a tenth of a second or more, so that steps can be counted.
cat >small.yaml <<Y
run:   {dir: run, steps: 1000000, seed: 3}
model: {type: gpt2, layers: 1, heads: 2, width: 64, context: 64, vocabulary: 64}
data:  {train: {type: tokens, path: tokens.bin, format: u16}, threads: 1}
batch: {global: 512, leaves: 4}
log:   {every: 1 steps}
save:  {every: off}
ranks: {report_after: ${report_after}s}
Y
# start WORD...: a run in the background, in a folder of its own
start() {
    rm -rf run victim
    PATH=$work/bin:$PATH "${anneal[@]}" train small.yaml -n $ranks --mpi "$mpi" "$@" >out 2>err &
    process=$!
}
steps() { grep -s '"loss"' run/metrics.jsonl | wc -l; }
trains() { [ "$(steps)" -ge 1 ]; }
is_over() { ! grep -qs '^State:.*[^Z] (' "/proc/$process/status"; }
ends() {
    code=0
    until_true 120 is_over || fail "it does not end"
    wait "$process" || code=$?
    process=
    [ -z "${stopper:-}" ] || wait "$stopper" || fail "anneal stop: $?: $(cat stop.err)"
    stopper=
}
# ask KIND: the request is made, and $before is the number of steps until then
ask() {
    stopper=
    if [ "$1" = stop ]; then
        "${anneal[@]}" stop run >stop.out 2>stop.err &
        stopper=$!
        until_true 10 grep -qsx stop run/launches/1 || fail "anneal stop leaves no request"
        before=$(($(steps) + 3)) # the run looks for it five times a second, and here a step may take less than a tenth
    else
        before=$(steps)
        kill "-$1" "$process"
    fi
}
# is_stopped MOST: as a run that was asked to stop is, after so many steps at most
is_stopped() {
    [ "$code" = 75 ] || fail "$kind $way: exit code $code"
    [ "$(field run/outcome.json 'd["end"]')" = 'stopped on request' ] || fail "$kind $way: outcome.json"
    step=$(field run/outcome.json 'd["step"]')
    [ "$step" -le "$1" ] || fail "$kind $way: asked before step $1, it stopped after step $step"
    [ -e "run/checkpoints/step-$(printf %08d "$step")-1" ] || fail "$kind $way: no checkpoint of step $step"
    until_true 60 nothing_is_left || fail "$kind $way: processes are left: $(marked)"
}

# One step may end while this script looks; one is under way, and all ranks agree in the next.
requests() {
    local i
    for i in $(seq "$times"); do
        for way in '' --supervise; do
            for kind in TERM INT USR1 stop; do
                ! done_already "$i $kind $way" || continue
                start $way
                until_true 60 trains || fail "it does not train"
                ask $kind
                ends
                is_stopped $((before + 3))
                note_done "$i $kind $way"
            done
        done
    done
}
before() {
    local i
    for i in $(seq "$times"); do
        for way in '' --supervise; do
            for kind in TERM INT USR1; do
                ! done_already "$i $kind $way" || continue
                start $way
                until_true 60 listens || fail "it does not start"
                sleep "0.$((RANDOM % 4))"
                kill "-$kind" "$process"
                ends
                is_stopped 3
                note_done "$i $kind $way"
            done
        done
    done
}
# Its signals are its own from the moment that it starts its launcher.
listens() { [ -n "$(descendants "$process")" ]; }
second() {
    local i
    for i in $(seq "$times"); do
        ! done_already "$i" || continue
        start
        until_true 60 trains || fail "it does not train"
        kill -TERM "$process"
        until_true 10 grep -q 'asked to stop' err || fail "the first request"
        kill -TERM "$process" 2>/dev/null || true
        ends
        [ "$code" = 143 ] || [ "$code" = 75 ] || fail "a second TERM: exit code $code" # 75: the checkpoint came first
        until_true 60 nothing_is_left || fail "a second TERM: processes are left: $(marked)"
        note_done "$i"
    done
}

# named RANK: the leader, a rank or the launcher has said who it was
named() { grep -qE "rank $1( \(process [0-9]+[^)]*\))?[ ,:].*(has not|have not|not answer|makes no progress|make no progress|has died|have died)" err; }
# disturb SIGNAL: a rank, at moments over the whole start
slowest=0
disturb() {
    local i began took
    for i in $(seq "$times"); do
        ! done_already "$i" || continue
        way=$([ $((i % 2)) = 0 ] || echo --supervise --restarts 0)
        export VICTIM=$((i % ranks)) SIGNAL=$1
        MOMENT=$(awk "BEGIN { print ($i - 1) * ${SPAN:-1.0} / $times }")
        export MOMENT
        start $way --set "ranks.timeout=$((report_after + 2))s"
        until_true 60 test -s victim || fail "rank $VICTIM was not disturbed"
        began=$(milliseconds)
        until_true $((report_after + late + 5)) named "$VICTIM" || fail "rank $VICTIM, ${1} after $MOMENT s, is not named"
        took=$(($(milliseconds) - began))
        [ "$took" -le $(((report_after + late) * 1000)) ] || fail "rank $VICTIM, ${1} after $MOMENT s, is named after $took ms"
        [ "$took" -le $slowest ] || slowest=$took
        ends
        [ "$code" != 0 ] && [ "$code" != 75 ] || fail "rank $VICTIM, ${1} after $MOMENT s: exit code $code"
        until_true 60 nothing_is_left || fail "rank $VICTIM, ${1} after $MOMENT s: processes are left: $(marked)"
        ! grep -q 'while ""' err || fail "rank $VICTIM, ${1} after $MOMENT s: it does not say what the rank was doing"
        note_done "$i"
    done
    unset VICTIM
}
stopped() { disturb STOP; }
killed() { disturb KILL; }
leader() {
    local i
    for i in $(seq "$times"); do
        ! done_already "$i" || continue
        start $([ $((i % 2)) = 0 ] || echo --supervise)
        sleep "$(awk "BEGIN { print ($i - 1) * ${SPAN:-1.5} / $times }")"
        kill -KILL "$process"
        ends
        until_true 60 nothing_is_left || fail "the leader killed, moment $i: processes are left: $(marked)"
        note_done "$i"
    done
}
bare() {
    local i kind=stop way=bare
    for i in $(seq "$times"); do
        ! done_already "$i" || continue
        rm -rf run
        "${mpirun[@]}" "${anneal[@]}" train small.yaml >out 2>err &
        process=$!
        until_true 60 trains || fail "it does not train"
        ask stop
        ends
        [ "$code" = 0 ] || fail "mpirun ended with $code" # a launcher takes any other code for a failure
        code=75
        is_stopped $((before + 3))
        grep -qF "saved as checkpoints/step-$(printf %08d "$step")-1" stop.out || fail "anneal stop names no checkpoint"
        note_done "$i"
    done
}

"$scenario"
took=
case $scenario in stopped | killed) took="; named within $slowest ms" ;; esac
echo "$scenario with $mpi, $times times: passed$took"
