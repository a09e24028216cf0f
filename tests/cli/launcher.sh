#!/usr/bin/env bash
# `anneal train` under launchers: several processes are refused before anything is written, one trains.
source "$(dirname "$0")/preamble.sh"
export OMP_NUM_THREADS=1

printf 'a,y\n1,2\n2,4\n3,6\n4,8\n' >data.csv
cat >run.yaml <<Y
run:   {dir: run, steps: 2}
model: {type: mlp, hidden: [4]}
data:  {train: {type: csv, path: data.csv}}
batch: {global: 4}
Y
words='several processes'

# refused COMMAND...: no process trains, and each says why
refused() {
    local code=0
    rm -rf run
    "$@" >out 2>err || code=$?
    [ "$code" != 0 ] || fail "$1: it ended with 0"
    [ "$(cat out err | grep -c "$words")" -ge 1 ] || fail "$1: it does not say: $words"
    ! grep -q 'in an_' out err || fail "$1: there is a call trace"
    [ ! -e run ] || fail "$1: there is a run folder"
}
trains() {
    rm -rf run
    "$@" >out 2>err || fail "$1: it ended with $?"
    grep -q '"end": "done"' run/outcome.json || fail "$1: it is not done"
}

# --- by their variables: Slurm, which is not started here ---
job=(env SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_LOCALID=0)
trains "${job[@]}" "${anneal[@]}" train run.yaml # a batch script is one process
refused "${job[@]}" SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 "${anneal[@]}" train run.yaml
code=0
"${job[@]}" SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 "${anneal[@]}" train run.yaml >out 2>err || code=$?
[ "$code" = 2 ] || fail "srun: exit code $code"
grep -qF 'anneal train: srun started several processes (SLURM_STEP_NUM_TASKS=4)' err || fail "srun: the message"
if [ -z "${ANNEAL_RUN:-}" ]; then # the supervisor starts the command itself, without an emulator
    code=0
    "${job[@]}" SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 "${anneal[@]}" train run.yaml --supervise >out 2>err || code=$?
    [ "$code" = 2 ] && [ "$(grep -c "$words" err)" = 1 ] || fail "the supervisor tries again: $code"
fi

# --- what trains nothing may be started by anybody ---
trains "${anneal[@]}" train run.yaml
for tool in 'plan run.yaml' 'eval run --data data.csv' 'inspect run'; do
    # shellcheck disable=SC2086
    env OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 "${anneal[@]}" $tool >out 2>err || fail "$tool: it ended with $?"
done

# --- real ones ---
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
tried=0
for launcher in 'mpirun.openmpi --oversubscribe' mpirun.mpich; do
    if ! command -v "${launcher%% *}" >/dev/null; then
        echo "${launcher%% *} is not installed: not tested"
        continue
    fi
    # shellcheck disable=SC2086
    refused $launcher -n 2 "${anneal[@]}" train run.yaml
    # shellcheck disable=SC2086
    trains $launcher -n 1 "${anneal[@]}" train run.yaml
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || exit 77
echo "launchers: all as expected"
