#include "data/batches.h"

#include "base/integer.h"
#include "base/memory.h"
#include "base/status.h"
#include "data/structs.h"

/* ---- the arithmetic of a batch ---- */

static an_status check_options(an_context *ctx, int64_t samples, const an_batch_options *o) {
    an_status status;
    AN_CHECK(ctx, samples > 0, AN_ERR_ARGUMENT, "there are no samples");
    AN_CHECK(ctx, o->global >= 0 && o->micro >= 0 && o->leaves >= 0 && o->accumulate >= 0, AN_ERR_ARGUMENT,
             "batch: global %lld, micro %lld, leaves %lld, accumulate %lld: none of them may be negative",
             (long long)o->global, (long long)o->micro, (long long)o->leaves, (long long)o->accumulate);
    AN_CHECK(ctx, o->global || o->accumulate || o->table_count, AN_ERR_ARGUMENT,
             "batch: set global, the number of samples in a step, or micro and accumulate");
    AN_CHECK(ctx, !(o->accumulate || o->table_count) || o->micro, AN_ERR_ARGUMENT,
             "batch: accumulate counts micro-batches, so micro, the number of samples in a micro-batch, must be set");
    AN_CHECK(ctx, !(o->accumulate && o->table_count), AN_ERR_ARGUMENT,
             "batch: accumulate is either a number or a table by epoch, not both");
    AN_CHECK(ctx, o->table_count >= 0 && o->table_count <= AN_BATCH_TABLE && (o->table || o->table_count == 0),
             AN_ERR_ARGUMENT, "batch: accumulate changes %d times; at most %d changes are supported", o->table_count,
             AN_BATCH_TABLE);
    for (int i = 0; i < o->table_count; i++)
        AN_CHECK(
            ctx, o->table[i].accumulate > 0 && (i ? o->table[i].epoch > o->table[i - 1].epoch : o->table[i].epoch == 0),
            AN_ERR_ARGUMENT,
            "batch: the table of accumulate must begin with 0 finished epochs and be sorted by them; entry %d is %lld: "
            "%lld",
            i, (long long)o->table[i].epoch, (long long)o->table[i].accumulate);
    return AN_OK;
fail:
    return status;
}

static an_status multiply(an_context *ctx, int64_t micro, int64_t accumulate, int64_t *global) {
    if (an_multiply_i64(micro, accumulate, global)) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_OVERFLOW, "batch: micro %lld × accumulate %lld is too large", (long long)micro,
                    (long long)accumulate);
}

static an_status find_global(an_batches *b, const an_batch_options *o) {
    an_context *ctx = b->ctx;
    b->global = o->global;
    if (o->accumulate) {
        int64_t product;
        AN_TRY_RETURN(multiply(ctx, o->micro, o->accumulate, &product));
        if (o->global && o->global != product)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "batch: global is %lld, but micro %lld × accumulate %lld = %lld: omit one of them",
                            (long long)o->global, (long long)o->micro, (long long)o->accumulate, (long long)product);
        b->global = product;
    }
    b->entry_count = o->table_count;
    for (int i = 0; i < o->table_count; i++) {
        b->entries[i].epoch = o->table[i].epoch;
        AN_TRY_RETURN(multiply(ctx, o->micro, o->table[i].accumulate, &b->entries[i].global));
    }
    if (b->entry_count == 0) {
        b->entry_count = 1;
        b->entries[0].epoch = 0;
        b->entries[0].global = b->global;
    }
    b->global = an_batches_largest(b);
    return AN_OK;
}

