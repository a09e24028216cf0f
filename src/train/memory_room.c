/* Memory: compares the plan with the limits, and suggests what would fit. */
#include "train/memory_room.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/system/limits.h"
#include "comm/comm.h"
#include "train/sharding.h"

/* A change of the options, and what it takes. */
typedef struct {
    int64_t micro, bytes, leaves;
    int64_t evaluation; /* eval.micro; 0: what the run has */
    bool saves_directly;
    an_recompute recompute;
    an_limits_fit fit;
} change;

enum { ADVICE = 384, DIVISION = 2 * AN_SHARDING_TEXT + 64 };

static int64_t change_others(int64_t others, int64_t before, int64_t after) {
    return before > 0 ? (int64_t)((double)others * ((double)after / (double)before)) : others;
}

/* What changes are tried for, and what the run needs without any. */
typedef struct {
    const an_trainer_options *options;
    const an_limits *limits;
    int64_t bytes;
} trial;

/* Plans the trainer with another micro-batch and recompute. It has no plan meanwhile, as what it holds is counted. A
 * batch.micro that is given may have fewer leaves than one that is chosen (train/default_leaves.h). */
static void try_change(an_trainer *t, const trial *of, bool is_given, change *c) {
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    const an_recompute recompute = t->room.recompute;
    const an_batches batches = t->samples.batches;
    const int64_t below = t->cut.below, evaluation = t->evaluator.micro;
    const bool saves_directly = t->saving.directly;
    char *notes = t->room.notes;
    an_limits others = *of->limits; /* the other ranks change as much */
    char text[AN_LIMITS_TEXT];
    t->room.notes = NULL; /* what a try notes is not of the run */
    t->samples.batches.maximum = c->micro;
    t->samples.batches.chooses = batches.chooses && !is_given;
    t->cut.chooses = is_given && of->options->batch->leaves == 0;
    t->room.recompute = c->recompute;
    t->saving.directly = c->saves_directly;
    if (c->evaluation) t->evaluator.micro = c->evaluation;
    const bool planned = an_trainer_make_plan(t, of->options) == AN_OK && an_plan_memory_get(t->plan, &memory) == AN_OK;
    c->leaves = t->samples.batches.leaves;
    an_trainer_drop_plan(t);
    an_string_release(t->ctx, &t->room.notes);
    t->room.notes = notes;
    t->samples.batches = batches;
    t->cut.chooses = false; /* as it is behind a plan */
    t->cut.below = below;
    t->room.recompute = recompute;
    t->saving.directly = saves_directly;
    t->evaluator.micro = evaluation;
    others.others = change_others(of->limits->others, of->bytes, memory.peak);
    others.group_others = change_others(of->limits->group_others, of->bytes, memory.peak);
    c->bytes = memory.peak;
    c->fit = planned ? an_limits_compare(&others, memory.peak, (int64_t)t->ctx->bytes, text) : AN_LIMITS_EXCEEDED;
}

/* What leaves little for threads and buffers may end with a killed process: it is for want of anything better, and then
 * what needs least. */
static void keep_best(change *best, const change *c) {
    if (c->fit < best->fit || (c->fit == best->fit && c->bytes < best->bytes)) *best = *c;
}

/* The largest micro-batch above `least` that fits with this recompute, by halves. */
static change find_micro(an_trainer *t, const trial *of, an_recompute recompute, int64_t evaluation, int64_t minimum) {
    change c = {.micro = t->samples.batches.micro,
                .evaluation = evaluation,
                .saves_directly = t->saving.expected,
                .recompute = recompute},
           best = {.fit = AN_LIMITS_EXCEEDED, .bytes = INT64_MAX};
    for (; c.micro > minimum && best.fit != AN_LIMITS_FITS; c.micro /= 2) {
        try_change(t, of, true, &c);
        keep_best(&best, &c);
    }
    return best;
}

static const char *name_of(an_recompute recompute) {
    return recompute == AN_RECOMPUTE_FULL ? "full" : "block";
}

/* "batch.micro 8 would need 1.20 GiB"; other leaves are other bits */
static int describe(const an_trainer *t, const change *c, char *text, size_t capacity) {
    const int length = snprintf(text, capacity, "batch.micro %lld would need %s", (long long)c->micro,
                                an_bytes_in_words(c->bytes).text);
    if (c->leaves == t->samples.batches.leaves) return length;
    return length + snprintf(text + length, capacity - (size_t)length, " (batch.leaves: auto is %lld then, not %lld)",
                             (long long)c->leaves, (long long)t->samples.batches.leaves);
}

