#!/usr/bin/env bash
# docs/traps.md keeps its promise: at least 40 traps, each with a test that is there and is run.
#   check-traps.sh [TREE]
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
least=40

# A test is a function that cmocka is given, or a name that ctest is.
functions=$(grep -rhoE --include='*.c' '^static void test_[a-z0-9_]+\(' tests | sed -E 's/.* (test_[a-z0-9_]+).*/\1/' | sort -u)
given=$(grep -rhoE --include='*.c' 'cmocka_unit_test[a-z_]*\(test_[a-z0-9_]+' tests | sed -E 's/.*\(//' | sort -u)
checks=$(grep -rhoE --include=CMakeLists.txt 'anneal_(check|test)\(NAME [a-z0-9_-]+' tests | sed -E 's/.*NAME //' | sort -u)
known="$(comm -12 <(echo "$functions") <(echo "$given")) $checks"

awk -v known="${known//$'\n'/ }" -v least="$least" '
function refuse(words) { print "docs/traps.md: " words; refused++ }
function finish() { if (title != "" && !named) refuse("\"" title "\" names no test") }
function exists(path,  ignored, found) { found = (getline ignored < path) >= 0; close(path); return found }
function word(pattern) { # the next one between backquotes, cut off the line
    if (!match(line, pattern)) return ""
    found = substr(line, RSTART + 1, RLENGTH - 2)
    line = substr(line, RSTART + RLENGTH)
    return found
}

BEGIN { n = split(known, names, " "); for (i = 1; i <= n; i++) is_known[names[i]] = 1 }
/^## / {
    finish()
    title = substr($0, 4); named = 0; headings++
    if (seen[title]++) refuse("\"" title "\" stands twice")
    next
}
title != "" {
    line = $0
    while ((name = word("`test_[a-z0-9_]+`")) != "") {
        named++
        if (!(name in is_known)) refuse("\"" title "\" names " name ", which is no test in tests/")
    }
    line = $0
    while ((name = word("`tests/[^`]+`")) != "") if (!exists(name)) refuse("\"" title "\" names " name ", which is not there")
}
END {
    finish()
    if (headings < least) refuse("it has " headings + 0 " traps, fewer than " least)
    if (refused) exit 1
    print headings " traps"
}' docs/traps.md
