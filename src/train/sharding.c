#include "train/sharding.h"

#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/integer.h"
#include "comm/comm.h"
#include "exec/structs.h"
#include "step/rounds.h"
#include "train/sharding_cost.h"
#include "train/structs.h"
#include "train/trainer.h"

/* From the least that is divided to the most; and then one that is shown, but only taken where somebody asks for it. */
static const an_shard strategies[] = {AN_SHARD_NONE, AN_SHARD_OPTIMIZER, AN_SHARD_GRADIENTS, AN_SHARD_FULL,
                                      AN_SHARD_HYBRID};
enum { ALL_STRATEGIES = sizeof strategies / sizeof *strategies, STRATEGIES = ALL_STRATEGIES - 1 };

/* What a rank of a host needs there. */
typedef struct {
    uint64_t group; /* an_limits.group */
    int64_t bytes[AN_SHARD_COUNT];
} need;

typedef struct {
    an_trainer *t;
    const an_trainer_options *options;
    an_sharding *found;
    an_limits limits;
    bool is_planned;  /* ranks are imagined, all of them with the limits of this process */
    bool accumulates; /* an_trainer.accumulates, also where it need not be */
    int host_ranks;
    /* that divide the state in a hybrid: those of every host. 0: hosts have different numbers of them */
    int group_ranks;
    need *needs; /* of the ranks of this host, or of all imagined ones */
    size_t need_count;
} settling;

/* ---- one strategy ---- */

/* Owners add the gradients of whole leaves. Where a leaf is several micro-batches, each rank must add theirs first. */
static bool has_parts(const an_batches *b) {
    return an_divide_up(an_batches_largest(b), b->leaves) > b->maximum;
}

static an_status check_parts(const settling *s) {
    const an_batches *b = &s->t->samples.batches;
    const int64_t samples = an_divide_up(an_batches_largest(b), b->leaves);
    if (s->options->accumulate != AN_ACCUMULATE_OFF || !has_parts(b)) return AN_OK;
    return AN_ERROR(
        s->t->ctx, AN_ERR_ARGUMENT,
        "ranks.accumulate is off, so a micro-batch must have room for a leaf, but a leaf of this run has up to "
        "%lld samples and a micro-batch %lld: omit ranks.accumulate, or set batch.leaves to %lld or more, or "
        "batch.micro to %lld",
        (long long)samples, (long long)b->maximum, (long long)an_divide_up(an_batches_largest(b), b->maximum),
        (long long)samples);
}

static an_status make_plan(const settling *s, an_shard shard) {
    an_trainer *t = s->t;
    if (t->plan) an_trainer_drop_plan(t);
    t->division.pieces.sharding = shard;
    t->division.group_ranks = shard == AN_SHARD_HYBRID ? s->group_ranks : t->ranks;
    t->division.accumulates = s->accumulates || has_parts(&t->samples.batches);
    if (an_shard_has_rounds(shard)) AN_TRY_RETURN(check_parts(s));
    return an_trainer_make_plan(t, s->options);
}

/* Micro-batches that the rank runs in a step. */
static int64_t runs_of(const an_trainer *t) {
    const an_batches *b = &t->samples.batches;
    if (an_shard_has_rounds(t->division.pieces.sharding))
        return an_leaf_rounds_count(&t->division.pieces, b->leaves) * an_leaf_rounds_passes(&t->division.pieces);
    if (t->cut.together > 1) return an_divide_up(t->cut.leaves.count, t->cut.together);
    return t->cut.leaves.count * an_divide_up(an_divide_up(an_batches_largest(b), b->leaves), b->micro);
}

/* Reading gradients for their norm and for the update, and reading and writing weights and moments; and for an
 * average, reading the weights once more. */
static int64_t updated_bytes(const an_trainer *t) {
    const an_plan *p = t->plan;
    const int64_t numbers = 4 + 2 * an_kept_count(p->kept) + p->kept.average,
                  low = p->low == AN_DTYPE_NONE ? 0 : (int64_t)an_dtype_size(p->low);
    return an_trainer_own_pages(t) * AN_PAGE * (numbers * (int64_t)an_dtype_size(p->sizes.trainable_dtype) + low);
}

