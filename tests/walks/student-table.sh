#!/usr/bin/env bash
# A student with a table: names of classes, a column of text, one to leave out and missing cells. Lets anneal write a
# config, trains, looks at the result, predicts for new rows, draws the curves, and makes two mistakes.
#   student-table.sh UNPACKED-TARBALL
source "$(dirname "$0")/preamble.sh"

awk 'BEGIN { srand(3); print "id,color,length,width,kind"
    for (i = 0; i < 600; i++) { k = int(3 * rand()); l = 1 + 2 * k + rand(); w = rand()
        printf "%d,%s,%.2f,%s,%s\n", i, k ? "blue" : "white", l, i % 50 ? sprintf("%.2f", w) : "NA",
            k == 0 ? "setosa" : k == 1 ? "versicolor" : "virginica" } }' >flowers.csv

printf '$ anneal init flowers.csv > flowers.yaml\n'
anneal init flowers.csv >flowers.yaml 2>found || { cat found; fail "anneal init ended with $?"; }
sees 'kind +target +text +3' found
sees 'id +left out' found

run anneal summary flowers.yaml
sees 'hidden\.0 '
run anneal find-lr flowers.yaml --svg rates.svg
sees '^proposal: '
sees '</svg>' rates.svg
[ ! -e runs/flowers ] || fail "find-lr has made a run folder"

run anneal train flowers.yaml
sees 'val_accuracy'
sees '^weights [0-9a-f]{32}$'
at_least 0.97 val_accuracy runs/flowers

printf 'color,width,length\nwhite,0.5,1.3\nblue,?,3.4\nblue,0.2,5.6\n' >new.csv # other columns first, and no answers
run anneal predict runs/flowers --input new.csv --output kinds.csv
[ "$(tail -n +2 kinds.csv | grep -oE 'setosa|versicolor|virginica' | tr '\n' ' ')" = "setosa versicolor virginica " ] || { cat kinds.csv; fail "the kinds are wrong"; }

run anneal eval runs/flowers
sees 'val_accuracy'
printf '$ anneal plot runs/flowers > curves.svg\n'
anneal plot runs/flowers >curves.svg
sees '^<svg' curves.svg
sees '</svg>' curves.svg

# A second run with another rate, beside the first.
run anneal train flowers.yaml --set optimizer.lr=1e-4 --set run.epochs=10 --set run.dir=runs/slow
run anneal compare runs/flowers runs/slow
sees 'optimizer.lr'

# Mistakes are answered with what to do, before anything is trained.
refused 2 anneal train flowers.yaml --set optimizer.learning_rate=0.1 --set run.dir=runs/wrong
sees 'lr'
refused 1 anneal train flowers.yaml --set data.train.path=missing.csv --set run.dir=runs/wrong
sees 'missing.csv'
[ ! -e runs/wrong/checkpoints ] || fail "a run that was refused has checkpoints"
