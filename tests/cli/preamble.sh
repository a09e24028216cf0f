# shellcheck shell=bash
# What scripts here begin with: `source "$(dirname "$0")/preamble.sh"`. ANNEAL_BIN is the folder of the command,
# ANNEAL_RUN an emulator and its options. The script runs in a new folder, which is removed at the end.
set -euo pipefail
anneal=(${ANNEAL_RUN:-} "$ANNEAL_BIN/anneal")
work=$(mktemp -d)
process=        # that the script has started and that is still at work; "": none
at_end() { :; } # a script that starts more has its own
trap 'at_end; [ -z "$process" ] || kill -KILL "$process" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
: >out
: >err

fail() {
    printf 'FAILED: %s\n' "$1"
    tail -n 40 out err
    exit 1
}
# attempt CODE ARGUMENT...: the command must end with CODE; what it wrote is in out and err
attempt() {
    local expected=$1
    shift
    command=("$@")
    code=0
    "${anneal[@]}" "$@" >out 2>err || code=$?
    [ "$code" = "$expected" ] || failed "expected exit code $expected"
}
# failed WORDS: the line that reproduces the attempt, then what came of it
failed() {
    printf 'FAILED: anneal'
    printf ' %q' "${command[@]}"
    printf '\n%s\n--- standard output, exit code %s\n%.4000s\n--- standard error\n%s\n' "$1" "$code" "$(cat out)" "$(cat err)"
    exit 1
}
# has_level LEVEL: whether a run may use these instructions, by the machine and by ANNEAL_MAX_ISA
has_level() {
    "${anneal[@]}" plan gpt2-124m --isa "$1" >out 2>err && return
    grep -q "the instruction set $1" err || fail "nobody says whether there is the level $1"
    return 1
}
# need_level LEVEL: ends a test whose runs are of a level that there is not
need_level() {
    has_level "$1" || {
        echo "SKIPPED: the run is of instruction level $1, which this machine does not have, or ANNEAL_MAX_ISA does not allow"
        exit 77
    }
}
# until_true SECONDS COMMAND...: waits for something to be true
until_true() {
    local most=$1
    shift
    for _ in $(seq "$((most * 20))"); do
        ! "$@" || return 0
        sleep 0.05
    done
    return 1
}
# field FILE EXPRESSION: what a JSON file has, `d`
field() { python3 -c "import json; d = json.load(open('$1')); print($2)"; }
