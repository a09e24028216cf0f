# shellcheck shell=bash
# Several hosts on one machine: network namespaces joined by a virtual cable, or by a switch with a delay and a loss
# (relay.c). Needs root.
hosts=(anw$$a anw$$b)
relay_process=

# hosts_begin [RELAY MILLISECONDS PERCENT]: two hosts, or three at the switch, which is the program of relay.c
hosts_begin() {
    local i host
    [ $# = 0 ] || hosts=(anw$$a anw$$b anw$$c)
    [ "$(id -u)" = 0 ] && ip netns add "${hosts[0]}" 2>/dev/null || {
        echo "SKIPPED: network namespaces need root"
        exit 77
    }
    for host in "${hosts[@]:1}"; do ip netns add "$host"; done
    if [ $# = 0 ]; then
        ip link add cable netns "${hosts[0]}" type veth peer name cable netns "${hosts[1]}"
    else
        : >relay.out
        "$@" "${hosts[@]}" >relay.out 2>&1 &
        relay_process=$!
        until_true 10 grep -q ready relay.out || {
            echo "SKIPPED: $(cat relay.out)"
            exit 77
        }
    fi
    for i in "${!hosts[@]}"; do
        ip -n "${hosts[i]}" address add 10.77.0.$((i + 1))/24 dev cable
        ip -n "${hosts[i]}" link set cable up
        ip -n "${hosts[i]}" link set lo up
    done
    for host in "${hosts[@]}"; do # which takes up to a second
        until ip netns exec "$host" grep -q 1 /sys/class/net/cable/carrier; do sleep 0.05; done
    done
    # What a launcher uses in place of ssh: agent [-x] HOST COMMAND... Another host has its own name, shared memory and
    # process numbers.
    cat >agent <<'A'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts --ipc --pid --fork --mount-proc --kill-child sh -c 'hostname "$0" && eval "$1"' "$host" "$*"
A
    chmod +x agent
}

# hosts_options MPI EACH HOST...: the launcher's options for so many ranks on each of these hosts, in the array
# `options`
hosts_options() {
    local mpi=$1 each=$2 list
    shift 2
    list=$(printf "%s:$each," "$@")
    case $mpi in
    openmpi)
        options=(--mca plm_rsh_agent "$PWD/agent" --leave-session-attached --mca plm_rsh_no_tree_spawn 1 --mca btl tcp,self --mca pml ob1 --host "${list%,}")
        ;;
    mpich)
        export UCX_TLS=tcp,self UCX_NET_DEVICES=cable # else it goes through shared memory, or tries the loopback
        options=(-launcher ssh -launcher-exec "$PWD/agent" -iface cable -hosts "${list%,}")
        ;;
    esac
}

# hosts_launcher MPI EACH: the words that start so many ranks on each host, from the first, in the array `mpirun`
hosts_launcher() {
    local options
    hosts_options "$1" "$2" "${hosts[@]}"
    mpirun=("${hosts_inside[@]}" "${without_opencl[@]}" "mpirun.$1")
    [ "$1" = mpich ] || mpirun+=(--allow-run-as-root --oversubscribe --bind-to none)
    mpirun+=("${options[@]}" -n $((${#hosts[@]} * $2)))
}
# Words before a command that is to run on the first host.
hosts_inside=(ip netns exec "${hosts[0]}" unshare --uts sh -c 'hostname "$0" && exec "$@"' "${hosts[0]}")

# The last host.
hosts_cut() { ip -n "${hosts[-1]}" link set cable down; }

hosts_end() {
    local host
    if [ -n "$relay_process" ]; then # before the host that it is on
        kill "$relay_process" 2>/dev/null || true
        wait "$relay_process" 2>/dev/null || true
        relay_process=
    fi
    for host in "${hosts[@]}"; do
        ip netns pids "$host" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
        ip netns del "$host" 2>/dev/null || true
    done
}
