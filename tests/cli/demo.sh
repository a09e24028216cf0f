#!/usr/bin/env bash
# `anneal demo` from an installed tree, with no network interface and no root: it trains until it is told to stop, and
# says how to go on. What a whole run learns is looked at where the README asks for it (tests/docs/after-README.py).
#   demo.sh SOURCE-TREE BUILD
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$2" --prefix "$work/prefix" >/dev/null
chmod -R a+rX "$work"
mkdir -m 777 "$work/folder"
cd "$work/folder"

# A network namespace of its own has no interface that is up, not even the loopback. Root becomes nobody.
alone=(unshare --net --map-root-user --user)
[ "$(id -u)" != 0 ] || alone=(unshare --net setpriv --reuid=65534 --regid=65534 --clear-groups)
"${alone[@]}" true 2>/dev/null || { echo "no namespaces on this machine: with its network"; alone=(env); }
"${alone[@]}" "$work/prefix/bin/anneal" demo >list
grep -q '^char-gpt ' list

process=
trap '[ -z "$process" ] || kill -KILL $process 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { tail -n 5 out err && echo "FAILED: $*" && exit 1; }
# demo_until STEP: starts the demo, and tells it to stop once this step has a line
demo_until() {
    "${alone[@]}" env HOME=/nonexistent "$work/prefix/bin/anneal" demo char-gpt >out 2>err &
    process=$!
    until grep -q "\"step\": *$1[,}]" anneal-char-gpt/run/metrics.jsonl 2>/dev/null; do
        kill -0 $process 2>/dev/null || fail "the demo ended by itself"
        sleep 0.2
    done
    kill -TERM $process
    code=0
    wait $process || code=$?
    process=
    [ $code = 75 ] || fail "the demo ended with $code"
    grep -q 'saved; run the same command to continue' out || fail "it does not say how to go on"
}

demo_until 10
# The same command goes on from there, with the config as its reader may have changed it.
echo '# a remark of its reader' >>anneal-char-gpt/char.yaml
demo_until 40
! grep -q '^step *1/' out || fail "the demo began again"
grep -q 'a remark of its reader' anneal-char-gpt/char.yaml || fail "the demo wrote over a file that was there"
