#!/usr/bin/env bash
# Slurm: `srun -n 4 anneal train`, and a batch job that is interrupted and queued again, end with the state of one
# process.
#   slurm.sh SOURCE-TREE
# The test starts a cluster of one node, in namespaces of its own for processes, network and mounts. So its ports and
# files are in nobody's way, and however the test ends, the kernel ends all processes that it has started and drops
# their files.
skip() {
    echo "$1: not tested"
    exit 77
}
if [ "${2:-}" != inside ]; then
    for program in munged slurmctld slurmd srun sbatch ip; do
        command -v $program >/dev/null || skip "$program is not installed (tools/bootstrap installs it)"
    done
    "$ANNEAL_BIN/anneal" version | grep -q 'Open MPI' || skip "this build has no plugin for Open MPI"
    namespaces=(setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc)
    "${namespaces[@]}" true 2>/dev/null || skip "Slurm is started by root, in namespaces, and here this is not allowed"
    "${namespaces[@]}" "$0" "$1" inside &
    inside=$!
    trap 'kill -KILL $inside 2>/dev/null' EXIT # unshare ignores SIGTERM and SIGINT
    wait $inside
    exit
fi
set -e
for folder in /run /dev/shm; do mount -t tmpfs tmpfs $folder; done # /dev/shm has the shared memory of an MPI
export TMPDIR=/run
tree=$1
source "$tree/tests/cli/preamble.sh"
at_end() { [ $? = 0 ] || tail -n 20 -- *.log; }

# --- the cluster ---
# Slurm and mpirun look for an address that is not 127.0.0.1.
ip link add node type veth peer name other
ip address add 10.0.0.1/24 dev node
for device in lo node other; do ip link set $device up; done

export SLURM_CONF=$work/slurm.conf
host=$(hostname -s)
cat >"$SLURM_CONF" <<C
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
# A job that is queued again may start after cred_expire seconds, and is looked for every sched_interval. By default
# these are 120 and 60.
AuthInfo=socket=$work/munge.socket,cred_expire=5
SchedulerParameters=sched_interval=1
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
TmpFS=$work
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc)
PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:4
C
mkdir state spool
head -c 64 /dev/urandom >munge.key
chmod 400 munge.key
munged --foreground --force --num-threads=1 --socket="$work/munge.socket" --key-file="$work/munge.key" \
    --log-file="$work/munge.log" --pid-file="$work/munge.pid" --seed-file="$work/munge.seed" 2>/dev/null &
until_true 30 test -S munge.socket || fail "munged does not start"
slurmctld -D 2>/dev/null &
slurmd -D 2>/dev/null &
is_up() { [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ]; }
until_true 60 is_up || fail "Slurm does not start"

# --- what one process computes ---
python3 "$tree/tests/ranks/make_data.py" "$tree"
cp "$tree/tests/ranks/gpt-bf16.yaml" run.yaml
train=("${anneal[@]}" train run.yaml --set run.isa=auto --set run.steps=3000) # long enough to be interrupted, also where the ranks leave little of the processors to others
export OMP_NUM_THREADS=1
"${train[@]}" --set run.dir=alone >out 2>err || fail "one process ended with $?"
# same FOLDER: the run there is done, and has the state of the one process
same() {
    [ -e "$1/summary.json" ] || fail "$1: nothing was trained" # srun ends with 0 even if it could not start anything
    [ "$(field "$1/summary.json" 'd["state_hash"]')" = "$(field alone/summary.json 'd["state_hash"]')" ] ||
        fail "$1: it has another state than one process"
}

# --- srun ---
# Each process has SLURM_PROCID, SLURM_LOCALID, SLURM_STEP_ID and SLURM_STEP_NUM_TASKS. With --mpi=pmix, which Open MPI
# needs, it also has PMIX_RANK and PMIX_NAMESPACE (slurm.pmix.JOB.STEP), but no variable of PMIx has the size. With
# --mpi=pmi2, which MPICH needs, it has PMI_RANK, PMI_SIZE and PMI_FD. With --mpi=none it has none of these, and every
# process is rank 0 of 1. tests/comm/mpirun.sh says what HWLOC_COMPONENTS is for; `anneal train -n` below has to do
# without.
train_on_four() { HWLOC_COMPONENTS=-opencl exec srun --mpi=pmix --overcommit -n 4 "${train[@]}" "$@" >out 2>err; }
# The run stops when `anneal stop` asks for it, as outcome.json says, and another srun goes on from its checkpoint.
train_on_four --set run.dir=srun --set log.every='1 steps' &
process=$!
trains() { grep -qs '"step"' srun/metrics.jsonl; }
until_true 60 trains || fail "srun trains nothing"
"${anneal[@]}" stop srun >stop.out 2>&1 || fail "anneal stop ended with $?: $(cat stop.out)"
wait $process || fail "srun ended with $? after anneal stop"
process=
[ "$(field srun/outcome.json 'd["end"], d["reason"]')" = 'stopped on request anneal stop' ] || fail "outcome.json says something else"
(train_on_four --set run.dir=srun --set log.every='1 steps') || fail "srun ended with $? when it went on"
same srun

# --- a batch job that is interrupted ---
# In a batch script SLURM_PROCID is 0 and SLURM_NTASKS is 4, but it is one process: there is no SLURM_STEP_ID.
cat >job.sh <<J
#!/usr/bin/env bash
#SBATCH --ntasks=4 --overcommit --output=job.log
#SBATCH --signal=B:USR1@300 --requeue --open-mode=append --no-kill
# Behind others: on a busy machine Slurm takes seconds to pass a signal on, and the run must not be over by then.
nice -n 19 ${train[*]} --set run.dir=batch --supervise -n 4 & p=\$!
trap 'kill -USR1 \$p' USR1
# Once, as soon as it trains, the signal that Slurm sends 300 seconds before the end of the job's time. From here, as on
# a busy machine the test may see nothing of a job until it is over.
{ until grep -qs '"step"' batch/metrics.jsonl; do sleep 0.05; done; mkdir asked && scancel --batch --signal=USR1 \$SLURM_JOB_ID; } &
while kill -0 \$p 2>/dev/null; do wait \$p; done
wait \$p
r=\$?
[ \$r = 75 ] && scontrol requeue \$SLURM_JOB_ID
exit \$r
J
job=$(sbatch --parsable job.sh)
# shows KEY WORD: `scontrol show job` says so
shows() { scontrol show job "$job" | grep -qw "$1=$2"; }
until_true 60 shows Restarts 1 || fail "the job is not queued again"
until_true 120 shows JobState COMPLETED || fail "the job does not end"
same batch
[ "$(grep -c 'stopped on request' job.log)" = 1 ] || fail "the job was not interrupted once"
echo "slurm: all as expected"