/* What goes to other hosts: there and back, in a hybrid, what the rank owns of the gradients. */
static int64_t linked_bytes(const settling *s) {
    const an_trainer *t = s->t;
    if (s->host_ranks >= t->ranks) return 0;
    if (t->division.group_ranks == t->ranks) return t->plan->traffic.sent;
    const int64_t own = an_trainer_own_pages(t) * AN_PAGE * (int64_t)an_dtype_size(t->plan->sizes.trainable_dtype);
    return 2 * own / t->division.shards->groups * (t->division.shards->groups - 1);
}

/* Seconds of a micro-batch, the same on every rank. */
static an_status estimate_pass(const an_trainer *t, double *seconds) {
    an_plan_cost cost;
    an_plan_cost_init(&cost, sizeof cost);
    AN_TRY_RETURN(an_plan_cost_get(t->plan, AN_FORM_TRAIN_FIRST, &cost));
    *seconds = cost.seconds;
    return AN_OK;
}

/* What the plan has counted for the rank that it is of. */
static an_assessment take_rank(const settling *s, double seconds) {
    const an_trainer *t = s->t;
    const an_plan_traffic *traffic = &t->plan->traffic;
    const an_step_work work = {.seconds = seconds * (double)runs_of(t),
                               .updated = updated_bytes(t),
                               .sent = traffic->sent,
                               .received = traffic->received,
                               .messages = traffic->messages,
                               .read = traffic->read,
                               .written = traffic->written,
                               .host_ranks = s->host_ranks,
                               .linked = linked_bytes(s)};
    return (an_assessment){.is_known = true,
                           .is_possible = true,
                           .rank = t->rank,
                           .memory = t->plan->memory,
                           .sent = traffic->sent,
                           .shared = traffic->read + traffic->written,
                           .seconds = an_step_work_seconds(&work)};
}

/* What ranks a … b - 1 and b … c - 1 have found, in the first. */
static void merge_assessments(an_assessment *a, const an_assessment *b) {
    if (!a->is_known || (a->is_possible && !b->is_possible)) {
        *a = *b;
        return;
    }
    if (!a->is_possible) return;
    if (b->memory.peak > a->memory.peak) {
        a->memory = b->memory;
        a->rank = b->rank;
    }
    a->sent = an_larger(a->sent, b->sent);
    a->shared = an_larger(a->shared, b->shared);
    if (b->seconds > a->seconds) a->seconds = b->seconds;
    if (b->fit <= a->fit && *a->text) return;
    a->fit = b->fit;
    memcpy(a->text, b->text, sizeof a->text);
}

/* Counts every imagined rank by itself: O(ranks · model). What is the same for all of them is made once
 * (train/trainer_plan.c). */
static an_status assess_ranks(const settling *s, an_shard shard, double seconds) {
    an_trainer *t = s->t;
    const int rank = t->rank;
    for (int i = 0; i < t->ranks; i++) {
        AN_TRY_RETURN(an_trainer_count_rank(t, i));
        const an_assessment one = take_rank(s, seconds);
        merge_assessments(&s->found->of[shard], &one);
        s->needs[i].bytes[shard] = one.memory.peak;
    }
    return an_trainer_count_rank(t, rank);
}

static an_status assess_plan(const settling *s, an_shard shard) {
    an_context *ctx = s->t->ctx;
    an_assessment *a = &s->found->of[shard];
    double seconds;
    AN_TRY_RETURN(estimate_pass(s->t, &seconds));
    if (s->is_planned) return assess_ranks(s, shard, seconds);
    *a = take_rank(s, seconds);
    s->needs[an_host_comm(ctx)->rank].bytes[shard] = a->memory.peak;
    return AN_OK;
}

/* Plans a strategy, for this rank or for all imagined ones. Where it is the only one, what is wrong with it is an
 * error. */
