#!/usr/bin/env bash
# tools/check-layers must refuse each of these includes and calls, by its place and rule, and nothing else in the tree.
set -euo pipefail
check=$(dirname "$0")/../../tools/check-layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# put FILE INCLUDE...: writes a file with one include a line
put() {
    mkdir -p "$tree/$(dirname "$1")"
    printf '#include %s\n' "${@:2}" >"$tree/$1"
}

# refuses LINE...: exactly these lines are said, in any order
refuses() {
    local got
    if got=$("$check" "$tree" --calls "$tree/build"); then
        echo "check-layers accepted a tree that breaks its rules" >&2
        exit 1
    fi
    diff <(printf '%s\n' "$@" | sort) <(printf '%s\n' "$got" | sort)
}

mkdir -p "$tree/src" "$tree/build/lib"
cp "$(dirname "$0")/../../src/layers.txt" "$tree/src/layers.txt"
sed -i '/^\(circle\|record\)/d' "$tree/src/layers.txt"

# --- calls: object files of sources like "void a(void) { b(); }" ---

# object LAYER/FILE FUNCTION CALLED...
object() {
    local folder=$tree/build/CMakeFiles/anneal_objects.dir/src file=$1 function=$2
    shift 2
    mkdir -p "$folder/$(dirname "$file")" "$tree/src/$(dirname "$file")"
    touch -a "$tree/src/$file"
    { for called; do echo "void $called(void);"; done
      echo "void $function(void) {"; for called; do echo "$called();"; done; echo "}"; } |
        "${CC:-cc}" -x c -c -o "$folder/$file.o" -
}
echo 'void an_public(void) {}' | "${CC:-cc}" -shared -fPIC -x c -o "$tree/build/lib/libanneal.so" -

put include/anneal/good.h '<stddef.h>' '"anneal/other.h"'
put src/base/good.h '"anneal/good.h"'
put src/ops/good.c '"base/good.h"' '"kernels/row/good.h"' '"local.def"' '<oneapi/dnnl/dnnl.h>' '<anneal/good.h>'
put src/ops/local.def '"ops/good.h"'
object base/good.c an_good
object train/public.c an_public an_good
object cli/main/good.c cli_good an_public an_good
# A record by which `run` calls `train` is a call downwards, whoever has filled it.
mkdir -p "$tree/src/run"
echo 'typedef struct an_downwards { void (*down)(void); } an_downwards;' >"$tree/src/base/downwards.h"
printf '%s\n' 'void an_set_down(an_downwards *d);' 'static void serve(void) {' '}' \
    'void an_set_down(an_downwards *d) {' '    d->down = serve;' '}' >"$tree/src/train/serve.c"
printf '%s\n' 'void an_ask(an_downwards *d) {' '    d->down();' '}' >"$tree/src/run/ask.c"
"$check" "$tree" --calls "$tree/build"

# --- 15 violations ---
# One upwards that no line lists, by an initializer and by an assignment.
printf '%s\n' 'typedef void an_later(void *user);' \
    'typedef struct an_upwards { int (*up)(int a); an_later *later; } an_upwards;' >"$tree/src/base/upwards.h"
printf '%s\n' 'static int above(int a) {' '    return a;' '}' 'static void after(void *user) {' '}' \
    'static const an_upwards given = {.up = above};' 'void an_join(an_upwards *u) {' '    u->later = after;' '}' \
    >"$tree/src/train/above.c"
printf '%s\n' 'int an_call_up(const an_upwards *u) {' '    u->later(0);' '    return u->up(1);' '}' >"$tree/src/base/below.c"
put include/anneal/bad.h '"base/good.h"'
put src/base/up.c '"base/good.h"' '"ir/graph.h"'
put src/comm/up.c '"base/good.h"' '<ir/graph.h>'
put src/kernels/up.c '"ops/op.h"'
put src/pass/dots.c '"../train/trainer.h"'
put src/pass/lost.c '"nowhere.h"'
put src/extra/file.c '<stddef.h>'
put src/data/sibling.c '"config/config.h"'
object store/hidden.c an_hidden
object config/sibling.c an_sibling an_hidden
object cli/main/deep.c cli_deep an_hidden
object train/up.c an_up an_late
object run/late.c an_late an_hidden
object data/one.c an_one an_two
object data/two.c an_two an_one
object kernels/row/a.c an_row_a an_sum_a
object kernels/sum/a.c an_sum_a an_row_b
object kernels/row/b.c an_row_b

refuses 'include/anneal/bad.h:1: includes base/good.h: a public header includes public headers only' \
    'src/base/up.c:2: includes ir/graph.h: base may not use ir' \
    'src/comm/up.c:2: includes ir/graph.h: comm may not use ir' \
    'src/kernels/up.c:1: includes ops/op.h: kernels may not use ops' \
    'src/pass/dots.c:1: includes ../train/trainer.h: say layer/file.h, not a path with ..' \
    'src/pass/lost.c:1: includes nowhere.h: neither a layer nor beside the file' \
    'src/extra/file.c:1: includes stddef.h: src/extra is not a layer of src/layers.txt' \
    'src/data/sibling.c:1: includes config/config.h: data may not use config' \
    'src/config/sibling.c: uses an_hidden of src/store/hidden.c: config may not use store' \
    'src/cli/main/deep.c: uses an_hidden of src/store/hidden.c: cli may not use store' \
    'src/base/below.c: calls an_upwards.up of src/train/above.c, which is upwards, and src/layers.txt does not list that' \
    'src/base/below.c: calls an_upwards.later of src/train/above.c, which is upwards, and src/layers.txt does not list that' \
    'src/train/up.c: uses an_late of src/run/late.c: train may not use run' \
    'these files call each other: data/one.c data/two.c' \
    'these folders of kernels call each other: row sum'

# Lines for what is there, and for what is no more.
printf '%s\n' 'record an_upwards.up base' 'record an_upwards.later base run' 'circle base/a.c base/b.c' >>"$tree/src/layers.txt"
got=$("$check" "$tree" --calls "$tree/build" || true)
grep -qx 'src/layers.txt lists a circle that is no more: base/a.c base/b.c' <<<"$got"
grep -qx 'src/layers.txt lists a call upwards that is no more: run by an_upwards.later' <<<"$got"
if grep -q 'below.c' <<<"$got"; then echo "check-layers does not find what is listed" >&2 && exit 1; fi
