/* Batches as a separate object: converts lengths to steps, and finds where epochs begin. */
#include "base/guard.h"
#include "base/memory.h"
#include "data/batches.h"
#include "data/structs.h"

an_status an_batches_create(an_batches **batches, an_context *ctx, int64_t samples, const an_batch_options *options) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, batches, options);
    an_status status;
    an_batches *b = NULL;
    *batches = NULL;
    AN_CHECK(ctx, samples >= 0, AN_ERR_ARGUMENT, "an epoch has %lld samples; it must have 1 or more, or 0 for a stream",
             (long long)samples);
    AN_TRY(an_alloc(ctx, (void **)&b, 1, sizeof *b));
    AN_TRY(an_batches_make(b, ctx, samples ? samples : AN_STREAM_SAMPLES, options));
    *batches = b;
    return AN_OK;
fail:
    an_release(ctx, (void **)&b, 1, sizeof *b);
    return status;
}

void an_batches_destroy(an_batches **batches) {
    if (batches && *batches) an_release((*batches)->ctx, (void **)batches, 1, sizeof **batches);
}

int64_t an_batches_change(const an_batches *batches, int index) {
    AN_NEED_OR(-1, batches);
    return index >= 0 && index < batches->entry_count ? batches->entries[index].epoch : -1;
}

/* ---- lengths ---- */

/* What counts the steps of a length whose steps depend on where it begins, and how much of it; NULL for other
 * lengths. */
static an_steps_of measure(const an_length *length, int64_t tokens_a_sample, double *amount) {
    *amount = length->amount;
    if (length->unit == AN_LENGTH_TOKENS) *amount /= (double)tokens_a_sample;
    return length->unit == AN_LENGTH_EPOCHS                                        ? an_batches_steps_for
           : length->unit == AN_LENGTH_SAMPLES || length->unit == AN_LENGTH_TOKENS ? an_batches_steps_taking
                                                                                   : NULL;
}

/* A length is a double, which counts exactly up to here. */
static const double most_steps = 0x1p53;

/* About how many steps a length is; enough to see that there are too many. */
static double guess_steps(const an_batches *b, const an_length *length, double amount, int64_t run) {
    switch (length->unit) {
    case AN_LENGTH_EPOCHS: return amount * (double)an_batches_epoch_steps(b, 0);
    case AN_LENGTH_SAMPLES:
    case AN_LENGTH_TOKENS: return amount / (double)an_batches_largest(b);
    case AN_LENGTH_SHARE: return amount * (double)run;
    default: return amount;
    }
}

static an_status check_length(const an_batches *b, const an_length *length, const an_length_options *o) {
    an_status status;
    an_context *ctx = b->ctx;
    AN_CHECK(ctx, o->from >= 0 && o->run >= 0 && o->tokens_a_sample > 0, AN_ERR_ARGUMENT,
             "from is %lld, run %lld and tokens_a_sample %lld: the first two must be 0 or more, the last 1 or more",
             (long long)o->from, (long long)o->run, (long long)o->tokens_a_sample);
    AN_CHECK(ctx, length->amount >= 0, AN_ERR_ARGUMENT, "the length is %g, but must be 0 or more", length->amount);
    AN_CHECK(ctx, length->unit >= AN_LENGTH_STEPS && length->unit < AN_LENGTH_TIME, AN_ERR_ARGUMENT,
             "a length in time cannot be turned into steps");
    AN_CHECK(ctx, length->unit != AN_LENGTH_EPOCHS || b->samples != AN_STREAM_SAMPLES, AN_ERR_ARGUMENT,
             "a stream has no epochs; use steps or samples");
    AN_CHECK(ctx, length->unit != AN_LENGTH_SHARE || (o->run > 0 && o->run < INT64_MAX), AN_ERR_ARGUMENT,
             "this is a share of the run, but the length of the run is not known; use steps here, or set run.steps");
    return AN_OK;
fail:
    return status;
}

an_status an_batches_steps(const an_batches *batches, const an_length *length, const an_length_options *options,
                           int64_t *steps) {
    AN_GUARD;
    AN_NEED(batches, length, options, steps);
    an_context *ctx = batches->ctx;
    an_length_options o;
    double amount;
    AN_TRY_RETURN(an_length_options_read(ctx, &o, options));
    AN_TRY_RETURN(check_length(batches, length, &o));
    const an_steps_of steps_of_amount = measure(length, o.tokens_a_sample, &amount);
    if (!(guess_steps(batches, length, amount, o.run) < most_steps))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "this is more than %.0f steps (2^53); use a shorter length", most_steps);
    if (length->unit == AN_LENGTH_SHARE) amount *= (double)o.run;
    *steps = steps_of_amount ? steps_of_amount(batches, o.from, amount) : an_whole_steps(amount);
    return AN_OK;
}

an_status an_batches_steps_before_end(const an_batches *batches, const an_length *length,
                                      const an_length_options *options, int64_t *steps) {
    AN_GUARD;
    AN_NEED(batches, length, options, steps);
    an_context *ctx = batches->ctx;
    an_length_options o;
    double amount;
    AN_TRY_RETURN(an_length_options_read(ctx, &o, options));
    AN_TRY_RETURN(an_batches_steps(batches, length, options, steps));
    const an_steps_of steps_of_amount = measure(length, o.tokens_a_sample, &amount);
    if (steps_of_amount) *steps = an_batches_steps_until(batches, o.from, amount, steps_of_amount);
    return AN_OK;
}