static an_status assess(const settling *s, an_shard shard, bool is_only) {
    an_assessment *a = &s->found->of[shard];
    an_status status = make_plan(s, shard);
    if (status == AN_OK) {
        status = assess_plan(s, shard);
        an_trainer_end_counting(s->t);
        return status;
    }
    if (is_only || status == AN_ERR_MEMORY) return status;
    *a = (an_assessment){.is_known = true, .fit = AN_LIMITS_EXCEEDED};
    snprintf(a->text, sizeof a->text, "%.*s", AN_SHARDING_TEXT - 1, an_last_error(s->t->ctx));
    return AN_OK;
}

/* ---- whether it fits ---- */

/* What the ranks of a host need there together; those of one cgroup only, if it is not 0. */
static __int128 sum_host(const settling *s, size_t first, an_shard shard, uint64_t group) {
    __int128 sum = 0;
    for (size_t i = first; i < s->need_count && i < first + (size_t)s->host_ranks; i++)
        if (group == 0 || s->needs[i].group == group) sum += s->needs[i].bytes[shard];
    return sum;
}

/* The same without one rank of it. */
static int64_t sum_others(const settling *s, __int128 sum, size_t self, an_shard shard, uint64_t group) {
    const int64_t more_than_there_is = INT64_MAX / 4;
    if (group == 0 || s->needs[self].group == group) sum -= s->needs[self].bytes[shard];
    return sum < more_than_there_is ? (int64_t)sum : more_than_there_is;
}

/* What a host's ranks need: all of them, and those in the cgroup of this process. */
typedef struct {
    __int128 all, group;
} host_need;

static host_need sum_needs(const settling *s, size_t first, an_shard shard) {
    return (host_need){sum_host(s, first, shard, 0), sum_host(s, first, shard, s->limits.group)};
}

/* Compares one rank's need with its limits. */
static void compare(const settling *s, const host_need *host, size_t self, an_shard shard, an_assessment *a) {
    an_limits limits = s->limits;
    char text[AN_LIMITS_TEXT] = "";
    if (!a->is_possible || !an_context_uses_system_memory(s->t->ctx)) return;
    limits.others = sum_others(s, host->all, self, shard, 0);
    limits.group_others = sum_others(s, host->group, self, shard, limits.group);
    a->fit = (int32_t)an_limits_compare(&limits, s->needs[self].bytes[shard], (int64_t)s->t->ctx->bytes, text);
    snprintf(a->text, sizeof a->text, "%s", text);
    if (self != (s->is_planned ? (size_t)s->t->rank : (size_t)an_host_comm(s->t->ctx)->rank)) return;
    s->found->others[shard] = limits.others;
    s->found->group_others[shard] = limits.group_others;
}

static void compare_planned(const settling *s, an_shard shard) {
    an_assessment *a = &s->found->of[shard];
    an_assessment one = {.is_known = true, .is_possible = a->is_possible};
    if (!a->is_known) return;
    host_need host = {0, 0};
    for (size_t i = 0; i < s->need_count; i++) {
        if (i % (size_t)s->host_ranks == 0) host = sum_needs(s, i, shard);
        compare(s, &host, i, shard, &one);
        merge_assessments(a, &one);
    }
}

/* ---- together ---- */

static void merge_needs(void *user, void *record, const void *next) {
    const settling *s = user;
    need *a = record;
    const need *b = next;
    for (size_t i = 0; i < s->need_count; i++) { /* a rank has zeros for the others */
        a[i].group |= b[i].group;
        for (int k = 0; k < AN_SHARD_COUNT; k++) a[i].bytes[k] += b[i].bytes[k];
    }
}

typedef struct {
    int64_t failed; /* ranks */
    an_assessment of[AN_SHARD_COUNT];
} record;

static void merge_records(void *user, void *into, const void *from) {
    record *a = into;
    const record *b = from;
    (void)user;
    a->failed += b->failed;
    for (int i = 0; i < AN_SHARD_COUNT; i++) merge_assessments(&a->of[i], &b->of[i]);
}