an_status an_batches_make(an_batches *batches, an_context *ctx, int64_t samples, const an_batch_options *given) {
    an_status status;
    an_batch_options options;
    const an_batch_options *const o = &options;
    an_batches b = {.ctx = ctx, .samples = samples};
    AN_TRY(an_batch_options_read(ctx, &options, given));
    b.drop_last = o->drop_last;
    AN_TRY(check_options(ctx, samples, o));
    AN_TRY(find_global(&b, o));
    AN_CHECK(ctx, o->leaves <= b.global, AN_ERR_ARGUMENT,
             "batch: there are %lld leaves, but a step has only %lld samples; every leaf needs at least one",
             (long long)o->leaves, (long long)b.global);
    AN_CHECK(ctx, !b.drop_last || b.samples >= b.global, AN_ERR_ARGUMENT,
             "drop_last drops everything: an epoch has %lld samples, but a step takes %lld", (long long)b.samples,
             (long long)b.global);
    b.chooses = o->micro == 0;
    b.maximum = o->micro ? an_smaller(o->micro, b.global) : b.global;
    an_batches_set_leaves(&b, o->leaves ? o->leaves : 1);
    *batches = b;
    return AN_OK;
fail:
    return status;
}

void an_batches_set_leaves(an_batches *b, int64_t leaves) {
    b->leaves = leaves;
    b->micro = an_smaller(b->maximum, an_divide_up(b->global, leaves));
}

int64_t an_batches_together(an_batches *b, int64_t leaves) {
    int64_t together = 1;
    b->micro = an_smaller(b->maximum, an_divide_up(b->global, b->leaves));
    while (together < leaves) {
        __int128 samples = ((__int128)an_smaller(2 * together, b->leaves) * b->global + b->leaves - 1) / b->leaves;
        /* one more where a rank cuts samples of its own into its leaves, which may round up once more */
        if (b->global % b->leaves != 0 && samples < b->global) samples++;
        if (samples > b->maximum) break;
        b->micro = (int64_t)samples;
        together *= 2;
    }
    return together;
}

/* ---- steps ---- */

int64_t an_batches_largest(const an_batches *b) {
    int64_t largest = 0;
    for (int i = 0; i < b->entry_count; i++)
        if (b->entries[i].global > largest) largest = b->entries[i].global;
    return largest;
}

static int64_t steps_of(const an_batches *b, int64_t global) {
    return b->drop_last ? b->samples / global : an_divide_up(b->samples, global);
}

/* The entry that holds in an epoch. */
static int entry_of(const an_batches *b, int64_t epoch) {
    int i = b->entry_count - 1;
    while (i > 0 && b->entries[i].epoch > epoch) i--;
    return i;
}

int64_t an_batches_epoch_steps(const an_batches *b, int64_t epoch) {
    AN_NEED_OR(0, b);
    return steps_of(b, b->entries[entry_of(b, epoch)].global);
}

int64_t an_batches_epoch_begin(const an_batches *b, int64_t epoch) {
    AN_NEED_OR(0, b);
    int64_t steps = 0;
    for (int i = 0; i < b->entry_count && b->entries[i].epoch < epoch; i++) {
        const bool last = i + 1 == b->entry_count || b->entries[i + 1].epoch >= epoch;
        const int64_t end = last ? epoch : b->entries[i + 1].epoch;
        steps += (end - b->entries[i].epoch) * steps_of(b, b->entries[i].global);
    }
    return steps;
}

an_step_batch an_batches_at(const an_batches *b, int64_t step) {
    int i = 0;
    int64_t before = 0, samples = 0; /* steps and samples before entry i */
    for (; i + 1 < b->entry_count; i++) {
        const int64_t epochs = b->entries[i + 1].epoch - b->entries[i].epoch,
                      steps = epochs * steps_of(b, b->entries[i].global);
        if (step < before + steps) break;
        before += steps;
        samples += epochs * (b->drop_last ? steps_of(b, b->entries[i].global) * b->entries[i].global : b->samples);
    }
    const int64_t global = b->entries[i].global, steps = steps_of(b, global);
    an_step_batch s = {.epoch = b->entries[i].epoch + (step - before) / steps, .epoch_step = (step - before) % steps};
    s.begin = s.epoch_step * global;
    s.count = b->samples - s.begin < global ? b->samples - s.begin : global;
    s.first_sample = samples + (step - before) / steps * (b->drop_last ? steps * global : b->samples) + s.begin;
    return s;
}

