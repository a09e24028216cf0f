/* Converts the lengths of a config to steps. */
#include "kinds/keys.h"
#include "open/open.h"

an_length_options an_open_length_options(const an_lengths *lengths, int64_t from, int64_t run) {
    an_length_options options;
    an_length_options_init(&options, sizeof options);
    options.from = from;
    options.run = run == INT64_MAX ? 0 : run;
    options.tokens_a_sample = lengths->tokens_a_sample;
    return options;
}

an_status an_open_steps(const an_lengths *lengths, const char *path, const an_length *length, int64_t from, int64_t run,
                        int64_t *steps) {
    const an_length_options options = an_open_length_options(lengths, from, run);
    return an_key_blame_named(lengths->config, lengths->ctx,
                              an_batches_steps(lengths->batches, length, &options, steps), path);
}

bool an_open_counts_samples(const an_length *length) {
    return length->unit == AN_LENGTH_SAMPLES || length->unit == AN_LENGTH_TOKENS;
}