/* Where no step fits: the evaluation may need most, and how it is cut is up to the config, as it is bits. */
static void advise_evaluation(an_trainer *t, const trial *of, const change *minimum, char text[ADVICE]) {
    change c = {.fit = AN_LIMITS_EXCEEDED};
    for (int mode = (int)t->room.recompute; mode <= AN_RECOMPUTE_FULL && c.fit == AN_LIMITS_EXCEEDED; mode++)
        if (t->evaluator.data && t->evaluator.micro == 0) c = find_micro(t, of, (an_recompute)mode, 1, 0);
    if (c.fit == AN_LIMITS_EXCEEDED) {
        snprintf(text, ADVICE,
                 "even batch.micro %lld with train.recompute full would need %s: use a smaller model or context, or a "
                 "machine with more memory",
                 (long long)minimum->micro, an_bytes_in_words(minimum->bytes).text);
        return;
    }
    const char *again = c.recompute == AN_RECOMPUTE_NONE ? "" : " and train.recompute ";
    const int length = snprintf(text, ADVICE, "the evaluation needs most: eval.micro 1%s%s with ", again,
                                *again ? name_of(c.recompute) : "");
    describe(t, &c, text + length, ADVICE - (size_t)length);
}

/* Smaller micro-batches, and recompute with larger ones. */
static void advise(an_trainer *t, const trial *of, char text[ADVICE]) {
    const change smaller = find_micro(t, of, t->room.recompute, 0, 0);
    const int64_t minimum = smaller.fit == AN_LIMITS_FITS ? smaller.micro : 0;
    change again = {.micro = smaller.micro, .bytes = smaller.bytes, .fit = AN_LIMITS_EXCEEDED};
    for (int mode = AN_RECOMPUTE_BLOCK; mode <= AN_RECOMPUTE_FULL && again.fit != AN_LIMITS_FITS; mode++)
        if (t->room.recompute != AN_RECOMPUTE_FULL && mode != (int)t->room.recompute)
            again = find_micro(t, of, (an_recompute)mode, 0, minimum);
    int length = 0;
    if (smaller.fit != AN_LIMITS_EXCEEDED && smaller.fit <= again.fit) length = describe(t, &smaller, text, ADVICE);
    if (again.fit != AN_LIMITS_EXCEEDED && again.fit <= smaller.fit) {
        length += snprintf(text + length, ADVICE - (size_t)length, "%strain.recompute %s with ", length ? "; " : "",
                           name_of(again.recompute));
        length += describe(t, &again, text + length, ADVICE - (size_t)length);
    }
    if (length == 0) advise_evaluation(t, of, &again, text);
}

/* What ranks could divide. */
static void advise_sharding(const an_trainer *t, const an_trainer_options *options, char text[DIVISION]) {
    *text = 0;
    if (t->ranks == 1) return;
    if (options->shard == AN_SHARD_AUTO)
        snprintf(text, DIVISION, "; ranks.shard auto took %s: %s", an_shard_name(t->division.pieces.sharding),
                 t->division.choice.reason);
    else if (t->division.pieces.sharding < AN_SHARD_FULL)
        snprintf(text, DIVISION, "; ranks.shard auto takes what fits");
}

/* ---- what is chosen ---- */

/* Smaller micro-batches cost little: down to a leaf, as parts of one have other bits. A save without a copy of the
 * state costs the time that it takes, which is little of the time between saves. Then values are computed twice. */
static bool next_change(const an_trainer *t, bool has_one_leaf, change *c) {
    const an_batches *b = &t->samples.batches;
    const int64_t leaf = an_divide_up(b->global, b->leaves);
    if (b->chooses && !has_one_leaf && c->micro > leaf) {
        c->micro = an_larger(c->micro / 2, leaf);
        return true;
    }
    if (t->saving.expected && !c->saves_directly) {
        c->saves_directly = true;
        if (b->chooses) c->micro = b->maximum;
        return true;
    }
    if (!t->room.chooses_recompute || c->recompute == AN_RECOMPUTE_FULL) return false;
    c->recompute = c->recompute == AN_RECOMPUTE_NONE ? AN_RECOMPUTE_BLOCK : AN_RECOMPUTE_FULL;
    if (b->chooses) c->micro = b->maximum;
    return true;
}

/* How a change fits, and what it needs. */
typedef struct {
    int64_t fit, bytes;
} need;

static void take_larger(void *user, void *record, const void *next) {
    need *a = record;
    const need *b = next;
    (void)user;
    a->fit = an_larger(a->fit, b->fit);
    a->bytes = an_larger(a->bytes, b->bytes);
}

/* What it is on the rank with the least room. */
static an_status agree(const an_trainer *t, change *c) {
    an_context *ctx = t->ctx;
    need own = {c->fit, c->bytes}, received;
    const an_comm_merger merger = {
        .bytes = sizeof own, .merge = take_larger, .received = &received, .what = "the other ranks: whether it fits"};
    if (t->ranks == 1 || t->planned) return AN_OK;
    AN_TRY_RETURN(an_comm_merge(ctx, an_axis_comm(ctx, AN_AXIS_DATA), &merger, &own));
    c->fit = (an_limits_fit)own.fit;
    c->bytes = own.bytes;
    return AN_OK;
}

