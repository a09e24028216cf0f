#!/usr/bin/env bash
# Three hosts whose network has a delay of 1 ms and loses 1 % of its frames: runs have the hash of one process.
#   network.sh SOURCE-TREE BUILD-FOLDER MPI hash|cut TIMES
# hash: a run of gpt-bf16.yaml on the three, by each strategy of STRATEGIES in turn, with one rank on each, or two by
# `hybrid`. cut: under a supervisor; one host is cut off, and the run goes on with two. With NETWORK_DONE=FILE, what has
# passed is noted there, and is not done again.
export ANNEAL_BIN=$2/bin
source "$(dirname "$0")/../cli/preamble.sh"
source "$(dirname "$0")/launch.sh"
source "$(dirname "$0")/hosts.sh"
tree=$1 build=$2 mpi=$3 scenario=$4 times=$5 config=gpt-bf16
strategies=(${STRATEGIES:-none optimizer gradients full})
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
need_level avx512
launcher "$mpi" 3
at_end() {
    local all
    if [ -n "$process" ]; then
        all=$(descendants "$process")
        kill -KILL $process $all 2>/dev/null || true
    fi
    hosts_end
}
cp "$tree/tests/ranks/$config.yaml" .
python3 "$tree/tests/ranks/make_data.py" "$tree"
has_ended() { [ -e run/summary.json ] || is_gone; }
is_gone() { ! kill -0 "$process" 2>/dev/null; }
sent_of() { ip netns exec "$1" cat /sys/class/net/cable/statistics/tx_bytes; }
# end_job: launchers may hang over a network that loses frames (MPICH's MPI_Finalize does): what counts is the folder
end_job() {
    until_true 10 is_gone || kill -KILL $process $(descendants $process) 2>/dev/null || true
    wait $process 2>/dev/null || true
    process=
}
check_hash() { # EXPECTED
    local hash
    [ -e run/summary.json ] || fail "$what: the run has not ended"
    hash=$(field run/summary.json 'd["state_hash"]')
    [ "$hash" = "$1" ] || fail "$what: state_hash $hash, and not $1"
}

hash() {
    local before planned expected each=1 bytes='d["exchange"]["sent_bytes"]'
    [ "$shard" != hybrid ] || each=2 bytes='8 * d["parameters"] * 2 // 3' # both ranks of a host, there and back, to two of three hosts
    expected=$(sed -n "s/^$config //p" "$tree/tests/ranks/hashes.txt")
    hosts_launcher "$mpi" $each
    before=$(sent_of "${hosts[1]}")
    begin=$(milliseconds)
    "${mpirun[@]}" "${anneal[@]}" train $config.yaml --set run.dir=run --set ranks.threads=1 --set ranks.shard="$shard" >out 2>err &
    process=$!
    until_true 300 has_ended || fail "$what: it does not end"
    end_job
    check_hash "$expected"
    # What was planned did cross the network: nothing has gone another way.
    "${anneal[@]}" plan $config.yaml --ranks $((3 * each)) --rank $each --hosts 3 --set ranks.shard="$shard" --json >plan.json
    planned=$(($(field plan.json "$bytes") * 60))
    sent=$(($(sent_of "${hosts[1]}") - before))
    [ $sent -ge $planned ] || fail "$what: the second host has sent $sent bytes, and its ranks at least $planned"
    result="$(($(milliseconds) - begin)) ms, the second host sent $sent bytes, its ranks $planned at least"
}

# has_made_steps COUNT: or has ended
has_made_steps() {
    local step
    step=$(sed -n 's/^step *\([0-9][0-9]*\)\/.*/\1/p' out | tail -n 1)
    [ "${step:-0}" -ge "$1" ] || is_gone
}
cut() {
    local steps=300
    [ -e alone/summary.json ] || "${anneal[@]}" train $config.yaml --set run.dir=alone --set run.steps=$steps >out 2>err || fail "a run that nobody disturbs: $?"
    # The supervisor's launcher takes the hosts that can be reached, as a scheduler would say.
    printf '%s\n' "${hosts[@]}" >reachable
    mkdir -p bin
    local options
    hosts_options "$mpi" 1 HOSTS
    cat >"bin/mpirun.$mpi" <<L
#!/usr/bin/env bash
for word; do
    [ "\${last:-}" != -n ] || ranks=\$word
    last=\$word
done
list=\$(head -n \$ranks "$PWD/reachable" | sed 's/\$/:1/' | paste -sd ,)
echo "\$ranks \$list" >>"$PWD/starts"
options=($(printf '%q ' "${options[@]}"))
exec "$(command -v "mpirun.$mpi")" "\${options[@]/HOSTS:1/\$list}" "\$@"
L
    chmod +x "bin/mpirun.$mpi"
    : >starts
    PATH=$PWD/bin:$PATH "${hosts_inside[@]}" "${anneal[@]}" train $config.yaml --supervise -n 3 --min-ranks 2 --mpi "$mpi" --set run.dir=run --set run.steps=$steps --set ranks.threads=1 \
        --set ranks.shard="$shard" --set "save.every=20 steps" --set "log.every=5 steps" --set ranks.report_after=3s --set ranks.timeout=6s >out 2>err &
    process=$!
    until_true 120 has_made_steps 60 || fail "$what: it does not begin"
    ! is_gone || fail "$what: it ended before the cut"
    hosts_cut
    printf '%s\n' "${hosts[@]:0:2}" >reachable
    begin=$(milliseconds)
    until_true 300 has_ended || fail "$what: it does not end"
    end_job
    check_hash "$(field alone/summary.json 'd["state_hash"]')"
    grep -qx "2 ${hosts[0]}:1,${hosts[1]}:1" starts || fail "$what: it did not go on with two hosts: $(cat starts)"
    ! grep -q 'this run is finished' out || fail "$what: it was started again after its end"
    result="$(($(milliseconds) - begin)) ms after the cut, $(grep -oE 'restarting it.*' err | head -n 1)"
}

for i in $(seq "$times"); do
    ! { [ -n "${NETWORK_DONE:-}" ] && grep -qsxF "$mpi $scenario $i" "$NETWORK_DONE"; } || continue
    shard=${strategies[i % ${#strategies[@]}]} what="$mpi, $scenario, run $i, $shard"
    rm -rf run
    hosts_begin "$build/bin/relay" 1 1
    "$scenario"
    hosts_end
    lost=$(sed -n 's/.* and \([0-9]*\) were lost/\1/p' relay.out)
    [ "${lost:-0}" -gt 0 ] || fail "$what: nothing was lost: $(cat relay.out)"
    echo "$what: the hash of one process; $result; $(tail -n 1 relay.out)"
    [ -z "${NETWORK_DONE:-}" ] || echo "$mpi $scenario $i" >>"$NETWORK_DONE"
done
