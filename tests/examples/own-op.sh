#!/usr/bin/env bash
# The example with an op of its own: a run that is killed and started again ends as one that is not, and the command
# refuses its model and its checkpoint by the op's name.
#   own-op.sh OWN-OP EXAMPLE-FOLDER ANNEAL      (ANNEAL_RUN is an emulator and its options)
set -euo pipefail
program=$(realpath "$1")
anneal=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$2"/own-op.yaml "$2"/own-op.ang "$2"/waves.csv "$work"
cd "$work"
export OMP_NUM_THREADS=2

echo "== a run that nobody disturbs"
${ANNEAL_RUN:-} "$program" own-op.yaml | tee whole.txt
awk '/^step/ { loss = $4 } END { exit !(loss < 0.01) }' whole.txt || { echo "it did not learn"; exit 1; }
mv own-op-run whole-run

echo "== one that is killed after its first checkpoint"
code=0
for _ in 1 2 3 4 5 6 7 8 9 10; do # on a busy machine it may end before the signal comes
    rm -rf own-op-run
    ${ANNEAL_RUN:-} "$program" own-op.yaml >killed.txt &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! ls own-op-run/checkpoints/step-* >/dev/null 2>&1; do sleep 0.01; done
    kill -KILL $pid 2>/dev/null || true
    code=0
    wait $pid || code=$?
    test $code -ne 137 || break
done
test $code -eq 137 || { echo "it always ended before it could be killed, at last with $code"; exit 1; }
${ANNEAL_RUN:-} "$program" own-op.yaml | tee resumed.txt
grep -q '^carries on from .*step-0' resumed.txt
diff <(grep state_hash whole.txt) <(grep state_hash resumed.txt)

echo "== the command does not know the op"
refuses() {
    if ${ANNEAL_RUN:-} "$anneal" "$@" >out.txt 2>&1; then
        echo "anneal $* was not refused"
        exit 1
    fi
    grep -q "there is no op 'soft_sign'.*an op that a program added" out.txt || { cat out.txt; exit 1; }
}
refuses train own-op.yaml
refuses plan own-op.yaml
refuses graph own-op.ang
refuses eval own-op-run --data waves.csv
refuses predict own-op-run --input waves.csv --output out.csv
refuses export own-op-run --to torch exported
