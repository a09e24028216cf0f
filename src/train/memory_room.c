/* Memory: compares the plan with the limits, and suggests what would fit. */
#include "train/memory_room.h"

#include <stdio.h>

#include "base/limits.h"

/* A change of the options, and what it takes. */
typedef struct {
    int64_t micro, bytes;
    an_recompute recompute;
    bool fits;
} change;

enum { ADVICE = 384, DIVISION = 2 * AN_SHARDING_TEXT + 64 };

static int64_t change_others(int64_t others, int64_t before, int64_t after) {
    return before > 0 ? (int64_t)((double)others * ((double)after / (double)before)) : others;
}

/* Plans the trainer with another micro-batch and recompute; its own plan stays. */
static bool try_change(an_trainer *t, const an_trainer_options *options, const an_limits *limits, change *c) {
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    an_trainer_options changed = *options;
    an_plan *plan = t->plan;
    an_shards *shards = t->shards;
    const int64_t micro = t->batches.micro, before = plan->memory.peak;
    const size_t held = t->held;
    an_limits others = *limits; /* the other ranks change as much */
    char text[AN_LIMITS_TEXT];
    t->plan = NULL;
    t->shards = NULL;
    t->batches.micro = c->micro;
    changed.recompute = c->recompute;
    const bool planned = an_trainer_make_plan(t, &changed) == AN_OK && an_plan_memory_get(t->plan, &memory) == AN_OK;
    an_trainer_drop_plan(t);
    t->plan = plan;
    t->pieces.shards = t->shards = shards;
    t->batches.micro = micro;
    t->held = held;
    others.others = change_others(limits->others, before, memory.peak);
    others.group_others = change_others(limits->group_others, before, memory.peak);
    c->bytes = memory.peak;
    c->fits = planned && an_limits_compare(&others, memory.peak, (int64_t)t->ctx->bytes, text) != AN_LIMITS_EXCEEDED;
    return c->fits;
}

/* The largest micro-batch above `least` that fits with this recompute, by halves. */
static change find_micro(an_trainer *t, const an_trainer_options *options, const an_limits *limits,
                         an_recompute recompute, int64_t least) {
    change c = {.micro = t->batches.micro, .recompute = recompute};
    while (!try_change(t, options, limits, &c) && c.micro / 2 > least) c.micro /= 2;
    return c;
}

static const char *name_of(an_recompute recompute) {
    return recompute == AN_RECOMPUTE_FULL ? "full" : "block";
}

/* "batch.micro 8 would take 1.20 GiB, train.recompute block with batch.micro 16 1.31 GiB" */
static void advise(an_trainer *t, const an_trainer_options *options, const an_limits *limits, char text[ADVICE]) {
    const change smaller = find_micro(t, options, limits, options->recompute, 0);
    change again = {.bytes = smaller.bytes};
    for (int mode = AN_RECOMPUTE_BLOCK; mode <= AN_RECOMPUTE_FULL && !again.fits; mode++)
        if (options->recompute != AN_RECOMPUTE_FULL && mode != (int)options->recompute)
            again = find_micro(t, options, limits, (an_recompute)mode, smaller.fits ? smaller.micro : 0);
    int length = 0;
    if (smaller.fits)
        length = snprintf(text, ADVICE, "batch.micro %lld would need %s", (long long)smaller.micro,
                          an_bytes_in_words(smaller.bytes).text);
    if (again.fits)
        length += snprintf(text + length, ADVICE - (size_t)length,
                           "%strain.recompute %s with batch.micro %lld would need %s", length ? "; " : "",
                           name_of(again.recompute), (long long)again.micro, an_bytes_in_words(again.bytes).text);
    if (length == 0)
        snprintf(text, ADVICE,
                 "even batch.micro 1 with train.recompute full would need %s: use a smaller model or context, or a "
                 "machine with more memory",
                 an_bytes_in_words(again.bytes).text);
}

/* What ranks could divide. */
static void advise_sharding(const an_trainer *t, const an_trainer_options *options, char text[DIVISION]) {
    *text = 0;
    if (t->ranks == 1) return;
    if (options->shard == AN_SHARD_AUTO)
        snprintf(text, DIVISION, "; ranks.shard auto took %s: %s", an_shard_name(t->pieces.sharding),
                 t->sharding.reason);
    else if (t->pieces.sharding < AN_SHARD_FULL)
        snprintf(text, DIVISION, "; ranks.shard auto takes what fits");
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
    limits.others = t->sharding.others[t->pieces.sharding];
    limits.group_others = t->sharding.group_others[t->pieces.sharding];
    const an_limits_fit fit = an_limits_compare(&limits, memory.peak, (int64_t)ctx->bytes, text);
    if (fit == AN_LIMITS_FITS) return AN_OK;
    if (fit == AN_LIMITS_TIGHT) {
        snprintf(note, sizeof note, "%s\n", text);
        return an_trainer_add_note(t, note);
    }
    advise(t, options, &limits, advice);
    advise_sharding(t, options, division);
    /* Not AN_ERR_MEMORY: another try on this machine would be refused too. */
    if (!t->planned)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "the run does not fit in memory: %s; %s%s", text, advice, division);
    snprintf(note, sizeof note, "the run does not fit in memory: %s; %s%s\n", text, advice, division);
    return an_trainer_add_note(t, note);
}
