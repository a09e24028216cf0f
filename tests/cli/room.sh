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
train:     {precision: f32}
Y
peak=$("${anneal[@]}" plan large.yaml --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["peak_bytes"])')

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

case $part in
memory)
    kilobytes=$((peak * 3 / 4 / 1024))
    limit() { (ulimit -v "$kilobytes" && "$@"); }
    refused 'ulimit -v leaves [0-9.]+ [MG]iB; ' limit
    limit "${anneal[@]}" plan large.yaml >out 2>err || fail "plan: $?"
    says 'the run does not fit in memory: .* ulimit -v leaves .*batch.micro [0-9]+ would need'
    limit() { (ulimit -d "$kilobytes" && "$@"); }
    refused 'ulimit -d leaves [0-9.]+ [MG]iB; ' limit
    "${anneal[@]}" plan large.yaml >out 2>err || fail "plan: $?"
    says '^(fits|may not fit|.*available now)'
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
            if ! [ -e "$group/$name" ] || ! echo $((peak * 3 / 4)) 2>/dev/null >"$group/$name"; then
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
    umount small
    ;;
esac
echo "room: all as expected"
