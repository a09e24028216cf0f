#!/usr/bin/env bash
# A student with pictures: a folder of PNG files, one folder for each class. Lets anneal write a config, trains a small
# convolution with it, looks at the result, and asks it about a single file and about a folder.
#   student-images.sh UNPACKED-TARBALL
source "$(dirname "$0")/preamble.sh"

# The pictures are digits of MNIST: the files that a student would have collected.
/usr/bin/python3 "$walks/../cli/make_digits.py" "$examples/mnist/mnist-10k-images-idx3-ubyte.gz" "$examples/mnist/mnist-10k-labels-idx1-ubyte.gz" 1000
rm -rf few ./*.idx ./*.npy ./*.npz ./*.jsonl
mkdir asked
mv digits/3/*0.png asked # some of the threes are kept for the end
[ "$(ls digits | wc -l)" = 10 ] || fail "the pictures were not made"

printf '$ anneal init digits > digits.yaml\n'
anneal init digits >digits.yaml 2>found || { cat found; fail "anneal init ended with $?"; }
sees '^digits: 9[0-9][0-9] images in 10 classes$' found
sees '^size: 28 x 28 pixels$' found
sees '^  3 +[0-9]+ files +[0-9.]+%$' found
sees '^next: anneal train digits.yaml$' found

run anneal train digits.yaml
at_least 0.92 val_accuracy runs/digits
run anneal eval runs/digits
sees 'val_accuracy'

one=$(ls asked/*.png | head -n 1)
run anneal predict runs/digits/best --input "$one" --output one.csv
[ "$(wc -l <one.csv)" = 2 ] || fail "one picture has not one answer"
run anneal predict runs/digits/best --input asked --output all.csv
# The class is the first column that is not the number of the sample: by name, as the folders are called.
right=$(tail -n +2 all.csv | awk -F, '$1 == "3" || $2 == "3"' | wc -l)
total=$(ls asked | wc -l)
printf '  %d of %d threes\n' "$right" "$total"
[ $((right * 100)) -ge $((total * 85)) ] || { head -n 5 all.csv; fail "too few threes are recognised"; }

# A picture that is none is named, and so is the way out.
printf 'not a picture' >digits/7/broken.png
refused 1 anneal train digits.yaml --set run.dir=runs/broken
sees 'broken.png'
