/* Lengths of a config in steps. */
#include "open/open.h"

an_steps_of an_open_measure(const an_lengths *lengths, const an_length *length, double *amount) {
    *amount = length->amount;
    if (length->unit == AN_LENGTH_TOKENS) *amount /= (double)lengths->tokens_a_sample;
    return length->unit == AN_LENGTH_EPOCHS                                        ? an_batches_steps_for
           : length->unit == AN_LENGTH_SAMPLES || length->unit == AN_LENGTH_TOKENS ? an_batches_steps_taking
                                                                                   : NULL;
}

/* A length is a double, which counts exactly up to here. */
static const double most_steps = 0x1p53;

/* About how many steps a length is; enough to see that there are too many. */
static double guess_steps(const an_lengths *l, const an_length *length, int64_t whole) {
    const an_batches *b = l->batches;
    switch (length->unit) {
    case AN_LENGTH_EPOCHS:
        return b->samples == AN_STREAM_SAMPLES ? 0 : length->amount * (double)an_batches_steps_in(b, 0);
    case AN_LENGTH_SAMPLES: return length->amount / (double)an_batches_largest(b);
    case AN_LENGTH_TOKENS: return length->amount / (double)an_batches_largest(b) / (double)l->tokens_a_sample;
    case AN_LENGTH_SHARE: return whole == INT64_MAX ? 0 : length->amount * (double)whole;
    default: return length->amount;
    }
}

an_status an_open_steps(const an_lengths *lengths, const char *path, const an_length *length, int64_t from,
                        int64_t whole, int64_t *steps) {
    an_config *config = lengths->config;
    an_context *ctx = lengths->ctx;
    const an_batches *batches = lengths->batches;
    double amount;
    const an_steps_of steps_of_amount = an_open_measure(lengths, length, &amount);
    double exact = amount;
    if (!(guess_steps(lengths, length, whole) < most_steps))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %s is more than %.0f steps (2^53); make it shorter",
                        an_config_place(config, path), path, most_steps);
    switch (length->unit) {
    case AN_LENGTH_STEPS: break;
    case AN_LENGTH_EPOCHS:
        if (batches->samples == AN_STREAM_SAMPLES)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: a stream has no epochs; give steps, or samples",
                            an_config_place(config, path));
        break;
    case AN_LENGTH_SAMPLES:
    case AN_LENGTH_TOKENS: break;
    case AN_LENGTH_SHARE:
        if (whole == 0 || whole == INT64_MAX)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "%s: a share of the run, but nothing says how long that is; give steps, or run.steps",
                            an_config_place(config, path));
        exact = amount * (double)whole;
        break;
    default:
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: a length in time cannot be turned into steps",
                        an_config_place(config, path));
    }
    *steps = steps_of_amount ? steps_of_amount(batches, from, amount) : an_whole_steps(exact);
    return AN_OK;
}
