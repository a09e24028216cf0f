#!/usr/bin/env bash
# An operator of a cluster: unpacks without root where nobody may write, looks at the machine, loads the module, and
# leaves runs alone that are killed, preempted and damaged.
#   operator.sh UNPACKED-TARBALL
source "$(dirname "$0")/preamble.sh"

# A shared folder of applications: moved to its place, and read-only from then on.
mkdir apps
cp -a "$prefix" apps/anneal
chmod -R a-w apps/anneal
trap 'chmod -R u+w "$work/apps"; rm -rf "$work"' EXIT
# LD_LIBRARY_PATH of a cluster names folders with other versions of the same libraries: these are not even libraries.
mkdir other
for name in apps/anneal/lib/anneal/*; do echo nonsense >"other/$(basename "$name")"; done
export PATH=$work/apps/anneal/bin:$PATH
[ "$(command -v anneal)" = "$work/apps/anneal/bin/anneal" ] || fail "another anneal is in PATH"
run env LD_LIBRARY_PATH="$work/other" anneal version
sees '^anneal +[0-9]'
run anneal doctor
sees 'processors'

module=$work/apps/anneal/share/anneal/modulefiles/anneal
[ -e "$module"/*.* ] || fail "there is no module file"
sees '^#%Module1.0' "$(echo "$module"/*.*)"

digits=apps/anneal/share/anneal/examples/mnist/mlp.yaml
short=(--set run.epochs=6 --set save.every=50 --set batch.leaves=2) # two leaves: one rank or two, with the same bits
run anneal train $digits "${short[@]}" --set run.dir=runs/quiet

# Supervised, and killed from outside while it trains.
printf '$ anneal train %s --supervise    (and kill -9)\n' $digits
anneal train $digits "${short[@]}" --set run.dir=runs/killed --supervise >out 2>&1 &
supervisor=$!
training=
for _ in $(seq 200); do
    # Its child, once there is a checkpoint to continue from.
    training=$(cat /proc/$supervisor/task/$supervisor/children 2>/dev/null || true)
    [ -z "$training" ] || [ -z "$(ls runs/killed/checkpoints 2>/dev/null)" ] || break
    sleep 0.02
done
kill -9 $training || fail "it was over before it could be killed"
wait $supervisor || fail "the supervisor ended with $?"
sees 'killed \(signal 9\).*restarting it'
[ "$(weights runs/killed)" = "$(weights runs/quiet)" ] || fail "the killed run ended with other weights"

# Preempted: TERM, as Slurm sends it. The same command continues.
printf '$ anneal train %s    (and kill -TERM)\n' $digits
anneal train $digits "${short[@]}" --set run.dir=runs/preempted >out 2>&1 &
training=$!
for _ in $(seq 200); do
    [ ! -s runs/preempted/metrics.jsonl ] || break
    sleep 0.02
done
kill -TERM $training
code=0
wait $training || code=$?
[ $code = 75 ] || fail "TERM ended it with $code and not with 75"
run anneal train $digits "${short[@]}" --set run.dir=runs/preempted
[ "$(weights runs/preempted)" = "$(weights runs/quiet)" ] || fail "the preempted run ended with other weights"

# A disk that loses a bit is found.
run anneal verify runs/quiet
sees 'intact'
newest=$(ls -d runs/quiet/checkpoints/step-* | tail -n 1)
file=$(ls "$newest"/*.safetensors | head -n 1)
printf 'x' | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") / 2)) conv=notrunc status=none
refused 1 anneal verify runs/quiet
sees "$(basename "$file")"

# Two ranks, if this machine has an MPI; else the message says what is missing.
if command -v mpirun >/dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    run anneal train $digits "${short[@]}" --set run.dir=runs/ranks -n 2
    [ "$(weights runs/ranks)" = "$(weights runs/killed)" ] || fail "two ranks ended with other weights"
else
    refused 2 anneal train $digits "${short[@]}" --set run.dir=runs/ranks -n 2
    sees 'needs an MPI'
fi
[ -z "$(find apps/anneal -newer apps/anneal/bin/anneal -newer other -type f)" ] || fail "something was written to the folder of applications"
