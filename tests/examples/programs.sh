#!/usr/bin/env bash
# The examples that are programs learn what they are to learn.
#   programs.sh SPIRALS SURROGATE CONFIG      (ANNEAL_RUN is an emulator and its options)
set -euo pipefail
export OMP_NUM_THREADS=2
${ANNEAL_RUN:-} "$1" | tee spirals.txt
awk '/^step/ { accuracy = $6 } END { exit !(accuracy >= 0.98) }' spirals.txt || { echo "it did not learn the spirals"; exit 1; }
grep -q 'belongs to arm 0; it is of arm 0' spirals.txt
${ANNEAL_RUN:-} "$2" "$3" | tee surrogate.txt
awk '/relative error/ { error = $NF } END { exit !(error > 0 && error < 0.02) }' surrogate.txt || { echo "it did not learn the reactions"; exit 1; }
