/* Initial weights, for tests: what is said about them, files of tensors, and memory that fails. */
#ifndef TESTS_OPEN_INIT_SUPPORT_H
#define TESTS_OPEN_INIT_SUPPORT_H

#include "anneal/open.h"
#include "base/context.h"
#include "formats/safetensors.h"
#include "open/open.h"

#include "open/support.h" /* last, as its ctx would be shadowed */

/* What the log was told, a line each, since begin_hearing(). */
static char heard[4096];

static inline void hear(void *user, an_log_level level, const char *text) {
    (void)user;
    (void)level;
    strncat(heard, text, sizeof heard - strlen(heard) - 2);
    strcat(heard, "\n");
}

static inline void begin_hearing(void) {
    ctx->log = hear;
    heard[0] = 0;
}

static inline void write_tensors(const char *path, const an_safetensor *tensors, size_t count, const void *data,
                                 size_t bytes) {
    an_text file;
    an_text_init(&file, ctx);
    OK(ctx, an_safetensors_header(&file, tensors, count, 0, NULL));
    an_text_bytes(&file, data, bytes);
    OK(ctx, file.status);
    write_file(path, file.bytes, file.length);
    an_text_destroy(&file);
}

/* Opens the run of run.yaml, and a config of its own for an_open_init. */
static inline an_trainer *open_with_config(const char *text, an_config **config) {
    an_trainer *trainer = NULL;
    an_config_options from;
    an_config_options_init(&from, sizeof from);
    from.file = "run.yaml";
    write_text("run.yaml", text);
    OK(ctx, an_config_create(config, ctx, &from));
    OK(ctx, an_trainer_open_config(&trainer, ctx, *config, NULL));
    return trainer;
}

/* Loads the weights again with one allocation more that succeeds each time, until memory is no problem any more. */
static inline void init_without_memory(an_trainer *trainer, an_config *config, an_status expected, int maximum) {
    an_status status = AN_ERR_MEMORY;
    for (int n = 1; status == AN_ERR_MEMORY; n++) {
        counted.fail_at = counted.calls + n;
        status = an_open_init(trainer, config, ctx);
        counted.fail_at = 0;
        if (status != expected && status != AN_ERR_MEMORY) fail_msg("%d: %s", n, an_last_error(ctx));
        assert_true(n < maximum);
    }
    assert_int_equal(status, expected);
}

#endif
