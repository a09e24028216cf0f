#!/usr/bin/env bash
# A pipe that nobody reads any more stops a run with a checkpoint; a limit on the size of files makes a save fail with a
# message.
#   pipe.sh SOURCE-TREE
source "$(dirname "$0")/preamble.sh"
tree=$1
export OMP_NUM_THREADS=2

cat >small.yaml <<Y
run:       {dir: run, steps: 100000000}
model:     {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}
data:      {train: {type: text, path: $tree/examples/shakespeare/tinyshakespeare.txt, tokens: chars, part: 0%..10%}}
batch:     {global: 8}
save:      {every: 5 steps}
log:       {every: 1 steps, tensorboard: off}
Y

# closed NAME ARGUMENT...: a run whose output is read up to its 20th line
closed() {
    local name=$1 codes
    shift
    set +e
    "${anneal[@]}" train small.yaml --set "run.dir=$name" "$@" 2>err | head -n 20 >out
    codes=("${PIPESTATUS[@]}")
    set -e
    [ "${codes[0]}" = 75 ] || fail "$name: exit code ${codes[0]}"
    [ "$(field "$name/outcome.json" 'd["end"]')" = "stopped on request" ] || fail "$name: $(cat "$name/outcome.json")"
    field "$name/outcome.json" 'd["reason"]' | grep -q 'SIGPIPE' || fail "$name: $(cat "$name/outcome.json")"
    [ "$(field "$name/outcome.json" 'd["step"]')" -gt 0 ] || fail "$name: it took no step"
    grep -q 'anneal train: nothing reads the output any more: stopped with a checkpoint after step' err || fail "$name: it does not say so"
    ls "$name"/checkpoints/step-* >/dev/null || fail "$name: there is no checkpoint"
    "${anneal[@]}" train small.yaml --set "run.dir=$name" --set run.max_time=1s >out 2>err && fail "$name: it is done"
    grep -q 'resumes' out || fail "$name: it does not carry on"
}
closed pipe
[ -n "${ANNEAL_RUN:-}" ] || closed supervised --supervise # the supervisor starts the command itself, without an emulator

# A signal while the reader pauses: what is being written is not lost, and the run stops as it does otherwise.
mkfifo slow
"${anneal[@]}" train small.yaml --set run.dir=slow-run >slow 2>err &
process=$!
exec 3<slow # which reads nothing yet: the pipe fills
for _ in $(seq 600); do
    grep -qs '"step": 5,' slow-run/metrics.jsonl && break
    sleep 0.1
done
previous=
for _ in $(seq 600); do # until nothing moves any more
    now=$(wc -c <slow-run/metrics.jsonl)
    [ "$now" = "$previous" ] && break
    previous=$now
    sleep 1
done
kill -TERM $process
sleep 0.5
cat <&3 >out &
code=0
wait $process || code=$?
exec 3<&-
[ "$code" = 75 ] || fail "TERM while the reader pauses: exit code $code"

# A signal's reason is told too.
"${anneal[@]}" train small.yaml --set run.dir=term >out 2>err &
process=$!
for _ in $(seq 600); do
    grep -qs '"step": 5,' term/metrics.jsonl && break
    sleep 0.1
done
kill -TERM $process
wait $process || [ $? = 75 ] || fail "TERM: exit code"
process=
[ "$(field term/outcome.json 'd["reason"]')" = SIGTERM ] || fail "TERM: $(cat term/outcome.json)"

# --- closed streams: their numbers must not go to files of the run, or what is printed is written into them ---
for streams in '>&-' '2>&-' '>&- 2>&-' '<&- >&- 2>&-'; do
    rm -rf streams
    code=0
    eval '"${anneal[@]}" train small.yaml --set run.dir=streams --set run.steps=20 >out 2>err' "$streams" || code=$?
    case $streams in
    *'>&- '* | '>&-') [ "$code" = 1 ] || fail "$streams: exit code $code" ;; # the output could not be written
    *) [ "$code" = 0 ] || fail "$streams: exit code $code" ;;
    esac
    [ "$(field streams/outcome.json 'd["end"]')" = done ] || fail "$streams: $(cat streams/outcome.json)"
    ! grep -v '^{"step": .*}$' streams/metrics.jsonl || fail "$streams: these are lines of metrics.jsonl"
    "${anneal[@]}" verify streams >out 2>err || fail "$streams: the checkpoint is damaged"
done

# --- files may not grow: the save fails, the run goes on, and says so at its end ---
if [ -z "${ANNEAL_RUN:-}" ]; then # of an emulator, the limit would be the emulator's
    "${anneal[@]}" train small.yaml --set run.dir=limit --set 'log.every=1000000 steps' >out 2>err &
    process=$!
    for _ in $(seq 600); do
        ls limit/checkpoints/step-* >/dev/null 2>&1 && break
        sleep 0.1
    done
    prlimit --pid $process --fsize=65536:unlimited
    for _ in $(seq 600); do
        grep -q 'was not saved' err && break
        kill -0 $process 2>/dev/null || break
        sleep 0.1
    done
    grep -q 'was not saved: .*File too large' err || fail "ulimit -f: no failed save"
    kill -0 $process || fail "ulimit -f: it has ended"
    kill -TERM $process
    code=0
    wait $process || code=$?
    process=
    [ "$code" = 1 ] || fail "ulimit -f: exit code $code"
    field limit/outcome.json 'd["end"], d["error"]' | grep -q "failed.*File too large (more than 'ulimit -f'" ||
        fail "ulimit -f: $(cat limit/outcome.json)"
fi
echo "pipe: all as expected"
