# shellcheck shell=bash
# What walks begin with: `source "$(dirname "$0")/preamble.sh"`. The first argument of a walk is the folder that the
# tarball was unpacked to. A walk has a folder and a home of its own, `anneal` in PATH, and nothing of the tree or of
# the build in its environment.
set -euo pipefail
[ -x "$1/bin/anneal" ] || { echo "skipped: there is no tarball in $1"; exit 77; }
prefix=$(realpath "$1")
walks=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -z "${WALKING:-}" ]; then
    exec env -i WALKING=1 PATH="$prefix/bin:$PATH" LC_ALL=C.UTF-8 OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive bash "$0" "$@"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work
cd "$work"
examples=$prefix/share/anneal/examples

fail() {
    printf 'FAILED: %s\n' "$*"
    [ ! -e out ] || tail -n 40 out
    exit 1
}
# run COMMAND...: shows the command as a person types it; what it writes is in `out`
run() {
    printf '$ %s\n' "$*"
    "$@" >out 2>&1 || fail "it ended with $?"
}
# refused CODE COMMAND...: as run, for a command that must end with CODE
refused() {
    local expected=$1 code=0
    shift
    printf '$ %s\n' "$*"
    "$@" >out 2>&1 || code=$?
    [ $code = "$expected" ] || fail "it ended with $code and not with $expected"
}
# sees PATTERN [FILE]: what a person would look for on the screen, or in a file
sees() { grep -qE -- "$1" "${2:-out}" || fail "there is no '$1' in ${2:-what it wrote}"; }
# at_least NUMBER KEY RUN: a metric of the run's summary
at_least() {
    local value
    value=$(sed -nE "s/.*\"$2\": *([-0-9.e]+).*/\1/p" "$3/summary.json" | head -n 1)
    awk -v value="$value" -v least="$1" 'BEGIN { exit !(value != "" && value + 0 >= least) }' || fail "$2 of $3 is '$value', not $1 or more"
    printf '  %s %s\n' "$2" "$value"
}
at_most() {
    local value
    value=$(sed -nE "s/.*\"$2\": *([-0-9.e]+).*/\1/p" "$3/summary.json" | head -n 1)
    awk -v value="$value" -v most="$1" 'BEGIN { exit !(value != "" && value + 0 <= most) }' || fail "$2 of $3 is '$value', not $1 or less"
    printf '  %s %s\n' "$2" "$value"
}
# weights RUN: the hash of the weights at the end of a run
weights() { sed -nE 's/.*"weights[a-z_]*": *"([0-9a-f]+)".*/\1/p' "$1/summary.json"; }
