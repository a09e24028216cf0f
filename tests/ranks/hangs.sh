#!/usr/bin/env bash
# Hangs are explained: the rank that the others wait for is named, with its place, in time; and a slow one is not.
#   hangs.sh MPI SCENARIO TIMES REPORT_AFTER LATE PROGRAM
# SCENARIO: stop (SIGSTOP of a random one of 4 ranks), branch (rank 0 alone makes a collective call), cut (a link
# between two network namespaces), disk (rank 0 can write nothing any more), slow (one rank has a fifth of its time,
# TIMES is in seconds: no report may come). PROGRAM: that of watched.c; that of branched.c is beside it. A report is due
# LATE seconds after REPORT_AFTER. 5 is what we promise of a machine that is not overloaded; beside other tests, seconds
# say nothing about the code, so CI allows more. With HANGS_DONE=FILE, what has passed is noted there and not done
# again.
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
mpi=$1 scenario=$2 times=$3 report_after=$4 late=$5 program=$6
ranks=4
limit=$(((report_after + late) * 1000))
slowest=0
export OMP_NUM_THREADS=1

done_already() { [ -n "${HANGS_DONE:-}" ] && grep -qsxF "$mpi $scenario $1" "$HANGS_DONE"; }
note_done() {
    [ -z "${HANGS_DONE:-}" ] || echo "$mpi $scenario $1" >>"$HANGS_DONE"
}
# start WORD...: the job, in the background; returns when it has made steps
start() {
    : >out && : >err
    last=
    "$@" >out 2>err &
    process=$!
    until_true 60 moves || fail "it does not begin"
}
moves() {
    local now
    now=$(grep "^step" out | tail -n 1)
    [ -n "$now" ] && [ "$now" != "${last:-}" ] && last=$now
}
stop_job() {
    local all
    [ -n "$process" ] || return 0
    all=$(descendants "$process")
    kill -KILL $process $all 2>/dev/null || true
    wait "$process" 2>/dev/null || true
    process=
}
at_end() {
    stop_job
    hosts_end
    is_unmounted() { ! mountpoint -q disk || umount disk 2>/dev/null; }
    until_true 30 is_unmounted # ranks that were killed end when the system gets to it
}
# reported PATTERN: whether a line has come since $from lines
reported() { tail -n +$((from + 1)) err | grep -qE -- "$1"; }
# expect PATTERN: the report comes in time
expect() {
    local begin took
    begin=$(milliseconds)
    until_true $((limit / 1000 + 5)) reported "$1" || fail "no report: $1"
    took=$(($(milliseconds) - begin))
    [ "$took" -le "$limit" ] || fail "the report came after $took ms: $1"
    [ "$took" -le "$slowest" ] || slowest=$took
}

# make_config FOLDER: small.yaml, of a run that does not end by itself
make_config() {
    python3 -c "
import struct
open('tokens.bin', 'wb').write(b''.join(struct.pack('<H', i * i % 61) for i in range(40000)))"
    cat >small.yaml <<Y
run:   {dir: $1, steps: 1000000, seed: 3}
model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8, vocabulary: 64}
data:  {train: {type: tokens, path: tokens.bin, format: u16}, eval: {type: tokens, path: tokens.bin, format: u16}, threads: 1}
batch: {global: 8, leaves: 8}
log:   {every: 100 steps}
eval:  {every: off, samples: 64}
save:  {every: 50 steps}
ranks: {report_after: ${report_after}s}
Y
}

stop() {
    local i rank pid
    launcher "$mpi" $ranks
    start "${mpirun[@]}" "$program" "$mpi" "$report_after"
    for i in $(seq "$times"); do
        ! done_already "$i" || continue
        until_true 60 moves || fail "it does not go on"
        rank=$((RANDOM % ranks))
        pid=$(rank_process "$process" $rank)
        [ -n "$pid" ] || fail "rank $rank has no process"
        from=$(wc -l <err)
        kill -STOP "$pid"
        expect "event 1: rank $rank \(process $pid on [^)]*\) has not answered .*was last at step [0-9]+, \".+\".* waits? for it: rank [0-9] for \".+\""
        # That no rank makes progress may have been reported before: the machine itself stood still.
        [ "$(tail -n +$((from + 1)) err | grep -c 'event 1.*has not answered')" = 1 ] || fail "more than one report"
        kill -CONT "$pid"
        until_true 30 reported 'event 2: the ranks go on' || fail "that it goes on is not said"
        note_done "$i"
    done
}

branch() {
    local i call
    launcher "$mpi" $ranks
    make_config run
    for i in $(seq "$times"); do
        ! done_already "$i" || continue
        for call in evaluation barrier; do
            start "${mpirun[@]}" "$(dirname "$program")/branched" "$mpi" "$report_after" small.yaml $call
            from=0
            # Calls that carry what they are differ at once, and all ranks return; else they wait, and are reported.
            expect "rank 0 is in the $call .*, but rank [1-3] is at the beginning of step|rank 0, event 1: ranks wait for each other in different collective calls, .*: rank 0 in call [0-9]+ \\([^)]*$call.*; ranks 1, 2, 3 in call [0-9]+ \\("
            stop_job
        done
        note_done "$i"
    done
}

slow() {
    local pid end
    launcher "$mpi" $ranks
    start "${mpirun[@]}" "$program" "$mpi" "$report_after"
    pid=$(rank_process "$process" 2)
    end=$((SECONDS + times))
    while [ "$SECONDS" -lt "$end" ]; do
        kill -STOP "$pid"
        sleep 0.4
        kill -CONT "$pid"
        sleep 0.1
    done
    ! grep -q 'event' err || fail "a slow rank is reported"
    until_true 60 moves || fail "it does not go on"
}

# A full disk is no hang: rank 0 says what it could not write, and either goes on or ends together with all others.
disk() {
    local i
    mkdir disk
    mount -t tmpfs -o size=2m tmpfs disk 2>/dev/null || {
        echo "SKIPPED: a small disk needs root"
        exit 77
    }
    make_config disk/run
    for i in $(seq "$times"); do
        ! done_already "$i" || continue
        rm -rf disk/*
        start "${anneal[@]}" train small.yaml -n $ranks --mpi "$mpi"
        until_true 60 test -e disk/run/checkpoints || fail "it saves nothing"
        from=$(wc -l <err)
        head -c 4000000 /dev/zero >disk/full 2>/dev/null || true
        expect 'No space left on device'
        ! grep -qE 'has not answered|has made no progress' err || fail "a full disk is taken for a hang"
        stop_job
        note_done "$i"
    done
}

source "$(dirname "$0")/hosts.sh"
cut() {
    local i
    for i in $(seq "$times"); do
        ! done_already "$i" || continue
        hosts_begin
        hosts_launcher "$mpi" 2
        start "${mpirun[@]}" "$program" "$mpi" "$report_after"
        from=0
        hosts_cut
        expect 'rank 0, event 1: ranks 2 and 3 have not answered .*Rank 2 \(process [0-9]+ on [^)]*\) was last at step [0-9]+, ".+".* wait'
        stop_job
        hosts_end
        note_done "$i"
    done
}

"$scenario"
stop_job
echo "$scenario with $mpi, $times times: passed; the slowest report came after $slowest ms (limit $limit)"
