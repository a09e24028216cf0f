#!/usr/bin/env bash
# Runs that cannot fit are refused before the first step, with what would fit; under real limits.
#   room.sh memory|cgroup|disk SOURCE-TREE
set -euo pipefail
part=$1
tree=$2
# Part `disk` starts itself again where it may mount something.
if [ "$part" = disk ] && [ -z "${ANNEAL_MOUNTS:-}" ]; then
    export ANNEAL_MOUNTS=1
    for how in '-m' '-rm'; do
        # shellcheck disable=SC2086
        unshare $how sh -c 'mount -t tmpfs none /mnt' 2>/dev/null && exec unshare $how "$0" "$@"
    done
    echo "no file system can be mounted here: not tested"
    exit 77
fi
source "$(dirname "$0")/preamble.sh"
export OMP_NUM_THREADS=2
group=
at_end() { [ -z "$group" ] || rmdir "$group/inner" "$group" 2>/dev/null || true; }
complains() { grep -qE -- "$1" err || fail "it does not say: $1"; }
says() { grep -qE -- "$1" out || fail "it does not say: $1"; }

text=$tree/examples/shakespeare/tinyshakespeare.txt
cat >large.yaml <<Y
run:       {dir: run, steps: 1}
model:     {type: gpt2, layers: 4, heads: 4, width: 256, context: 256}
data:      {train: {type: text, path: $text, tokens: chars, part: 0%..50%}}
batch:     {global: 64, micro: 64}
train:     {precision: f32, recompute: none}
Y
# peak_of CONFIG OPTION...
peak_of() { "${anneal[@]}" plan "$@" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["peak_bytes"])'; }
peak=$(peak_of large.yaml)

# refused WORDS COMMAND...: before anything is written, with advice that holds
refused() {
    local words=$1 code=0 micro
    shift
    rm -rf run
    "$@" "${anneal[@]}" train large.yaml >out 2>err || code=$?
    [ "$code" = 2 ] || fail "exit code $code"
    complains "^anneal train: the run does not fit in memory: it needs [0-9.]+ [MG]iB of memory, and $words"
    ! grep -q ' in an_' err || fail "there is a call trace"
    [ ! -e run ] || fail "there is a run folder"
    "$@" "${anneal[@]}" train large.yaml --verbose >out 2>err && fail "it trains"
    complains '  in an_memory_room_check '
    # What it advises does fit, under the same limit.
    complains 'batch.micro [0-9]+ would need '
    micro=$(sed -nE 's/.*; batch.micro ([0-9]+) would need.*/\1/p' err)
    "$@" "${anneal[@]}" train large.yaml --set batch.micro="$micro" >out 2>err || fail "batch.micro $micro does not fit after all"
    rm -rf run
    complains_again=$("$@" "${anneal[@]}" train large.yaml 2>&1 || true)
    micro=$(sed -nE 's/.*train.recompute ([a-z]+) with batch.micro ([0-9]+) would need.*/\1 \2/p' <<<"$complains_again")
    [ -n "$micro" ] || fail "no recompute is advised: $complains_again"
    "$@" "${anneal[@]}" train large.yaml --set train.recompute="${micro% *}" --set batch.micro="${micro#* }" >out 2>err ||
        fail "recompute $micro does not fit after all"
}

# chooses COMMAND...: what the config leaves open is chosen so that it fits, and no bit changes
sed 's/, micro: 64//; s/, recompute: none//' large.yaml >open.yaml
chooses() {
    rm -rf run
    "${anneal[@]}" train open.yaml >out 2>err || fail "without a limit"
    ! grep -q 'were chosen' out err || fail "something is chosen without need"
    local hash
    hash=$(field run/summary.json 'd["state_hash"]')
    rm -rf run
    "$@" "${anneal[@]}" train open.yaml >out 2>err || fail "what is open was not chosen so that it fits: $?"
    tr -s '\n ' ' ' <out | grep -qE 'micro-batches of [0-9]+ samples were chosen: without that, the run would need [0-9.]+ [MG]iB' || fail "it does not say what it chose"
    [ "$(field run/summary.json 'd["state_hash"]')" = "$hash" ] || fail "the choice changed the bits"
    rm -rf run
}

