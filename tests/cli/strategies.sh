#!/usr/bin/env bash
# What ranks can divide among themselves: the table of `anneal plan --ranks`, and what ranks.shard auto takes under
# limits of memory.
#   strategies.sh plan SOURCE-TREE
#   strategies.sh train SOURCE-TREE openmpi|mpich
part=$1 tree=$2 mpi=${3:-}
source "$(dirname "$0")/preamble.sh"
export OMP_NUM_THREADS=1
cat >model.yaml <<Y
run:       {dir: run, steps: 4, seed: 3, isa: base}
model:     {type: gpt2, layers: 12, heads: 4, width: 256, context: 16}
data:      {train: {type: text, path: $tree/examples/shakespeare/tinyshakespeare.txt, tokens: chars, part: 0%..2%}}
batch:     {global: 8, leaves: 8, micro: 1}
train:     {precision: f32, recompute: none}
save:      {every: 2 steps}
Y
strategies="none optimizer gradients full"

# plan ARGUMENT...: the plan in plan.json
plan() { "${anneal[@]}" plan model.yaml --json "$@" >plan.json 2>err || fail "plan $*: $?"; }
# of STRATEGY KEY: what the table in all.json says
of() { field all.json "[s for s in d['strategies'] if s['name'] == '$1'][0]['$2']"; }
# auto FILE: what auto takes
taken() { field "$1" "[s['name'] for s in d['strategies'] if s['auto']]"; }
# limit_for STRATEGY BEFORE: kilobytes of ulimit -d in which the first fits with room to spare, and the second does not:
# a sixteenth of it is spared
limit_for() { echo $((($(of "$1" peak_bytes) + $(of "$2" peak_bytes)) / 2 * 16 / 15 / 1024)); }

case $part in
plan)
    # A row is the plan of that strategy by itself, on the rank that needs most; what is sent is the most of all ranks.
    for ranks in 3 4; do
        plan --ranks $ranks
        cp plan.json all.json
        [ "$(field all.json "' '.join(s['name'] for s in d['strategies'])")" = "$strategies" ] || fail "other strategies"
        for strategy in $strategies; do
            least=() # a row has the least that a strategy needs: gradients are sent for each micro-batch
            case $strategy in gradients | full) least=(--set ranks.accumulate=off) ;; esac
            for ((rank = 0; rank < ranks; rank++)); do
                plan --ranks $ranks --rank $rank --set ranks.shard="$strategy" "${least[@]}"
                cp plan.json "$strategy.$rank.json"
            done
            python3 - $ranks "$strategy" <<'P' || fail "$strategy of $ranks ranks"
import json, sys
ranks, name = int(sys.argv[1]), sys.argv[2]
row = [s for s in json.load(open("all.json"))["strategies"] if s["name"] == name][0]
alone = [json.load(open(f"{name}.{r}.json")) for r in range(ranks)]
kinds = [k for k in row if k.endswith("_bytes") and k not in ("peak_bytes", "sent_bytes", "shared_bytes")]
text = len("--set ranks.shard=" + name + " --set ranks.accumulate=off") * 4 # of the config, which the trainer holds
assert len(kinds) == 11 and row["possible"] and row["fits"], row
assert row["peak_bytes"] == sum(row[k] for k in kinds), row
largest = max(range(ranks), key=lambda r: alone[r]["peak_bytes"])
assert row["rank"] == largest, (row["rank"], largest)
for k in kinds:
    assert row[k] == alone[largest][k] or (k == "trainer_bytes" and abs(row[k] - alone[largest][k]) < text), (k, row[k], alone[largest][k])
