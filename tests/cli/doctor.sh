#!/usr/bin/env bash
# `anneal doctor`: says what there is, finds what slows a run down, and ends with 0 whatever it finds.
source "$(dirname "$0")/preamble.sh"

# run CODE ARGUMENT...: the command must end with CODE; what it wrote is in out and err
run() {
    local expected=$1
    attempt "$@"
    [ "$expected" != 0 ] || [ ! -s err ] || failed "expected nothing on standard error"
}
says() { grep -qE -- "$1" out || failed "standard output does not say: $1"; }
complains() { grep -qF -- "$1" err || failed "standard error does not say: $1"; }

unset OMP_NUM_THREADS OMP_WAIT_POLICY ANNEAL_MAX_ISA HWLOC_COMPONENTS HWLOC_PLUGINS_PATH OCL_ICD_VENDORS
run 0 doctor
for words in '^anneal +0\.' '^processor +[^ ]' '^instructions +[^ ]' '^level +(base|avx2|avx512|amx)' \
    '^AMX +(permitted|limited|refused|none)$' '^processors +[0-9]+.*; load ' '(no cgroup limit|the cgroup allows)' \
    '^memory +[0-9.]+ [KMGT]iB, ' '^speed +f32 [0-9.]+ .FLOP/s, bf16 [0-9.]+ .FLOP/s, memory [0-9.]+ .B/s' \
    '^threads +[0-9]+; idle ones (spin 0\.2 ms, then sleep|sleep immediately)$' '^OpenMP +lib(g|i)?omp' '^oneDNN +(3\.|none)' '^MPI +.*; plugins for ' \
    '^(What would make it faster:|Nothing was found that would make it faster\.)$'; do
    says "$words"
done

# --- what slows a run down is found, with what to do about it ---
processors=$(getconf _NPROCESSORS_ONLN)
OMP_NUM_THREADS=$((processors + 3)) OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=7 run 0 doctor --json
python3 - "$processors" out <<'PYTHON' || failed "--json is not as expected"
import json, sys
facts = json.load(open(sys.argv[2]))
threads = int(sys.argv[1]) + 3
assert facts["openmp"]["threads"] == threads, facts["openmp"]
assert facts["openmp"]["variables"] == {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "7"}
assert facts["threads"] == threads and facts["spin_seconds"] == 0, facts
assert 1 <= facts["processors_allowed"] <= facts["processors"], facts
assert facts["memory_bytes"] >= facts["memory_available_bytes"] > 0, facts
assert facts["f32_flops_per_second"] > 0 and facts["bytes_per_second"] > 0, facts
advice = "\n".join(facts["advice"])
for words in (f"{threads} threads share {facts['processors_allowed']} processor", "OMP_WAIT_POLICY=passive", "GOMP_SPINCOUNT has no effect"):
    assert words in advice, (words, advice)
PYTHON

# --- a limit of instructions is shown; a word that is no level is an error ---
run 0 doctor --json
level=$(field out 'd["isa"]')
ANNEAL_MAX_ISA=base run 0 doctor
says '^level +base'
says '^ +ANNEAL_MAX_ISA=base$'
if [ "$level" != base ]; then
    says '^level +base, limited by ANNEAL_MAX_ISA$'
    says 'ANNEAL_MAX_ISA=base keeps kernels from using'
    ANNEAL_MAX_ISA=base run 0 doctor --json
    [ "$(field out 'd["isa"], d["openmp"]["variables"]["ANNEAL_MAX_ISA"]')" = 'base base' ] || failed 'JSON does not say that instructions are limited'
fi
ANNEAL_MAX_ISA=avx run 2 doctor
complains "the environment variable ANNEAL_MAX_ISA is 'avx'; set it to base, avx2, avx512 or amx, or unset it"

# --- how threads wait: a fraction of a millisecond, unless the user says something else ---
spin() { python3 -c 'import json; print(json.load(open("out"))["spin_seconds"])'; }
run 0 doctor --json
[ "$(spin)" = 0.0002 ] || [ "$(python3 -c 'import json; f = json.load(open("out")); print(f["threads"] > f["processors_allowed"])')" = True ] ||
    failed "threads do not spin for 0.2 ms"
OMP_WAIT_POLICY=active run 0 doctor
says '; idle ones spin without sleeping$'
OMP_WAIT_POLICY=passive run 0 doctor
says '; idle ones sleep immediately$'

# --- an MPI is found by its launcher, and the library beside it ---
mkdir -p mpi/bin mpi/lib
touch mpi/bin/mpirun mpi/lib/libmpi.so.40
PATH=$work/mpi/bin:$PATH run 0 doctor --json
grep -qF "\"launcher\": \"$work/mpi/bin/mpirun\"" out || failed "mpirun was not found"
grep -qF '"name": "Open MPI"' out || failed "libmpi.so.40 was not found"

# --- Open MPI's hwloc would load a driver of OpenCL into every rank ---
mkdir -p plugins drivers
touch plugins/hwloc_opencl.so drivers/some.icd
export HWLOC_PLUGINS_PATH=$work/plugins OCL_ICD_VENDORS=$work/drivers
PATH=$work/mpi/bin:$PATH run 0 doctor
says '^What can make a run fail:$'
tr -s '\n ' ' ' <out | grep -qF "Open MPI's hwloc loads the OpenCL driver of $work/drivers/some.icd" || failed 'it does not warn of OpenCL'
PATH=$work/mpi/bin:$PATH run 0 doctor --json
[ "$(field out 'len(d["warnings"]), "set HWLOC_COMPONENTS=-opencl" in d["warnings"][0]')" = '1 True' ] || failed 'JSON does not warn of OpenCL'
PATH=$work/mpi/bin:$PATH HWLOC_COMPONENTS=-opencl run 0 doctor --json
[ "$(field out 'd["warnings"]')" = '[]' ] || failed 'it warns although opencl is switched off'

# --- wrong use ---
run 2 doctor more
complains "unexpected argument 'more': this command takes none"
run 2 doctor --jsn
complains "there is no option '--jsn'; did you mean '--json'?"

echo "doctor: all as expected"