/* ---- lengths ---- */

/* What rounding can add to a length, as a share of it. */
static const double rounding = 1e-12;

int64_t an_whole_steps(double exact) {
    const double maximum = 0x1p62; /* longer than any run */
    if (!(exact < maximum)) return (int64_t)maximum;
    const int64_t below = (int64_t)exact;
    return below + (exact - (double)below > rounding * exact);
}

/* Steps of an epoch that has `steps`, for `left` of its `parts`. */
static int64_t steps_for_parts(double left, double parts, double steps) {
    return an_whole_steps(steps == parts ? left : left * steps / parts);
}

/* An epoch has as many parts as the first one has steps, so that whole epochs stay whole numbers. */
int64_t an_batches_steps_for(const an_batches *b, int64_t from, double epochs) {
    const int64_t first = an_batches_at(b, from).epoch;
    const double parts = (double)an_batches_epoch_steps(b, first);
    double left = epochs * parts;
    int64_t step = from;
    for (int i = entry_of(b, first); i + 1 < b->entry_count; i++) {
        const int64_t end = an_batches_epoch_begin(b, b->entries[i + 1].epoch);
        const double steps = (double)steps_of(b, b->entries[i].global), has = (double)(end - step) * parts / steps;
        if (left - has <= rounding * left) return step - from + steps_for_parts(left, parts, steps);
        left -= has;
        step = end;
    }
    const double steps = (double)steps_of(b, b->entries[b->entry_count - 1].global);
    return step - from + steps_for_parts(left, parts, steps);
}

/* Not libm's floor, which the library does not link. From 2^53 on, every double is whole. */
static double whole_part(double positive) {
    return positive < 0x1p53 ? (double)(int64_t)positive : positive;
}

int64_t an_batches_steps_taking(const an_batches *b, int64_t from, double samples) {
    const an_step_batch at = an_batches_at(b, from);
    int64_t epoch = at.epoch, step = from - at.epoch_step;
    double left = samples + (double)at.begin; /* counted from where the epoch begins, at `step` */
    for (int i = entry_of(b, epoch);; i++) {
        const int64_t global = b->entries[i].global, steps = steps_of(b, global);
        const double each = b->drop_last ? (double)steps * (double)global : (double)b->samples;
        const int64_t epochs = i + 1 < b->entry_count ? b->entries[i + 1].epoch - epoch : 0;
        if (epochs == 0 || left <= (double)epochs * each) {
            const double whole = whole_part(left / each), rest = left - whole * each;
            return step - from + an_whole_steps(whole * (double)steps + (double)an_whole_steps(rest / (double)global));
        }
        left -= (double)epochs * each;
        step += epochs * steps;
        epoch += epochs;
    }
}

int64_t an_batches_steps_until(const an_batches *b, int64_t to, double amount, an_steps_of steps_of_amount) {
    int64_t from = 0, beyond = to + 1; /* the last step from which they end in time is at `from` or later */
    const int64_t longest = steps_of_amount(b, 0, amount);
    if (longest > to) return longest;
    while (beyond - from > 1) {
        const int64_t middle = from + (beyond - from) / 2;
        if (middle + steps_of_amount(b, middle, amount) <= to)
            from = middle;
        else
            beyond = middle;
    }
    return to - from;
}

double an_batches_epochs(const an_batches *b, int64_t steps) {
    const an_step_batch at = an_batches_at(b, steps);
    return (double)at.epoch + (double)at.epoch_step / (double)an_batches_epoch_steps(b, at.epoch);
}

void an_batches_epoch_range(const an_batches *b, int64_t run, int64_t *minimum, int64_t *maximum) {
    *minimum = *maximum = an_batches_epoch_steps(b, 0);
    for (int i = 1; i < b->entry_count && an_batches_epoch_begin(b, b->entries[i].epoch) < run; i++) {
        const int64_t steps = steps_of(b, b->entries[i].global);
        if (steps < *minimum) *minimum = steps;
        if (steps > *maximum) *maximum = steps;
    }
}

