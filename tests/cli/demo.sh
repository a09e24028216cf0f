#!/usr/bin/env bash
# `anneal demo char-gpt` from an installed tree, with no network interface and no root: what it writes is mostly words, and the example
# that it trains, examples/shakespeare/char.yaml, reaches the loss that is expected of it.
#   demo.sh SOURCE-TREE BUILD
set -euo pipefail
tree=$1
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
"${alone[@]}" env HOME=/nonexistent "$work/prefix/bin/anneal" demo char-gpt >out 2>err || { tail -n 5 out err && exit 1; }
python3 - "$tree/examples/shakespeare/tinyshakespeare.txt" <<'P'
import json, re, sys
words = lambda text: re.findall(r"[A-Za-z']+", text)
known = set(words(open(sys.argv[1]).read()))
said = open("out").read().split("A sample of what it writes now:\n\n")[1].split("\nNext:")[0]
assert len(said) >= 500, len(said)
found = words(said[:500])
share = sum(word in known for word in found) / len(found)
print(said[:500], f"\n--- {100 * share:.0f} % of {len(found)} words are in the training text")
loss = json.load(open("anneal-char-gpt/run/summary.json"))["metrics"]["val_loss"]
print(f"--- val_loss {loss:.4f}, at most 1.92")
sys.exit(share < 0.6 or not loss <= 1.92)
P
grep -q 'anneal train anneal-char-gpt/char.yaml' out
