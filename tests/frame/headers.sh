#!/usr/bin/env bash
# Every public header alone, as C99, C11 and C++17, without a warning: a program may be older than the library, and
# include what it needs in any order.
#   headers.sh SOURCE
set -uo pipefail
cd "$1"
failed=0
for header in include/anneal/*.h; do
    name=${header#include/}
    # mpi.h is for programs that have MPI, and places.h a part of graph.h.
    case $name in anneal/mpi.h | anneal/places.h) continue ;; esac
    for compiler in 'gcc -std=c99 -x c' 'gcc -std=c11 -x c' 'g++ -std=c++17 -x c++'; do
        $compiler -pedantic -Wall -Wextra -Werror -fsyntax-only -Iinclude - <<<"#include \"$name\"" ||
            { echo "$name does not compile alone with $compiler"; failed=1; }
    done
done
exit $failed
