#!/usr/bin/env bash
# `anneal train` under launchers and with -n: ranks that find each other train together, and those that do not are
# refused before anything is written.
source "$(dirname "$0")/preamble.sh"
export OMP_NUM_THREADS=1
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # MPI leaves memory behind: tests/comm/mpirun.sh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
plugins=$("${anneal[@]}" version --json | sed -n 's/.*"mpi": //p')

printf 'a,y\n1,2\n2,4\n3,6\n4,8\n' >data.csv
cat >run.yaml <<Y
run:   {dir: run, steps: 2}
model: {type: mlp, hidden: [4]}
data:  {train: {type: csv, path: data.csv}}
batch: {global: 4, leaves: 2}
Y

# refused WORDS COMMAND...: no process trains, and one says why
refused() {
    local words=$1 code=0
    shift
    rm -rf run
    timeout 60 "$@" >out 2>err || code=$?
    [ "$code" != 0 ] || fail "$*: it ended with 0"
    [ "$(cat out err | grep -cF -e "$words")" = 1 ] || fail "$*: it does not say once: $words"
    ! grep -q 'in an_' out err || fail "$*: there is a call trace"
    [ ! -e run ] || fail "$*: there is a run folder"
}
# trains RANKS COMMAND...: all of them together, and one prints
trains() {
    local ranks=$1
    shift
    rm -rf run
    timeout 60 "$@" >out 2>err || fail "$*: it ended with $?"
    grep -q '"end": "done"' run/outcome.json || fail "$*: it is not done"
    grep -q "\"ranks\": $ranks," run/summary.json || fail "$*: the summary does not say $ranks ranks"
    [ "$(grep -c '^done, after' out)" = 1 ] || fail "$*: not one rank has printed"
}

# --- by their variables: torchrun and Slurm, which are not started here ---
torch=(env WORLD_SIZE=2 RANK=0 LOCAL_RANK=0 MASTER_ADDR=localhost)
refused "torchrun started several processes (WORLD_SIZE=2), but ranks find each other through MPI" \
    "${torch[@]}" "${anneal[@]}" train run.yaml
grep -qF "use 'anneal train run.yaml -n 2' on one host, or mpirun or srun" err || fail "torchrun: no remedy"
trains 1 env WORLD_SIZE=1 RANK=0 LOCAL_RANK=0 "${anneal[@]}" train run.yaml
job=(env SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_LOCALID=0)
trains 1 "${job[@]}" "${anneal[@]}" train run.yaml # a batch script is one process

attempt 2 train run.yaml --nproc_per_node 2
grep -qF "there is no option '--nproc_per_node': -n N starts N ranks on this machine" err || fail "nproc_per_node: no answer"

# --- what trains nothing may be started by anybody, and is done once ---
trains 1 "${anneal[@]}" train run.yaml
for tool in 'plan run.yaml' 'eval run --data data.csv' 'inspect run'; do
    for rank in 0 1; do
        # shellcheck disable=SC2086
        env OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=$rank "${anneal[@]}" $tool >out 2>err || fail "$tool: it ended with $?"
        [ "$rank" = 0 ] && [ ! -s out ] && fail "$tool: rank 0 does nothing"
        [ "$rank" = 1 ] && [ -s out ] && fail "$tool: rank 1 does it too"
        true
    done
done

# --- an anneal without plugins cannot join processes ---
if [ "$plugins" = null ]; then
    refused 'mpirun of Open MPI started several processes (OMPI_COMM_WORLD_SIZE=4), but they cannot join' \
        env OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 "${anneal[@]}" train run.yaml
    refused '-n 2 needs an MPI, and none was found' "${anneal[@]}" train run.yaml -n 2
    echo "launchers: refused, as this anneal has no MPI"
    exit
fi

# --- real ones ---
tried=0
for mpi in openmpi mpich; do
    case $mpi in
    openmpi) launcher='mpirun.openmpi --oversubscribe' name='Open MPI' other=mpich ;;
    mpich) launcher=mpirun.mpich name=MPICH other=openmpi ;;
    esac
    if ! command -v "${launcher%% *}" >/dev/null || [[ $plugins != *$name* ]]; then
        echo "$name is not there: not tested"
        continue
    fi
    # shellcheck disable=SC2086
    trains 1 $launcher -n 1 "${anneal[@]}" train run.yaml
    # shellcheck disable=SC2086
    trains 2 $launcher -n 2 "${anneal[@]}" train run.yaml
    grep -q "^machine .*2 ranks × 1 thread on .*$name" out || fail "$name: the banner does not show the ranks"
    trains 2 "${anneal[@]}" train run.yaml -n 2 --mpi $mpi
    # One mistake, one message, and no rank hangs.
    # shellcheck disable=SC2086
    refused "--set run.steps=few: run.steps is 'few'" $launcher -n 2 "${anneal[@]}" train run.yaml --set run.steps=few
    # shellcheck disable=SC2086
    refused 'this run has 2 leaves, so at most 2 ranks, but there are 3' $launcher -n 3 "${anneal[@]}" train run.yaml
    if [[ $plugins == *,* ]]; then # another MPI: a world of its own in every process
        # shellcheck disable=SC2086
        refused 'started 2 processes' $launcher -n 2 "${anneal[@]}" train run.yaml --mpi $other
    fi
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || exit 77
trains 2 "${anneal[@]}" train run.yaml -n 2
# Ranks divide the cores, and a number that is given is used although it is too large.
cores=$(env -u OMP_NUM_THREADS nproc)
trains 2 env -u OMP_NUM_THREADS "${anneal[@]}" train run.yaml -n 2
threads=$((cores / 2 > 0 ? cores / 2 : 1))
grep -q "^machine .*2 ranks × $threads thread" out || fail "2 ranks on $cores cores do not have $threads threads each"
trains 2 "${anneal[@]}" train run.yaml -n 2 --threads $((cores + 1))
[ "$(grep -c "^warning: this host has $((2 * (cores + 1))) threads of 2 ranks on $cores cores\?, " err)" = 1 ] ||
    fail "too many threads: no warning"
refused '-n starts ranks, but mpirun of Open MPI has already started several processes' \
    env OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=0 "${anneal[@]}" train run.yaml -n 2
echo "launchers: all as expected"
