#!/usr/bin/env bash
# Runs a program on several ranks of this machine, whoever runs it and however many cores there are.
#   mpirun.sh openmpi|mpich RANKS PROGRAM [ARGUMENT...]
# MPIRUN_SECONDS (300) is for what hangs: then the launcher is ended, and its ranks with it. Exit code 77: this machine
# does not have the launcher.
set -euo pipefail
mpi=$1 ranks=$2
shift 2
launcher=mpirun.$mpi
command -v "$launcher" >/dev/null || { echo "mpirun.sh: there is no $launcher here"; exit 77; }
# Open MPI's hwloc would load an OpenCL driver, if there is one, into mpirun and every rank: it blocks signals, and
# aborts under a limit of memory.
export HWLOC_COMPONENTS=${HWLOC_COMPONENTS:--opencl}
case $mpi in
openmpi)
    # Ranks would be bound to a core each, and a third one refused on two cores.
    options=(--oversubscribe --bind-to none)
    [ "$(id -u)" -ne 0 ] || options+=(--allow-run-as-root)
    ;;
mpich) options=() ;;
*)
    echo "mpirun.sh: $mpi is neither openmpi nor mpich" >&2
    exit 2
    ;;
esac
# For programs that were built with sanitizers: both MPIs leave memory behind at their end, parts of Open MPI are
# unloaded by then, so that nobody has allocated it, and the search for leaks itself fails now and then beside MPICH's
# threads. That anneal releases what it allocates is tested by its own count (conformance.c, leaks).
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
exec timeout --kill-after=10 "${MPIRUN_SECONDS:-300}" "$launcher" "${options[@]}" -n "$ranks" "$@"
