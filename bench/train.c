/* Whole training steps of a config, timed when it is asked for: data, forward, backward, clipping, optimizer, schedule.
 *
 *     train CONFIG THREADS [KEY=VALUE]...      train examples/shakespeare/char.yaml 2 train.precision=f32
 *
 * How it is asked: serve.h. A pass is a step.
 */
#include <stdio.h>
#include <stdlib.h>

#include <anneal/open.h>

#include "serve.h"

static an_status pass(void *user) {
    return an_trainer_step(user, NULL);
}

int main(int argc, char **argv) {
    enum { CONFIG = 1, THREADS, SETTINGS };
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_config_options config_options;
    an_config_options_init(&config_options, sizeof config_options);
    an_context *ctx = NULL;
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_open_options anew;
    an_open_options_init(&anew, sizeof anew);
    anew.fresh = true; /* whatever run has the config's folder */
    if (argc < SETTINGS) {
        fprintf(stderr, "usage: train CONFIG THREADS [KEY=VALUE]...\n");
        return 2;
    }
    options.threads = (int)strtol(argv[THREADS], NULL, 10);
    config_options.file = argv[CONFIG];
    config_options.sets = (const char *const *)argv + SETTINGS;
    config_options.set_count = argc - SETTINGS;
    an_status status = an_context_create(&ctx, &options);
    if (status == AN_OK) status = an_config_create(&config, ctx, &config_options);
    if (status == AN_OK) status = an_trainer_open_config(&trainer, ctx, config, &anew);
    if (status == AN_OK) status = bench_serve(pass, trainer);
    if (status != AN_OK) fprintf(stderr, "train: %s: %s\n", an_status_name(status), an_last_error(ctx));
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    an_context_destroy(&ctx);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