assert row["sent_bytes"] == max(a["exchange"]["sent_bytes"] for a in alone)
assert row["shared_bytes"] == max(a["exchange"]["read_bytes"] + a["exchange"]["written_bytes"] for a in alone)
assert [s["taken"] for s in alone[0]["strategies"]] == [s["name"] == name for s in alone[0]["strategies"]]
P
        done
        # Of 8 leaves on 3 ranks some wait to be added, as gradients.
        [ $ranks != 3 ] || [ "$(of gradients gradients_bytes)" -gt $(($(of none gradients_bytes) / 2)) ] || fail "gradients that wait are not counted as gradients"
    done

    # Without limits that matter, the faster one of the first two; its reason has both times.
    faster=$(field all.json "min(d['strategies'][:2], key=lambda s: s['seconds'])['name']")
    [ "$(taken all.json)" = "['$faster']" ] || fail "auto takes $(taken all.json), not $faster"
    # Under a limit of each process, the first that fits.
    before=none
    for strategy in optimizer gradients full; do
        if [ "$(of $strategy peak_bytes)" -lt "$(of $before peak_bytes)" ]; then
            (ulimit -d "$(limit_for $strategy $before)" && plan --ranks 4)
            [ "$(taken plan.json)" = "['$strategy']" ] || fail "with room for $strategy and not for $before, auto takes $(taken plan.json)"
            grep -q '"reason": "it is the first that fits; '$before' does not: it needs .* ulimit -d leaves' plan.json || fail "the reason is another one"
        fi
        before=$strategy
    done
    # What fits nowhere: the least, with a note.
    (ulimit -d $(($(of full peak_bytes) / 2 / 1024)) && "${anneal[@]}" plan model.yaml --ranks 4 >out 2>err) || fail "plan: $?"
    grep -q 'the run does not fit in memory: .*ranks.shard auto took full: it needs least, but does not fit' out || fail "no note"

    # Ranks of a host need its memory together: one that has 2/5 of it to itself fits, four do not.
    width=$(awk '/^MemTotal/ { print int(sqrt($2 * 1024 * 0.4 / (20 * 12 * 24)) / 64) * 64 }' /proc/meminfo)
    sed "s/layers: 12, heads: 4, width: 256/layers: 24, heads: $((width / 64)), width: $width/" model.yaml >large.yaml
    for hosts in 1 4; do
        "${anneal[@]}" plan large.yaml --ranks 4 --hosts $hosts --set batch.leaves=4 --set batch.global=4 --json >all.json 2>err || fail "plan: $?"
        room=$(of none room)
        case "$hosts $room" in
        "1 it needs "*" of memory, and the"*" of which the other ranks need "* | "1 it needs "*"this machine has "*", of which the other ranks need "*) ;;
        4*"other ranks"*) fail "ranks of $hosts hosts: $room" ;;
        4*) ;;
        *) fail "ranks of $hosts host: $room" ;;
        esac
        [ "$hosts" = 4 ] || [ "$(of none fits)" = False ] || fail "four of them fit"
    done

    # The number of leaves follows from the config: not from what ranks divide, nor from how many there are.
    sed 's/, leaves: 8, micro: 1//' model.yaml >leaves.yaml # 2 of the 8 samples are 32 rows, so there are 4 leaves
    for row in auto none full; do
        "${anneal[@]}" plan leaves.yaml --ranks 2 --set ranks.shard=$row --json >plan.json 2>err || fail "plan: $?"
        [ "$(field plan.json 'd["exchange"]["leaves"]')" = 2 ] || fail "$row: other leaves"
    done

    # Leaves of several micro-batches need whole gradients on every rank. Without them two strategies are left out, and
    # leaves stay what they are.
    plan --ranks 4 --set batch.micro=1 --set batch.leaves=4
    [ "$(field plan.json "[s['possible'] for s in d['strategies']]")" = "[True, True, True, True]" ] || fail "a strategy cannot add parts of a leaf"
    plan --ranks 4 --set batch.micro=1 --set batch.leaves=4 --set ranks.accumulate=off
    cp plan.json all.json
    [ "$(field all.json "[s['possible'] for s in d['strategies']]")" = "[True, True, False, False]" ] || fail "other strategies are possible"
    grep -q '"reason": "ranks.accumulate is off, so a micro-batch must have room for a leaf, .*batch.leaves to 8 or more' all.json || fail "full: another reason"
    (ulimit -d $(($(of optimizer peak_bytes) / 2 / 1024)) && "${anneal[@]}" plan model.yaml --ranks 4 --set batch.micro=1 --set batch.leaves=4 --set ranks.accumulate=off >out 2>err) || fail "plan: $?"
    grep -q 'ranks.shard auto took optimizer: it needs least, but does not fit; full cannot be used: ranks.accumulate is off' out || fail "it does not say what stands in the way"
    grep -q '^  full cannot be used: ranks.accumulate is off' out || fail "the table does not say why"
    for row in full hybrid; do
        code=0
        "${anneal[@]}" plan model.yaml --ranks 4 --set batch.micro=1 --set batch.leaves=4 --set ranks.accumulate=off --set ranks.shard=$row >out 2>err || code=$?
        [ $code != 0 ] && grep -q 'set batch.leaves to 8 or more' err || fail "$row is planned with leaves of two micro-batches"
    done
    code=0
    "${anneal[@]}" plan model.yaml --ranks 4 --set ranks.accumulate=off --set ranks.shard=optimizer >out 2>err || code=$?
    [ $code != 0 ] && grep -q 'ranks.accumulate is off, but with ranks.shard optimizer every rank has all gradients' err || fail "what nothing obeys is taken"

    # Whether a rank adds the gradients of micro-batches before it sends them is memory against traffic: with 2 ranks
    # and 8 leaves of one sample, four of them are sent once or four times.
    for row in on off; do
        plan --ranks 2 --set ranks.shard=gradients --set ranks.accumulate=$row
        mv plan.json $row.json
    done
    ratio=$(python3 -c 'import json; on, off = (json.load(open(f)) for f in ("on.json", "off.json")); s = lambda d: next(r for r in d["strategies"] if r["name"] == "gradients"); print(s(off)["sent_bytes"] > 2 * s(on)["sent_bytes"], s(on)["peak_bytes"] > s(off)["peak_bytes"])')
    [ "$ratio" = "True True" ] || fail "adding gradients sends no less, or needs no more memory: $ratio"

    # Thousands of ranks are planned in time that grows with their number, not with its square: 4,096 take at most 30 s,
    # here of a processor.
    (ulimit -t 30 && plan --ranks 4096 --hosts 512 --set batch.leaves=4096 --set batch.global=4096) || fail "4,096 ranks"
    [ "$(field plan.json "len(d['strategies'])")" = 5 ] || fail "strategies of 4,096 ranks are missing"

    # For people: 80 columns, a mark, a reason, the root of the tied table by its name; and a picture.
    "${anneal[@]}" plan model.yaml --ranks 4 --set ranks.shard=full --set ranks.accumulate=off >out 2>err || fail "plan: $?"
    sed -n '/^  ranks.shard /,/^$/p' out >table
    [ "$(wc -l <table)" -ge 12 ] && [ "$(wc -L <table)" -le 80 ] || fail "the table is too wide, or not there"
    grep -q " $faster\\*" table && grep -q "^  \* auto takes $faster: " out || fail "the choice is not marked"
    grep -q 'rank 0 of 4, 2 leaves of each step, ranks.shard full$' out || fail "the plan does not say what it is of"
    grep -qE 'of the activations, .* are the gradients of [a-z0-9.]+ until they leave the rank' out || fail "no root of gradients"
    "${anneal[@]}" plan model.yaml --ranks 4 --svg >plan.svg 2>err || fail "svg: $?"
    python3 - <<'P' || fail "the picture"