case $part in
memory)
    kilobytes=$((peak * 3 / 4 / 1024))
    limit() { (ulimit -v "$kilobytes" && "$@"); }
    refused 'ulimit -v leaves [0-9.]+ [MG]iB; ' limit
    limit "${anneal[@]}" plan large.yaml >out 2>err || fail "plan: $?"
    says 'the run does not fit in memory: .* ulimit -v leaves .*batch.micro [0-9]+ would need'
    limit() { (ulimit -d "$kilobytes" && "$@"); }
    refused 'ulimit -d leaves [0-9.]+ [MG]iB; ' limit
    chooses limit
    "${anneal[@]}" plan large.yaml >out 2>err || fail "plan: $?"
    says '^(fits|may not fit|.*available now)'
    # A batch.micro that is given may have fewer leaves, and needs fewer gradient buffers: what is advised does fit.
    sed 's/width: 256/width: 1024/' open.yaml >wide.yaml
    least=$(peak_of wide.yaml --set batch.micro=1 --set train.recompute=full)
    copy=$("${anneal[@]}" plan wide.yaml --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["checkpoint_bytes"])')
    kilobytes=$(((least - copy) / 1024 + 262144))
    limit "${anneal[@]}" plan wide.yaml >out 2>err || fail "plan of a wide model: $?"
    says 'the run does not fit in memory: .* batch.micro [0-9]+ would need'
    micro=$(sed -nE 's/.*train.recompute ([a-z]+) with batch.micro ([0-9]+) would need.*/\1 \2/p' out)
    limit "${anneal[@]}" plan wide.yaml --set train.recompute="${micro% *}" --set batch.micro="${micro#* }" >out 2>err || fail "plan of a wide model: $?"
    ! grep -q 'does not fit' out || fail "recompute $micro does not fit after all"
    # What has no room for a copy of the state is saved without one: the same files, for a run that goes on as ever.
    python3 -c "
for i in range(64): print(i % 7, i % 5, i % 3, sep=',')" | sed '1i a,b,c' >few.csv
    cat >many.yaml <<Y
