# shellcheck shell=bash
# What scripts about ranks share: launchers, and the processes that they started.

# Before a launcher that no anneal starts: tests/comm/mpirun.sh says why.
without_opencl=(env HWLOC_COMPONENTS=-opencl)

# launcher MPI RANKS: the words that start so many ranks, in the array `mpirun`
launcher() {
    case $1 in
    openmpi) mpirun=("${without_opencl[@]}" mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none -n "$2") ;;
    mpich) mpirun=("${without_opencl[@]}" mpirun.mpich -n "$2") ;;
    *) fail "no MPI is called $1" ;;
    esac
    command -v "mpirun.$1" >/dev/null || {
        echo "SKIPPED: there is no mpirun.$1"
        exit 77
    }
}

# two_hosts BUILD-FOLDER MPI RANKS: the words that make of as many neighbouring ranks two hosts, in the array
# `two_hosts`; none for an odd number, which is one host
two_hosts() {
    two_hosts=()
    [ $(($3 % 2)) = 1 ] || two_hosts=(env "LD_PRELOAD=$1/lib/libtwo_hosts_$2.so")
}

# descendants PROCESS: of a process, one a line
descendants() {
    { sed -s 's/^\([0-9]*\) .*) . \([0-9]*\) .*/\1 \2/' /proc/[0-9]*/stat 2>/dev/null || true; } | awk -v first="$1" '
        { parent[$1] = $2 }
        END { for (p in parent) { for (q = p; q in parent; q = parent[q]) if (parent[q] == first) { print p; break } } }'
}

# rank_process PROCESS RANK: which of its descendants is this rank; "": none
rank_process() {
    local p value
    for p in $(descendants "$1"); do
        value=$(tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | sed -n 's/^\(OMPI_COMM_WORLD_RANK\|PMI_RANK\)=//p' | tail -n 1) || continue
        [ "$value" = "$2" ] && echo "$p" && return 0
    done
    return 0
}

# until_true SECONDS COMMAND...: waits for something to be true
until_true() {
    local end=$((SECONDS + $1 + 1))
    shift
    while ! "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}
milliseconds() { echo $(($(date +%s%N) / 1000000)); }