/* Every rank's findings become everyone's. Without memory for them, this rank gives up, which all others see. */
static an_status agree(settling *s, an_status found, bool *settled) {
    an_status status;
    an_context *ctx = s->t->ctx;
    need *needs = NULL;
    record *records = NULL; /* this rank's, and room for another */
    AN_TRY(an_alloc(ctx, (void **)&needs, s->need_count, sizeof *needs));
    AN_TRY(an_alloc(ctx, (void **)&records, 2, sizeof *records));
    const an_comm_merger of_needs = {.bytes = s->need_count * sizeof *needs,
                                     .merge = merge_needs,
                                     .user = s,
                                     .received = needs,
                                     .what = "start: what the ranks of this host need of its memory"};
    const an_comm_merger of_records = {.bytes = sizeof *records,
                                       .merge = merge_records,
                                       .received = &records[1],
                                       .what = "start: the other ranks, to choose what they divide"};
    AN_TRY(an_comm_merge(ctx, an_host_comm(ctx), &of_needs, s->needs));
    for (int i = 0; i < AN_SHARD_COUNT; i++) {
        const host_need host = sum_needs(s, 0, (an_shard)i);
        compare(s, &host, (size_t)an_host_comm(ctx)->rank, (an_shard)i, &s->found->of[i]);
    }
    memcpy(records->of, s->found->of, sizeof records->of);
    records->failed = found != AN_OK;
    AN_TRY(an_comm_merge(ctx, an_axis_comm(ctx, AN_AXIS_DATA), &of_records, records));
    memcpy(s->found->of, records->of, sizeof records->of);
    for (int i = 0; i < AN_SHARD_COUNT; i++) s->found->of[i].text[AN_SHARDING_TEXT - 1] = 0;
    *settled = records->failed == 0;
    status = found;
fail:
    if (status == AN_ERR_MEMORY && !records) an_comm_abort(ctx, status, an_last_error(ctx));
    an_release(ctx, (void **)&records, 2, sizeof *records);
    an_release(ctx, (void **)&needs, s->need_count, sizeof *needs);
    return status;
}

/* ---- the choice ---- */

static bool is_room(const an_assessment *a) {
    return a->is_possible && a->fit == AN_LIMITS_FITS;
}

/* Of those that fit nowhere with room to spare, the one that needs least; NONE if nothing is possible. */
static an_shard find_least(const an_sharding *f) {
    an_shard minimum = AN_SHARD_NONE;
    for (int i = 0; i < STRATEGIES; i++) {
        const an_assessment *a = &f->of[strategies[i]], *b = &f->of[minimum];
        if (a->is_possible && (!b->is_possible || a->memory.peak < b->memory.peak)) minimum = strategies[i];
    }
    return minimum;
}

static void choose(an_sharding *f) {
    const an_assessment *none = &f->of[AN_SHARD_NONE], *optimizer = &f->of[AN_SHARD_OPTIMIZER];
    int first = 0;
    while (first < STRATEGIES && !is_room(&f->of[strategies[first]])) first++;
    if (is_room(none) && is_room(optimizer)) {
        const bool divides = optimizer->seconds < none->seconds;
        f->automatic = divides ? AN_SHARD_OPTIMIZER : AN_SHARD_NONE;
        snprintf(f->reason, sizeof f->reason,
                 "none and optimizer fit, and a step takes an estimated %.3g s with none, %.3g s with optimizer",
                 none->seconds, optimizer->seconds);
        return;
    }
    f->automatic = first < STRATEGIES ? strategies[first] : find_least(f);
    const an_assessment *taken = &f->of[f->automatic];
    int length = snprintf(f->reason, sizeof f->reason, "%s",
                          first < STRATEGIES              ? "it is the first that fits"
                          : taken->fit == AN_LIMITS_TIGHT ? "it needs least, and may not fit"
                                                          : "it needs least, but does not fit");
    const int last = first < STRATEGIES ? first : STRATEGIES;
    for (int i = last - 1; i >= 0; i--) { /* the nearest one that does not */
        const an_assessment *a = &f->of[strategies[i]];
        if (strategies[i] == f->automatic || length >= (int)sizeof f->reason) continue;
        snprintf(f->reason + length, sizeof f->reason - (size_t)length, "; %s %s: %s", an_shard_name(strategies[i]),
                 a->is_possible ? "does not" : "cannot be used", a->text);
        return;
    }
}

