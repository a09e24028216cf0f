#!/usr/bin/env bash
# tools/check-layers must refuse each of these includes, by its place and rule, and nothing else in the tree.
set -euo pipefail
check=$(dirname "$0")/../../tools/check-layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# put FILE INCLUDE...: writes a file with one include a line
put() {
    mkdir -p "$tree/$(dirname "$1")"
    printf '#include %s\n' "${@:2}" >"$tree/$1"
}

put include/anneal/good.h '<stddef.h>' '"anneal/other.h"'
put src/base/good.h '"anneal/good.h"'
put src/ops/good.c '"base/good.h"' '"kernels/good.h"' '"local.def"' '<oneapi/dnnl/dnnl.h>' '<anneal/good.h>'
put src/ops/local.def '"ops/good.h"'
"$check" "$tree"

put include/anneal/bad.h '"base/good.h"'
put src/base/up.c '"base/good.h"' '"ir/graph.h"'
put src/comm/up.c '"base/good.h"' '<ir/graph.h>'
put src/kernels/up.c '"ops/op.h"'
put src/pass/dots.c '"../train/trainer.h"'
put src/pass/lost.c '"nowhere.h"'
put src/extra/file.c '<stddef.h>'

want='include/anneal/bad.h:1: includes base/good.h: a public header includes public headers only
src/base/up.c:2: includes ir/graph.h: base is below ir
src/comm/up.c:2: includes ir/graph.h: comm is below ir
src/extra/file.c:1: includes stddef.h: src/extra is not a layer (base comm ir kernels ops pass exec models train cli)
src/kernels/up.c:1: includes ops/op.h: kernels is below ops
src/pass/dots.c:1: includes ../train/trainer.h: say layer/file.h, not a path with ..
src/pass/lost.c:1: includes nowhere.h: neither a layer nor beside the file'

if got=$("$check" "$tree"); then
    echo "check-layers accepted a tree that breaks every rule" >&2
    exit 1
fi
diff <(printf '%s\n' "$want") <(printf '%s\n' "$got")
