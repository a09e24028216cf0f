#!/usr/bin/env bash
# Pipes, devices and folders where a run has its files: each is refused by name, and nothing waits for them. A config,
# which is read once, may come through a pipe.
source "$(dirname "$0")/preamble.sh"
export OMP_NUM_THREADS=1
readonly patience=60 # seconds: what takes longer waits for ever

# run CODE COMMAND...: ends with CODE, in time
run() {
    local wanted=$1 code=0
    shift
    timeout -s KILL "$patience" "$@" >out 2>err || code=$?
    [ "$code" = "$wanted" ] || fail "$* ends with $code, not $wanted"
}
says() { grep -qF -- "$1" err || fail "it does not say: $1"; }

seq 1 40 | awk '{ printf "%d,%g,%g\n", $1, $1 / 7, $1 * 2 }' | sed '1i a,b,y' >rows.csv
config='run: {dir: run, steps: STEPS}
model: {type: mlp, hidden: [8]}
data: {train: {type: csv, path: rows.csv}}
batch: {global: 8}'
printf '%s\n' "${config/STEPS/4}" >c.yaml
printf '%s\n' "${config/STEPS/8}" >longer.yaml

# begin KIND: a run of four steps with a checkpoint, of which a copy is used up by each test
run 0 "${anneal[@]}" train c.yaml
mv run kept
# special NAME MAKER...: in a copy of the run, something else stands in the place of a file
special() {
    rm -rf run
    cp -a kept run
    rm -rf "run/$1"
    "${@:2}" "run/$1"
}
link_zero() { ln -s /dev/zero "$1"; }

# --- files of a run folder, when it is carried on ---
for name in config.yaml outcome.json metrics.jsonl log.txt; do
    for maker in mkfifo link_zero mkdir; do
        special "$name" "$maker"
        run 1 "${anneal[@]}" train longer.yaml --extend=keep
        says "run/$name: is not a regular file but a pipe, a device or a folder; move it away"
    done
done
# a pipe that somebody reads must not be written to, either
special log.txt mkfifo
sleep "$patience" <>run/log.txt &
reader=$!
run 1 "${anneal[@]}" train longer.yaml --extend=keep
says 'run/log.txt: is not a regular file but a pipe, a device or a folder; move it away'
kill "$reader"
wait "$reader" || true

# --- files that are written beside ---
for name in config.yaml.new outcome.json.new summary.json.new metrics-2.new; do
    special "$name" mkfifo
    run 1 "${anneal[@]}" train longer.yaml --extend=keep
    says "run/$name: is not a regular file but a pipe, a device or a folder; move it away"
done
special launches/1 mkfifo # one that does not say whose it is
run 0 "${anneal[@]}" train longer.yaml --extend=keep
run 0 "${anneal[@]}" train longer.yaml # finished
special launches/1 mkfifo
# A process that starts itself would need the emulator again.
supervise=(--supervise)
[ -z "${ANNEAL_RUN:-}" ] || supervise=()
run 0 "${anneal[@]}" train longer.yaml --extend=keep "${supervise[@]}"

# --- files of a checkpoint ---
checkpoint=checkpoints/$(ls kept/checkpoints)
for name in config.yaml manifest.json $(cd "kept/$checkpoint" && ls *.safetensors); do
    for maker in mkfifo link_zero; do
        special "$checkpoint/$name" "$maker"
        run 1 "${anneal[@]}" train longer.yaml --extend=keep
        says "$name"
        for command in inspect verify; do
            timeout -s KILL "$patience" "${anneal[@]}" "$command" "run/$checkpoint" >out 2>err || [ $? != 137 ] ||
                fail "$command waits for $name"
        done
    done
done

# --- what is plotted ---
special metrics.jsonl mkfifo
run 1 "${anneal[@]}" plot run

# --- data ---
rm -rf run
mkfifo pipe.csv
run 1 "${anneal[@]}" train c.yaml --set data.train.path=pipe.csv
says 'pipe.csv: is a pipe, not a file'
run 1 "${anneal[@]}" train c.yaml --set data.train.path=/dev/zero
says '/dev/zero: is a device or a socket, not a file'

# --- a config through a pipe: paths in it are relative to the working directory ---
rm -rf run
run 0 "${anneal[@]}" train <(cat c.yaml)
run 0 bash -c 'cat c.yaml | "$@"' - "${anneal[@]}" train /dev/stdin --fresh
run 0 bash -c '"$@" <c.yaml' - "${anneal[@]}" train /dev/stdin --fresh
cmp -s <(grep -v '^  dir:' kept/config.yaml) <(grep -v '^  dir:' run/config.yaml) || fail 'a config from a pipe means something else'
run 0 "${anneal[@]}" config show <(cat c.yaml)
run 0 "${anneal[@]}" plan <(cat c.yaml)
run 0 "${anneal[@]}" train <(grep -v run: c.yaml)
[ -e runs/config/summary.json ] || fail 'the folder of a run from a pipe is runs/config'
run 2 "${anneal[@]}" train <(cat c.yaml) --supervise
says '--supervise reads the config again at each restart, which does not work with a pipe or standard input; write the config to a file'

# --- standard input: the same command resumes, and so does the config that the folder has ---
for source in 'cat c.yaml |' '<c.yaml'; do
    rm -rf run
    run 0 bash -c "$source"' "$@"' - "${anneal[@]}" train -
    cmp -s <(grep -v '^  dir:' kept/config.yaml) <(grep -v '^  dir:' run/config.yaml) || fail "train -, $source: another config"
    run 0 bash -c "$source"' "$@"' - "${anneal[@]}" train -
    grep -q '^run: this run is finished' out || fail "train - does not find its run"
    run 0 "${anneal[@]}" train run/config.yaml
    grep -q 'this run is finished' out || fail 'the config of the folder does not find its run'
    run 2 bash -c "$source"' "$@"' - "${anneal[@]}" train - --supervise
    says 'does not work with a pipe or standard input'
    run 2 bash -c "$source"' "$@"' - "${anneal[@]}" train - -n 2
    says 'with -n, every rank reads the config, which does not work with a pipe or standard input'
    run 0 bash -c "$source"' "$@"' - "${anneal[@]}" config show -
done
echo 'model: {type: mpl}' >wrong.yaml
run 2 bash -c '"$@" <wrong.yaml' - "${anneal[@]}" train -
says "/dev/stdin:1:15: model.type is 'mpl'"
run 2 "${anneal[@]}" train /dev/zero # it has no end
run 2 "${anneal[@]}" train <(yes '#')
echo "special files: refused or read in time"
