#!/usr/bin/env bash
# A C developer: copies an example that came with the tarball, builds it with pkg-config and with CMake, and runs it.
#   c-developer.sh UNPACKED-TARBALL
source "$(dirname "$0")/preamble.sh"

cp -r "$examples/mlp" "$examples/surrogate" .

# By pkg-config. The program is told where the library lies, once when it is linked.
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
run pkg-config --modversion anneal
printf '$ cc mlp/sine.c -o sine $(pkg-config --cflags --libs anneal) -lm -Wl,-rpath,$(pkg-config --variable=libdir anneal)\n'
cc -Wall -Wextra -Werror mlp/sine.c -o sine $(pkg-config --cflags --libs anneal) -lm "-Wl,-rpath,$(pkg-config --variable=libdir anneal)"
run ./sine
sees '[0-9]'
ldd sine >out
! grep -q 'not found' out || fail "a library is missing"
! grep -q libdnnl out || sees "libdnnl.* => $prefix/lib/"

# By CMake, as the project that the example is.
run cmake -S surrogate -B build -DCMAKE_PREFIX_PATH="$prefix"
run cmake --build build
run build/surrogate surrogate/surrogate.yaml
awk '/relative error/ { error = $NF } END { exit !(error > 0 && error < 0.02) }' out || fail "it did not learn the reactions"

# There is no static library in the tarball, and CMake says so.
mkdir static
cat >static/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(static LANGUAGES C)
find_package(anneal 0.2 REQUIRED COMPONENTS static)
END
refused 1 cmake -S static -B static/build -DCMAKE_PREFIX_PATH="$prefix"
sees 'static'

# The program of the README: a run from a config, step by step, and what it says when the config is wrong.
cat >digits.c <<'END'
#include <stdio.h>
#include <anneal/anneal.h>

int main(int count, char **arguments) {
    an_context *ctx = NULL;
    an_trainer *trainer = NULL;
    an_step_metrics m;
    an_step_metrics_init(&m, sizeof m);
    int ok = count == 2 && an_context_create(&ctx, NULL) == AN_OK && an_trainer_open(&trainer, ctx, arguments[1], NULL) == AN_OK;
    while (ok && an_trainer_next_step(trainer) < an_trainer_steps(trainer)) ok = an_trainer_step(trainer, &m) == AN_OK;
    if (ok) printf("step %lld  loss %.4f\n", (long long)m.step, m.loss);
    if (!ok) fprintf(stderr, "%s\n", an_last_error(ctx));
    an_trainer_destroy(&trainer);
    an_context_destroy(&ctx);
    return !ok;
}
END
cc -Wall -Wextra -Werror digits.c -o digits $(pkg-config --cflags --libs anneal)
export LD_LIBRARY_PATH=$prefix/lib
run ./digits "$examples/mnist/mlp.yaml"
awk '/^step/ { good = $4 < 0.2 } END { exit !good }' out || fail "the loss is too high"
sed 's/optimizer:/optimiser:/' "$examples/mnist/mlp.yaml" >wrong.yaml
refused 1 ./digits wrong.yaml
sees 'optimizer'
