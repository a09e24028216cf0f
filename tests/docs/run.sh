#!/usr/bin/env bash
# Does what a document says: writes the files that it shows, and runs every command in it, in order, as its reader
# would.
#   run.sh SOURCE-TREE BUILD DOCUMENT [WITHOUT]
# Lines with commands that match WITHOUT (an extended regular expression) are left out, and what they make is not looked
# at.
# The README is read in the tree, after whose build it is; tutorials in an empty folder, with anneal installed in
# ~/anneal.
set -euo pipefail
tree=$1 build=$2 document=$3 without=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work/home
mkdir -p "$HOME" "$work/folder"

# Blocks in `sh` are commands. A block behind <!-- file: NAME --> is a file. Anything else is for reading only.
awk -v folder="$work/files" '
    BEGIN { system("mkdir -p " folder) }
    /^<!-- file: .* -->$/ { name = $3; next }
    /^```/ && !inside { inside = 1; kind = substr($0, 4); to = ""
        if (name != "") to = folder "/" name
        else if (kind == "sh") to = folder "/commands"
        if (kind == "c" && name == "") { print "a program that is in no file" > "/dev/stderr"; exit 1 }
        if (name != "") print "cp \"" to "\" ." > (folder "/commands")
        name = ""; next }
    /^```/ { inside = 0; next }
    inside && to != "" { print > to }' "$tree/$document"
if [ -n "$without" ]; then
    grep -qE -- "$without" "$work/files/commands" || { echo "FAILED: $document has no command '$without'"; exit 1; }
    sed -i -E "\\#$without#d" "$work/files/commands"
fi
[ -s "$work/files/commands" ] || { echo "$document has no command"; exit 1; }

if [ "$document" = README.md ]; then
    cd "$tree"
    # What the README makes there, and nothing else, goes again; what is there already is somebody's.
    made=(runs curves.svg anneal-char-gpt digits.yaml digits.c digits)
    for name in "${made[@]}"; do
        [ ! -e "$name" ] || { echo "FAILED: $tree/$name is in the way of what the README makes"; exit 1; }
    done
    trap 'cd "$tree" && rm -rf "${made[@]}" "$work"' EXIT
else
    cmake --install "$build" --prefix "$HOME/anneal" >/dev/null
    cd "$work/folder"
fi
set +e
SECONDS=0
bash -eux "$work/files/commands" >"$work/out" 2>"$work/err"
code=$?
set -e
[ $code = 0 ] || { tail -n 40 "$work/out" "$work/err" && echo "FAILED: $document: a command ended with $code" && exit 1; }
tail -n 5 "$work/out"
export TOOK=$SECONDS # for what looks at it below
# What a document made is looked at where somebody wrote down how it should be.
after=$here/after-$(basename "$document" .md).py
[ -n "$without" ] || [ ! -e "$after" ] || python3 "$after" "$tree" "$work/out" || { echo "FAILED: $document: what its commands made is not right"; exit 1; }