static an_status note_choice(an_trainer *t, int64_t bytes, const change *c) {
    char note[256], again[64] = "";
    if (c->recompute != t->room.recompute)
        snprintf(again, sizeof again, " and train.recompute %s", name_of(c->recompute));
    snprintf(note, sizeof note, "micro-batches of %lld samples%s were chosen: without that, the run would need %s\n",
             (long long)c->micro, again, an_bytes_in_words(bytes).text);
    if (c->micro != t->samples.batches.maximum || *again) AN_TRY_RETURN(an_trainer_add_note(t, note));
    if (!c->saves_directly) return AN_OK;
    snprintf(note, sizeof note,
             "checkpoints are written without a copy of the state, because there is no memory for one: training "
             "waits for them\n");
    return an_trainer_add_note(t, note);
}

an_status an_memory_room_choose(an_trainer *t, const an_trainer_options *options, bool *settled) {
    an_context *ctx = t->ctx;
    an_limits limits;
    char text[AN_LIMITS_TEXT];
    const int64_t bytes = t->plan->memory.peak;
    const trial of = {options, &limits, bytes};
    change c = {
        .micro = t->samples.batches.maximum, .recompute = t->room.recompute, .bytes = bytes, .fit = AN_LIMITS_FITS};
    const bool has_one_leaf = an_plan_one_leaf(t->plan) != NULL;
    if (!t->samples.batches.chooses && !t->room.chooses_recompute && !t->saving.expected) return AN_OK;
    if (an_context_uses_system_memory(ctx)) {
        an_limits_read("", &limits);
        limits.others = t->division.choice.others[t->division.pieces.sharding];
        limits.group_others = t->division.choice.group_others[t->division.pieces.sharding];
        c.fit = an_limits_compare(&limits, bytes, (int64_t)ctx->bytes, text);
    }
    AN_TRY_RETURN(agree(t, &c));
    if (c.fit == AN_LIMITS_FITS) return AN_OK;
    change best = c;
    an_trainer_drop_plan(t);
    while (best.fit != AN_LIMITS_FITS && next_change(t, has_one_leaf, &c)) {
        try_change(t, &of, false, &c);
        AN_TRY_RETURN(agree(t, &c));
        keep_best(&best, &c);
    }
    /* If nothing fits, an_memory_room_check says what would. */
    const bool changes = best.micro != t->samples.batches.maximum || best.recompute != t->room.recompute ||
                         best.saves_directly != t->saving.directly;
    if (best.fit != AN_LIMITS_EXCEEDED && changes) {
        AN_TRY_RETURN(note_choice(t, bytes, &best));
        t->saving.directly = best.saves_directly;
        t->samples.batches.maximum = best.micro;
        t->room.recompute = best.recompute;
    }
    t->division.choice = (an_sharding){0};
    return an_sharding_settle(t, options, settled);
}

/* What would fit; the plan is made again. */
static an_status find_advice(an_trainer *t, const trial *of, char text[ADVICE]) {
    an_trainer_drop_plan(t);
    advise(t, of, text);
    AN_TRY_RETURN(an_trainer_make_plan(t, of->options));
    return t->record.kernels ? an_plan_count_trainer(t->plan, strlen(t->record.kernels) + 1)
                             : AN_OK; /* as an_trainer_create does */
}

an_status an_memory_room_check(an_trainer *t, const an_trainer_options *options) {
    an_context *ctx = t->ctx;
    an_limits limits;
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    char text[AN_LIMITS_TEXT], advice[ADVICE], division[DIVISION];
    char note[AN_LIMITS_TEXT + ADVICE + DIVISION + 64];
    if (!an_context_uses_system_memory(ctx)) return AN_OK;
    AN_TRY_RETURN(an_plan_memory_get(t->plan, &memory));
    an_limits_read("", &limits);
    limits.others = t->division.choice.others[t->division.pieces.sharding];
    limits.group_others = t->division.choice.group_others[t->division.pieces.sharding];
    const an_limits_fit fit = an_limits_compare(&limits, memory.peak, (int64_t)ctx->bytes, text);
    if (fit == AN_LIMITS_FITS) return AN_OK;
    if (fit == AN_LIMITS_TIGHT) {
        snprintf(note, sizeof note, "%s\n", text);
        return an_trainer_add_note(t, note);
    }
    const trial of = {options, &limits, memory.peak};
    AN_TRY_RETURN(find_advice(t, &of, advice));
    advise_sharding(t, options, division);
    /* Not AN_ERR_MEMORY: another try on this machine would be refused too. */
    if (!t->planned)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "the run does not fit in memory: %s; %s%s", text, advice, division);
    snprintf(note, sizeof note, "the run does not fit in memory: %s; %s%s\n", text, advice, division);
    return an_trainer_add_note(t, note);
}