/* How many intervals are over when `parts` parts of an epoch are, of which an interval has `length`. */
static int64_t intervals(double parts, double length) {
    const double slack = 1e-9; /* 0.1 epochs end with the epoch, though ten of them are no whole number */
    return (int64_t)(parts / length + slack);
}

bool an_interval_ends(const an_interval *interval, const an_batches *b, int64_t step) {
    if (step <= 0) return false;
    if (interval->epochs > 0) {
        const an_step_batch last = an_batches_at(b, step - 1);
        const double steps = (double)an_batches_epoch_steps(b, last.epoch), length = interval->epochs * steps;
        if (length <= 1) return true;
        const double before = (double)last.epoch * steps + (double)last.epoch_step;
        return intervals(before + 1, length) > intervals(before, length);
    }
    return interval->steps > 0 && step % interval->steps == 0;
}

/* ---- leaves and micro-batches ---- */

bool an_leaf_set_next(const an_batches *b, const an_leaf_set *set, const an_batch_part *part, an_leaf_samples *l) {
    const int64_t index = l->index + 1, at = l->index < 0 ? 0 : l->at + l->count;
    if (index >= set->count) return false;
    const int64_t leaf = set->first + index / set->each * set->stride + index % set->each;
    *l = (an_leaf_samples){.index = index, .leaf = leaf, .at = at};
    if (part->own) {
        l->first = part->first + at;
        l->count = (int64_t)((__int128)(index + 1) * part->n / set->count) - at;
    } else {
        l->first = an_leaf_begin(b, part->total, leaf);
        l->count = an_leaf_begin(b, part->total, leaf + 1) - l->first;
    }
    return true;
}

an_batch_part an_leaves_part(const an_batches *b, int64_t step, const an_leaf_set *set) {
    an_batch_part part = {.total = an_batches_at(b, step).count};
    part.first = an_leaf_begin(b, part.total, set->first);
    part.n = an_leaf_begin(b, part.total, set->first + set->count) - part.first;
    if (set->count <= set->each) return part;
    part.n = 0;
    for (an_leaf_samples l = {.index = -1}; an_leaf_set_next(b, set, &part, &l);) part.n += l.count;
    return part;
}

int64_t an_leaves_most(const an_batches *b, const an_leaf_set *set) {
    if (set->count > set->each) return set->count * an_divide_up(b->global, b->leaves);
    return (int64_t)(((__int128)set->count * b->global + b->leaves - 1) / b->leaves);
}

/* The fewest samples of a micro-batch of a step. */
static int64_t fewest_in_step(const an_batches *b, int64_t count) {
    const int64_t leaves[] = {count / b->leaves, an_divide_up(count, b->leaves)};
    int64_t fewest = count;
    for (int i = 0; i < 2; i++) {
        const int64_t rest = leaves[i] % b->micro, minimum = rest > 0 ? rest : b->micro;
        if (leaves[i] > 0 && minimum < fewest) fewest = minimum;
    }
    return fewest;
}

/* Only the first and the last step of an epoch differ. */
int64_t an_batches_least_micro(const an_batches *b, int64_t steps) {
    int64_t fewest = b->micro;
    for (int i = 0; i < b->entry_count; i++) {
        const int64_t first = an_batches_epoch_begin(b, b->entries[i].epoch),
                      last = first + an_batches_epoch_steps(b, b->entries[i].epoch) - 1;
        const int64_t ends[] = {first, last};
        for (int k = 0; k < 2; k++) {
            if (ends[k] >= steps) continue;
            const int64_t minimum = fewest_in_step(b, an_batches_at(b, ends[k]).count);
            if (minimum < fewest) fewest = minimum;
        }
    }
    return fewest;
}
