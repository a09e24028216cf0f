#!/usr/bin/env bash
# The example with an optimizer of its own: it learns; killed and started again, it ends with the same state; the
# command, which does not have the optimizer, refuses to resume the run and says why, and can use the weights.
#   own_optimizer.sh PROGRAM EXAMPLE ANNEAL      (ANNEAL_RUN is an emulator and its options)
set -euo pipefail
program=$1 config=$2/waves.yaml anneal=$3
export OMP_NUM_THREADS=2
rm -rf whole killed
mkdir whole killed

(cd whole && ${ANNEAL_RUN:-} "$program" "$config" | tee said.txt)
awk '/val_worst/ { worst = $6 } END { exit !(worst > 0 && worst < 0.1) }' whole/said.txt || { echo "it did not learn the surface"; exit 1; }

# Killed as soon as it has said that it is at step 1000: the save of step 500 is durable by then, as each one is before
# the next begins. A fast machine may have taken all steps before the signal arrives; then it is tried again.
cd killed
mkfifo lines
ended=0
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf runs
    ${ANNEAL_RUN:-} "$program" "$config" >lines &
    process=$!
    while read -r line; do
        if [[ $line == step\ 1000\ * ]]; then kill -KILL $process || true; break; fi
    done <lines
    wait $process && ended=0 || ended=$?
    echo "attempt $attempt ended with $ended"
    if [[ $ended == 137 && ! -e runs/waves/summary.json ]]; then break; fi
done
[[ $ended == 137 && ! -e runs/waves/summary.json ]] || { echo "it could not be killed in time"; exit 1; }

${ANNEAL_RUN:-} "$program" "$config" | tee said.txt
grep -q '^resumes from ' said.txt
cmp <(grep '^state ' ../whole/said.txt) <(grep '^state ' said.txt) || { echo "the run that was killed ended with another state"; exit 1; }
cmp <(grep -h val_ ../whole/runs/waves/metrics.jsonl) <(grep -h val_ runs/waves/metrics.jsonl) || { echo "its evaluations are others"; exit 1; }
grep -q '"val_worst": ' runs/waves/summary.json

refused=0
sed -e 's/type: adamax/type: adamw/' -e 's/best: worst/best: val_loss/' -e "s#path: waves.csv#path: $2/waves.csv#" "$config" >command.yaml
${ANNEAL_RUN:-} "$anneal" train command.yaml --set run.dir=runs/waves --resume runs/waves >refused.txt 2>&1 || refused=$?
cat refused.txt
[[ $refused == 2 ]] && grep -q "trained with the optimizer 'adamax' of another program" refused.txt || { echo "the command did not refuse it by name"; exit 1; }
${ANNEAL_RUN:-} "$anneal" train "$config" >refused.txt 2>&1 && { echo "the command took a config with an optimizer that it does not have"; exit 1; }
grep -q "optimizer.type is 'adamax'; it takes adamw, adam, sgd, lion or rmsprop" refused.txt
${ANNEAL_RUN:-} "$anneal" inspect runs/waves
${ANNEAL_RUN:-} "$anneal" predict runs/waves --input "$2/waves.csv" --output heights.csv
[[ $(wc -l <heights.csv) -ge 400 ]]
