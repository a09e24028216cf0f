#!/usr/bin/env bash
# The example learns the sine, and does so in the same way with any number of threads.
#   learns.sh PROGRAM      (ANNEAL_RUN is an emulator and its options)
set -euo pipefail
OMP_NUM_THREADS=1 ${ANNEAL_RUN:-} "$1" >one.txt
OMP_NUM_THREADS=3 ${ANNEAL_RUN:-} "$1" >three.txt

# Memory depends on the threads, results do not.
diff <(grep -v bytes one.txt) <(grep -v bytes three.txt) || { echo "results depend on the number of threads"; exit 1; }

loss=$(awk '$1 == "step" { loss = $4 } END { print loss }' one.txt)
awk -v loss="$loss" 'BEGIN { exit !(loss > 0 && loss < 0.01) }' || { cat one.txt; echo "it did not learn"; exit 1; }
