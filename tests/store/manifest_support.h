/* A good checkpoint, for tests that damage it; and what is asked of it then. */
#ifndef TESTS_STORE_MANIFEST_SUPPORT_H
#define TESTS_STORE_MANIFEST_SUPPORT_H

#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "base/context.h"
#include "open/support.h"

#define CONFIG(dir)                                                                            \
    "run: {dir: " dir ", steps: 8, seed: 5}\nmodel: {type: mlp, hidden: [5]}\n"                \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n" \
    "batch: {global: 8}\ntrain: {precision: f32}\nsave: {writers: 2}\n"
enum { MOST_TEXT = 1 << 20, SMALL_CONSTANT = 1 << 14, MOST_MESSAGE = 4096 };

#define FOLDER "hostile/checkpoints/step-00000006-1-at-6"
static const char folder[] = FOLDER, manifest_path[] = FOLDER "/manifest.json";

static char good[MOST_TEXT]; /* the manifest */
static size_t good_length, folder_bytes;
static an_trainer *reader;
static int refused_count;

/* ---- a good checkpoint ---- */

static inline an_trainer *open_fresh(const char *text) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    options.file = "run.yaml";
    options.text = text;
    options.length = strlen(text);
    open.fresh = true;
    OK(ctx, an_config_create(&config, ctx, &options));
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, &open));
    an_config_destroy(&config);
    return trainer;
}

static inline int make_checkpoint(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_checkpoint *c = NULL;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    if (setup(state)) return 1;
    if (system("rm -rf hostile other aside") != 0) return 1; /* NOLINT(cert-env33-c): the test's own folder */
    write_sums();
    an_trainer *trainer = open_fresh(CONFIG("hostile"));
    for (int i = 0; i < 6; i++) OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, 6));
    an_trainer_destroy(&trainer);
    FILE *file = fopen(manifest_path, "rb");
    assert_non_null(file);
    good_length = fread(good, 1, sizeof good - 1, file);
    assert_int_equal(fclose(file), 0);
    OK(ctx, an_checkpoint_open(&c, ctx, folder));
    OK(ctx, an_checkpoint_info_get(c, &info));
    folder_bytes = (size_t)info.bytes;
    an_checkpoint_close(&c);
    reader = open_fresh(CONFIG("other"));
    return 0;
}

static inline int remove_all(void **state) {
    an_trainer_destroy(&reader);
    print_message("%d refused\n", refused_count);
    return teardown(state);
}

/* ---- what is asked ---- */

static inline int next_descriptor(void) {
    const int next = dup(0);
    assert_true(next >= 0 && close(next) == 0);
    return next;
}

static inline an_status try_open(void) {
    an_checkpoint *c = NULL;
    an_checkpoint_tensor t;
    an_checkpoint_tensor_init(&t, sizeof t);
    char element[16];
    an_status status = an_checkpoint_open(&c, ctx, folder);
    for (int64_t i = 0; status == AN_OK && an_checkpoint_tensor_get(c, i, &t) == AN_OK; i++)
        if (t.elements > 0) status = an_checkpoint_read(c, i, t.elements - 1, 1, element);
    an_checkpoint_close(&c);
    return status;
}

static inline an_status try_verify(void) {
    return an_checkpoint_verify(ctx, folder);
}

static inline an_status try_load(void) {
    return an_trainer_load(reader, folder);
}

static an_status (*const tries[])(void) = {try_open, try_verify, try_load};
enum { OPEN, VERIFY, LOAD, TRIES };

/* The first try that is to fail, and all after it if `words` are all the same to them. Before it all are good. */
static inline void check_refused(int from, int to, size_t bytes, const char *words, const char *what) {
    for (int i = from; i < to; i++) {
        const int next = next_descriptor();
        const size_t held = an_context_bytes(ctx);
        ctx->peak_bytes = ctx->bytes;
        const an_status status = tries[i]();
        const char *message = an_last_error(ctx);
        if (status == AN_OK) fail_msg("try %d accepts: %s", i, what);
        if (!strstr(message, words)) fail_msg("try %d, %s: no '%s' in: %s", i, what, words, message);
        if (strncmp(message, folder, strlen(folder)) != 0) fail_msg("try %d, %s: no file in: %s", i, what, message);
        assert_int_equal(next_descriptor(), next);
        assert_int_equal(an_context_bytes(ctx), held);
        if (ctx->peak_bytes - held > 2 * bytes + SMALL_CONSTANT)
            fail_msg("try %d, %s: %zu bytes for files of %zu", i, what, ctx->peak_bytes - held, bytes);
    }
    refused_count++;
}

static inline void renew_reader(void) {
    an_trainer_destroy(&reader);
    reader = open_fresh(CONFIG("other"));
}

static inline void is_good(void) {
    for (int i = 0; i < TRIES; i++) OK(ctx, tries[i]());
    renew_reader();
}

#endif