run:   {dir: run, steps: 3}
model: {type: mlp, hidden: [4096, 2048]}
data:  {train: {type: csv, path: few.csv, inputs: [a, b], targets: [c]}}
save:  {every: 2 steps, writers: 3}
Y
    rm -rf run
    "${anneal[@]}" train many.yaml >out 2>err || fail "many weights without a limit"
    hash=$(field run/summary.json 'd["state_hash"]')
    mv run before
    # A copy takes 96 MiB, and a save without one 8. The rest is for what ulimit counts and no plan does: stacks, and up
    # to 12.5 MiB that oneDNN reserves for its code at level amx.
    kilobytes=$(($(peak_of many.yaml) / 1024 - 49152))
    limit "${anneal[@]}" train many.yaml >out 2>err || fail "many weights: $?"
    tr -s '\n ' ' ' <out | grep -q 'checkpoints are written without a copy of the state' || fail "it does not say that training waits"
    [ "$(field run/summary.json 'd["state_hash"]')" = "$hash" ] || fail "a save without a copy changed the bits"
    for file in before/checkpoints/*/part-*; do
        cmp "$file" "run${file#before}" || fail "the files of a save differ"
    done
    rm -rf run
    # How an evaluation is cut is bits, so it is not chosen, but advised.
    images=$tree/examples/mnist/mnist-10k
    cat >images.yaml <<Y
model: {type: cnn, filters: [1024, 64]}
data:
  train: {type: idx, path: $images-images-idx3-ubyte.gz, labels: $images-labels-idx1-ubyte.gz, part: 0%..80%}
  eval:  {type: idx, path: $images-images-idx3-ubyte.gz, labels: $images-labels-idx1-ubyte.gz, part: 80%..100%}
Y
    few=$(peak_of images.yaml --set batch.micro=1 --set train.recompute=full --set eval.micro=1)
    many=$(peak_of images.yaml --set batch.micro=1 --set train.recompute=full)
    kilobytes=$(((few + many) / 2 / 1024))
    limit "${anneal[@]}" plan images.yaml >out 2>err || fail "plan of large images: $?"
    says 'the run does not fit in memory: .*; the evaluation needs most: eval.micro 1.* with batch.micro [0-9]+ would need'
    # More than any machine has, and nothing helps.
    rm -rf run
    sed 's/layers: 4, heads: 4, width: 256/layers: 24, heads: 256, width: 32768/' large.yaml >huge.yaml
    code=0
    "${anneal[@]}" train huge.yaml >out 2>err || code=$?
    [ "$code" = 2 ] && [ ! -e run ] || fail "huge: exit code $code"
    complains 'this machine has .*; even batch.micro 1 with train.recompute full would need '
    ! grep -q ' in an_' err || fail "there is a call trace"
    "${anneal[@]}" plan huge.yaml >out 2>err || fail "plan: $?"
    says 'the run does not fit'
    ;;
cgroup)
    for folder in /sys/fs/cgroup /sys/fs/cgroup/memory; do
        for name in memory.max memory.limit_in_bytes; do
            [ -z "$group" ] || continue
            mkdir "$folder/anneal-$$" 2>/dev/null || continue
            group=$folder/anneal-$$
            # The kernel puts the file there, or it is no cgroup.
            limit_file=$group/$name
            if ! [ -e "$limit_file" ] || ! echo $((peak * 3 / 4)) 2>/dev/null >"$limit_file"; then
                rmdir "$group"
                group=
            fi
        done
    done
    if [ -z "$group" ]; then
        echo "no cgroup can be made here: not tested"
        exit 77
    fi
    mkdir "$group/inner" # the limit is that of the group around it
    limit() { (echo "$BASHPID" >"$group/inner/cgroup.procs" && "$@"); }
    refused 'the cgroup of this process allows [0-9.]+ [MG]iB; ' limit
    chooses limit
    # What just fits leaves no room for what is not planned, such as libraries: less is chosen.
    half=$(peak_of open.yaml --set batch.micro=32 --set train.recompute=none)
    echo $((half + 1000000)) >"$limit_file"
    chooses limit
    ;;
disk)
    sed 's/layers: 4, heads: 4, width: 256, context: 256/layers: 2, heads: 2, width: 32, context: 16/
        s/steps: 1}/steps: 40}/; s/global: 64, micro: 64/global: 8/; s/dir: run/dir: small\/run/' large.yaml >small.yaml
    echo 'save: {every: 1 steps, keep_last: 8}' >>small.yaml
    "${anneal[@]}" train small.yaml --set run.dir=here >out 2>err || fail "it does not train"
    each=$(du -sb here/checkpoints/step-* | sort -n | tail -1 | cut -f1)
    mkdir small
    mount -t tmpfs -o size=$((each * 4)) none small
    code=0
    "${anneal[@]}" train small.yaml >out 2>err || code=$?
    [ "$code" = 1 ] || fail "a small disk: exit code $code"
    complains 'small/run: 9 more checkpoints of [0-9.]+ KiB must fit there at the same time .*the file system has only [0-9.]+ [KM]iB left'
    [ ! -e small/run ] || fail "there is a run folder"
    # What fits, trains; that the best may be one too many is a note.
    "${anneal[@]}" train small.yaml --set save.keep_last=2 >out 2>err || fail "three do not fit after all"
    ! grep -q '^note ' out || fail "there is a note"
    rm -r small/run
    "${anneal[@]}" train small.yaml --set save.keep_last=all --set run.steps=3 >out 2>err || fail "keep_last=all: $?"
    rm -r small/run
    "${anneal[@]}" train small.yaml --set save.keep_last=all --set run.steps=4 --set 'save.every=1 steps' \
        --set data.eval.type=text --set data.eval.path="$text" --set data.eval.tokens=chars \
        --set data.eval.part=50%..51% >out 2>err || true
    says '^note .*checkpoints of'
    # A limit on the size of files.
    code=0
    (ulimit -f 64 && "${anneal[@]}" train small.yaml --set run.dir=limited >out 2>err) || code=$?
    [ "$code" = 1 ] || fail "ulimit -f: exit code $code"
    complains ': a file of a checkpoint needs .*, but ulimit -f allows only 64.00 KiB'
    [ ! -e limited ] || fail "ulimit -f: there is a run folder"
    # A disk that becomes full in a run: the end of the run has room in the place of what outcome.json said.
    rm -rf small/run
    "${anneal[@]}" train small.yaml --set run.steps=100000000 --set save.keep_last=1 >out 2>err &
    process=$!
    until_true 60 grep -qs '"step"' small/run/metrics.jsonl || fail "it does not train"
    cat /dev/zero >small/full 2>/dev/null || true
    code=0
    wait $process || code=$?
    process=
    [ "$code" = 1 ] || fail "a disk that became full: exit code $code"
    complains '^anneal train: small/run/.*: cannot be written: No space left on device'
    [ "$(field small/run/outcome.json 'd["end"]')" = failed ] || fail "a disk that became full: $(cat small/run/outcome.json)"
    field small/run/outcome.json 'd["error"]' | grep -q 'No space left on device' || fail "no reason: $(cat small/run/outcome.json)"
    [ "$(find small/run -maxdepth 1 -name '*.new')" = '' ] || fail "half files are left: $(ls small/run)"
    rm small/full
    umount small
    # What a run writes when it starts.
    mkdir -p stuck/plan.json
    code=0
    "${anneal[@]}" train small.yaml --set run.dir=stuck >out 2>err || code=$?
    [ "$code" = 1 ] && complains "plan.json' cannot be written: Is a directory" || fail "plan.json: exit code $code"
    [ "$(field stuck/outcome.json 'd["end"]')" = failed ] || fail "plan.json: $(cat stuck/outcome.json)"
    ;;
esac
echo "room: all as expected"