static an_status begin(settling *s) {
    an_trainer *t = s->t;
    an_context *ctx = t->ctx;
    const int hosts = s->options->hosts > 0 ? s->options->hosts : 1;
    s->found = &t->division.choice;
    s->is_planned = t->planned && s->options->ranks > 0;
    s->host_ranks = s->is_planned ? (int)an_divide_up(t->ranks, hosts) : an_host_comm(ctx)->ranks;
    s->group_ranks = !s->is_planned ? an_group_ranks(ctx) : t->ranks % hosts ? 0 : t->ranks / hosts;
    an_limits_read("", &s->limits);
    s->need_count = (size_t)(s->is_planned ? t->ranks : s->host_ranks);
    const an_status status = an_alloc(ctx, (void **)&s->needs, s->need_count, sizeof *s->needs);
    if (status != AN_OK && !s->is_planned) an_comm_abort(ctx, status, an_last_error(ctx)); /* others wait for it */
    return status;
}

/* Whether a hybrid is a strategy of its own here. */
static bool has_hybrid(const settling *s) {
    return s->group_ranks > 1 && s->group_ranks < s->t->ranks;
}

/* What is asked for: a hybrid of one host divides all, and one with a rank on each host nothing. */
static an_status find_asked(const settling *s, an_shard *asked) {
    *asked = s->options->shard;
    if (*asked != AN_SHARD_HYBRID || has_hybrid(s)) return AN_OK;
    *asked = s->group_ranks == 1 ? AN_SHARD_NONE : AN_SHARD_FULL;
    if (s->group_ranks > 0) return AN_OK;
    return AN_ERROR(s->t->ctx, AN_ERR_UNSUPPORTED,
                    "with ranks.shard hybrid every host has a copy of the state, so all hosts must have as many "
                    "ranks, and those of a host must be neighbours: start the %d ranks so, or use ranks.shard full",
                    s->t->ranks);
}

/* Whether ranks send the gradients of each micro-batch by themselves though some could be added before. */
static bool sends_in_parts(const an_trainer *t) {
    return !t->division.reduces_bf16 &&
           t->division.pieces.round_leaves < an_leaf_rounds_most(t->samples.batches.leaves, t->division.group_ranks,
                                                                 t->ranks / t->division.group_ranks);
}

/* What the ranks of the host need is about to be added anew. */
static void forget_others(settling *s) {
    const size_t self = s->is_planned ? 0 : (size_t)an_host_comm(s->t->ctx)->rank;
    const need own = s->needs[self];
    if (s->is_planned) return;
    memset(s->needs, 0, s->need_count * sizeof *s->needs);
    s->needs[self] = own;
}

/* Ranks send gradients once for several micro-batches if there is room to add them before. */
static an_status try_accumulating(settling *s, an_shard taken, bool *settled) {
    an_trainer *t = s->t;
    const an_assessment before = s->found->of[taken];
    const int64_t others = s->found->others[taken], group_others = s->found->group_others[taken];
    if (!an_shard_has_rounds(taken) || t->division.accumulates || s->options->accumulate == AN_ACCUMULATE_OFF ||
        !sends_in_parts(t))
        return AN_OK;
    s->accumulates = true;
    s->found->of[taken] = (an_assessment){0};
    forget_others(s);
    const an_status status = assess(s, taken, true);
    if (s->is_planned && status == AN_OK) compare_planned(s, taken);
    if (!s->is_planned) AN_TRY_RETURN(agree(s, status, settled));
    AN_TRY_RETURN(status);
    if (is_room(&s->found->of[taken]) || !*settled) return AN_OK;
    s->accumulates = false;
    s->found->of[taken] = before;
    s->found->others[taken] = others;
    s->found->group_others[taken] = group_others;
    return make_plan(s, taken);
}

