# shellcheck shell=bash
# Two hosts on one machine: network namespaces joined by a pair of virtual cables. Needs root.
hosts=(anw$$a anw$$b)

hosts_begin() {
    local i
    [ "$(id -u)" = 0 ] && ip netns add "${hosts[0]}" 2>/dev/null || {
        echo "SKIPPED: network namespaces need root"
        exit 77
    }
    ip netns add "${hosts[1]}"
    ip link add cable netns "${hosts[0]}" type veth peer name cable netns "${hosts[1]}"
    for i in 0 1; do
        ip -n "${hosts[i]}" address add 10.77.0.$((i + 1))/24 dev cable
        ip -n "${hosts[i]}" link set cable up
        ip -n "${hosts[i]}" link set lo up
    done
    for i in 0 1; do # which takes up to a second
        until ip netns exec "${hosts[i]}" grep -q up /sys/class/net/cable/operstate; do sleep 0.05; done
    done
    # What a launcher uses in place of ssh: agent [-x] HOST COMMAND... Another host has its own name, shared memory and process numbers.
    cat >agent <<'A'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts --ipc --pid --fork --mount-proc --kill-child sh -c 'hostname "$0" && eval "$1"' "$host" "$*"
A
    chmod +x agent
}

# hosts_launcher MPI EACH: the words that start so many ranks on each host, from the first, in the array `mpirun`
hosts_launcher() {
    local inside=(ip netns exec "${hosts[0]}" unshare --uts sh -c 'hostname "$0" && exec "$@"' "${hosts[0]}")
    case $1 in
    openmpi)
        mpirun=("${inside[@]}" mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca plm_rsh_agent "$PWD/agent"
            --leave-session-attached --mca plm_rsh_no_tree_spawn 1 --mca btl tcp,self --mca pml ob1 --host "${hosts[0]}:$2,${hosts[1]}:$2" -n $((2 * $2)))
        ;;
    mpich)
        export UCX_TLS=tcp,self UCX_NET_DEVICES=cable # else it goes through shared memory, or tries the loopback
        mpirun=("${inside[@]}" mpirun.mpich -launcher ssh -launcher-exec "$PWD/agent" -iface cable -hosts "${hosts[0]}:$2,${hosts[1]}:$2" -n $((2 * $2)))
        ;;
    esac
}

hosts_cut() { ip -n "${hosts[1]}" link set cable down; }

hosts_end() {
    local host
    for host in "${hosts[@]}"; do
        ip netns pids "$host" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
        ip netns del "$host" 2>/dev/null || true
    done
}