import xml.etree.ElementTree as tree
texts = [e.text for e in tree.parse("plan.svg").iter("{http://www.w3.org/2000/svg}text")]
assert all(name in texts for name in "none optimizer gradients full auto".split()), texts
P
    "${anneal[@]}" plan model.yaml >out 2>err || fail "plan: $?"
    ! grep -q 'ranks.shard' out || fail "one process has nothing to divide"
    ;;
train)
    command -v "mpirun.$mpi" >/dev/null || { echo "there is no mpirun.$mpi here: not tested"; exit 77; }
    state() { field "$1/summary.json" 'd["state_hash"]'; }
    train() { "${anneal[@]}" train model.yaml --mpi "$mpi" "$@" >out 2>err || fail "train $*: $?"; }
    sed -i 's/, leaves: 8//; s/global: 8/global: 2/' model.yaml # leaves: auto
    plan --ranks 2
    cp plan.json all.json
    train -n 2 --set run.dir=free
    grep -qE '^sharding   (none|optimizer) \(auto: none and optimizer fit, ' out || fail "no reason"
    grep -q '2 leaves' out || fail "other leaves"
    # Where nothing fits, it is refused, with the choice; and it says how much MPI has left of the limit.
    code=0 half=$(($(of full peak_bytes) / 2 / 1024))
    (ulimit -d $half && "${anneal[@]}" train model.yaml --mpi "$mpi" -n 2 --set run.dir=tight >out 2>err) || code=$?
    [ "$code" = 2 ] && [ ! -e tight ] || fail "it trains without memory: $code"
    grep -q 'ranks.shard auto took full: it needs least, but does not fit' err || fail "it does not say what was chosen"
    left=$(sed -nE 's/.*the run does not fit in memory: .* ulimit -d leaves ([0-9.]+) MiB;.*/\1/p' err | head -n 1)
    [ -n "$left" ] || fail "it does not say what the limit leaves"
    taken_by_mpi=$(python3 -c "print(int($half - $left * 1024))")
    for strategy in gradients full; do
        before=$([ $strategy = full ] && echo gradients || echo optimizer)
        [ "$(of $strategy peak_bytes)" -lt "$(of $before peak_bytes)" ] || fail "$strategy needs more than $before"
        (ulimit -d $(($(limit_for $strategy $before) + taken_by_mpi)) && train -n 2 --set run.dir=$strategy --set save.every=off) || exit 1
        grep -q "^sharding  *$strategy (auto: it is the first that fits;" out || fail "room for $strategy"
        grep -q '2 leaves' out || fail "a limit of memory changes the leaves"
        [ "$(state $strategy)" = "$(state free)" ] || fail "$strategy has another state"
    done
    # A run that carries on with another strategy keeps its leaves.
    train -n 2 --set run.dir=moves --set run.steps=2 --set ranks.shard=full
    train -n 2 --set run.dir=moves --extend=keep
    [ "$(state moves)" = "$(state free)" ] || fail "a run that changes its strategy has another state"
    ;;
esac
echo "strategies: all as expected"