an_status an_sharding_settle(an_trainer *t, const an_trainer_options *options, bool *settled) {
    an_status status;
    an_context *ctx = t->ctx;
    an_shard asked = options->shard;
    const bool compares = asked == AN_SHARD_AUTO || t->planned;
    settling s = {.t = t, .options = options, .accumulates = options->accumulate == AN_ACCUMULATE_ON};
    *settled = true;
    t->division.pieces.is_hybrid =
        asked == AN_SHARD_HYBRID && !compares; /* strategies that are compared have their own names */
    if (t->ranks == 1) {
        double seconds;
        s.host_ranks = 1;
        AN_TRY(make_plan(&s, AN_SHARD_NONE));
        an_trainer_end_counting(t);
        t->division.choice.counted = t->plan->memory.trainer;
        AN_TRY(estimate_pass(t, &seconds));
        t->division.choice.of[AN_SHARD_NONE] = take_rank(&s, seconds);
        return AN_OK;
    }
    AN_TRY(begin(&s));
    if (!s.is_planned) s.needs[an_host_comm(ctx)->rank].group = s.limits.group;
    status = find_asked(&s, &asked);
    for (int i = 0; i < ALL_STRATEGIES && status == AN_OK; i++) {
        const bool is_there = strategies[i] != AN_SHARD_HYBRID || has_hybrid(&s);
        if (is_there && (compares || strategies[i] == asked)) status = assess(&s, strategies[i], !compares);
    }
    if (!s.is_planned)
        AN_TRY(agree(&s, status, settled));
    else if (status == AN_OK)
        for (int i = 0; i < ALL_STRATEGIES; i++) compare_planned(&s, strategies[i]);
    AN_TRY(status);
    if (compares) choose(s.found);
    const an_shard taken = asked == AN_SHARD_AUTO ? s.found->automatic : asked;
    t->division.pieces.is_hybrid = options->shard == AN_SHARD_HYBRID;
    if (*settled && (!t->plan || t->division.pieces.sharding != taken)) AN_TRY(make_plan(&s, taken));
    if (*settled) AN_TRY(try_accumulating(&s, taken, settled));
    if (*settled) s.found->counted = t->plan->memory.trainer;
    status = AN_OK;
fail:
    an_trainer_end_counting(t);
    an_release(ctx, (void **)&s.needs, s.need_count, sizeof *s.needs);
    return status;
}

/* ---- what programs ask ---- */

static const an_assessment *find(const an_trainer *t, an_shard shard) {
    return (unsigned)shard < AN_SHARD_COUNT && t->division.choice.of[shard].is_known ? &t->division.choice.of[shard]
                                                                                     : NULL;
}

static an_status not_known(const an_trainer *t) {
    return AN_ERROR(
        t->ctx, AN_ERR_STATE,
        "the trainer has not looked at this strategy: with several ranks, AN_OPEN_PLAN looks at all of them");
}

an_status an_trainer_strategy(const an_trainer *trainer, an_shard shard, an_strategy *strategy) {
    AN_GUARD;
    AN_NEED(trainer, strategy);
    an_context *ctx = trainer->ctx;
    const an_sharding *f = &trainer->division.choice;
    const an_assessment *a = find(trainer, shard);
    AN_TRY_RETURN(an_strategy_check(ctx, strategy));
    if (!a) return not_known(trainer);
    const bool is_automatic = *f->reason && shard == f->automatic;
    const an_strategy own = {.name = an_shard_name(shard),
                             .reason = is_automatic     ? f->reason
                                       : a->is_possible ? ""
                                                        : a->text,
                             .room = a->is_possible ? a->text : "",
                             .sent = a->sent,
                             .shared = a->shared,
                             .seconds = a->seconds,
                             .rank = a->rank,
                             .possible = a->is_possible,
                             .fits = is_room(a),
                             .automatic = is_automatic,
                             .taken = trainer->plan && shard == trainer->division.pieces.sharding};
    return an_strategy_write(ctx, strategy, &own);
}

an_status an_trainer_strategy_memory(const an_trainer *trainer, an_shard shard, an_plan_memory *memory) {
    AN_GUARD;
    AN_NEED(trainer, memory);
    const an_assessment *a = find(trainer, shard);
    if (!a) return not_known(trainer);
    an_plan_memory own = a->memory;
    const int64_t since = trainer->plan ? trainer->plan->memory.trainer - trainer->division.choice.counted : 0;
    if (a->is_possible) { /* the run's settings, which are the same whatever is divided */
        own.trainer += since;
        own.peak += since;
    }
    return an_plan_memory_write(trainer->ctx, memory, &own);
}
