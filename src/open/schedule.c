/* The schedule of a config, with its parts. */
#include <limits.h>
#include <stdio.h>

#include "kinds/data/data.h"
#include "open/open.h"

typedef struct {
    const an_lengths *lengths;
    an_config *config;
    an_context *ctx;
    an_arena *arena;
    const char *path; /* "schedule", or a part of a sequence */
    int64_t begin;    /* of the part, in the run: epochs are counted from there */
    int64_t whole;    /* steps of the run, or of the part; 0: nobody knows */
    an_schedule_options *s;
} reading;

static bool is_there(const reading *r, const char *key) {
    return an_key_is_there(r->config, AN_KEY(r->path, key));
}

static bool is_given(const reading *r, const char *key) {
    return an_config_origin_of(r->config, AN_KEY(r->path, key)) > AN_ORIGIN_DEFAULT;
}

/* Steps of a length that begins `from` steps after the part does. */
static an_status get_steps(const reading *r, const char *key, int64_t from, an_length *length, int64_t *steps) {
    *length = (an_length){0};
    if (!is_there(r, key)) return AN_OK;
    AN_TRY_RETURN(an_config_length(r->config, AN_KEY(r->path, key), length));
    return an_open_steps(r->lengths, AN_KEY(r->path, key), length, r->begin + from, r->whole, steps);
}

static an_status get_warmup(const reading *r) {
    an_length length;
    return get_steps(r, "warmup.steps", 0, &length, &r->s->warmup);
}

/* The end of a schedule, as a share of the peak. */
static an_status get_end(const reading *r) {
    an_context *ctx = r->ctx;
    double rate, end = 0;
    if (!is_there(r, "min_lr")) return AN_OK;
    const an_key key = an_key_join(r->path, "min_lr");
    if (r->s->min_ratio > 0) /* a resolved config has its default, 0 */
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: min_ratio and min_lr are both set; remove one of them",
                        an_config_place(r->config, key.text));
    AN_TRY_RETURN(an_config_real(r->config, AN_SETTING(optimizer.lr), &rate));
    AN_TRY_RETURN(an_config_real(r->config, key.text, &end));
    if (end > rate)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %s is %g, more than optimizer.lr, which is %g",
                        an_config_place(r->config, key.text), key.text, end, rate);
    r->s->min_ratio = rate > 0 ? end / rate : 0;
    return AN_OK;
}

static an_status get_points(const reading *r) {
    const an_key key = an_key_join(r->path, "points");
    const int count = an_config_size(r->config, key.text);
    int64_t *steps = NULL;
    double *factors = NULL;
    AN_TRY_RETURN(an_arena_alloc(r->arena, (void **)&steps, (size_t)count, sizeof *steps));
    AN_TRY_RETURN(an_arena_alloc(r->arena, (void **)&factors, (size_t)count, sizeof *factors));
    for (int i = 0; i < count; i++) AN_TRY_RETURN(an_config_pair(r->config, key.text, i, &steps[i], &factors[i]));
    r->s->point_count = count;
    r->s->point_steps = steps;
    r->s->point_factors = factors;
    return AN_OK;
}

/* … of a length that ends with the part. */
static an_status get_last_steps(const reading *r, const char *key, int64_t *steps) {
    an_length length;
    AN_TRY_RETURN(get_steps(r, key, 0, &length, steps)); /* shares are of the part */
    if (length.unit != AN_LENGTH_EPOCHS && !an_open_counts_samples(&length)) return AN_OK;
    const an_length_options end = an_open_length_options(r->lengths, r->begin + r->whole, r->whole);
    const an_status status = an_batches_steps_before_end(r->lengths->batches, &length, &end, steps);
    return an_key_blame_named(r->config, r->ctx, status, AN_KEY(r->path, key));
}

/* The way down is what `stable` leaves, unless its length is given too: then the rate stays at its end. */
static an_status get_wsd(const reading *r) {
    an_context *ctx = r->ctx;
    an_schedule_options *s = r->s;
    int64_t stable = 0;
    an_length length;
    if (!is_there(r, "stable")) return get_last_steps(r, "decay", &s->decay_steps);
    AN_TRY_RETURN(get_steps(r, "stable", s->warmup, &length, &stable));
    AN_TRY_RETURN(get_steps(r, "decay", s->warmup + stable, &length, &s->decay_steps));
    if (is_given(r, "decay")) {
        s->steps = s->warmup + stable + s->decay_steps;
        return AN_OK;
    }
    s->decay_steps = s->steps - s->warmup - stable;
    if (s->decay_steps > 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: a warm-up of %lld steps and %lld steps at the peak leave nothing of %lld steps for the decay; "
                    "set decay, or make one of them shorter",
                    an_config_place(r->config, AN_KEY(r->path, "stable")), (long long)s->warmup, (long long)stable,
                    (long long)s->steps);
}

static an_status read_schedule(const reading *r);

/* Milestones are steps after the warm-up; shares in a part are of the part. */
static an_status get_sequence(const reading *r) {
    an_context *ctx = r->ctx;
    const an_key parts_key = an_key_join(r->path, "parts"), key = an_key_join(r->path, "milestones");
    const int count = an_config_size(r->config, parts_key.text), between = an_config_size(r->config, key.text);
    const int64_t end = r->whole > r->s->warmup ? r->whole - r->s->warmup : 0;
    an_schedule_options *parts = NULL;
    an_length *lengths = NULL;
    int64_t *milestones = NULL;
    int read;
    AN_TRY_RETURN(an_arena_alloc(r->arena, (void **)&parts, (size_t)count, sizeof *parts));
    AN_TRY_RETURN(an_arena_alloc(r->arena, (void **)&lengths, (size_t)between, sizeof *lengths));
    AN_TRY_RETURN(an_arena_alloc(r->arena, (void **)&milestones, (size_t)between, sizeof *milestones));
    AN_TRY_RETURN(an_config_lengths(r->config, key.text, between, lengths, &read));
    for (int i = 0; i < between; i++) {
        AN_TRY_RETURN(
            an_open_steps(r->lengths, key.text, &lengths[i], r->begin + r->s->warmup, r->whole, &milestones[i]));
        if (i > 0 && milestones[i] <= milestones[i - 1])
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "%s: milestones %d and %d of %lld steps are after %lld and %lld steps, but each milestone "
                            "must be later than the one before",
                            an_config_place(r->config, key.text), i, i + 1, (long long)r->whole,
                            (long long)milestones[i - 1], (long long)milestones[i]);
    }
    for (int i = 0; i < count; i++) {
        char path[AN_PATH_TEXT + 16];
        const int64_t begins = i > 0 ? milestones[i - 1] : 0, ends = i < between ? milestones[i] : end;
        const bool endless = r->whole == 0 && i == between;
        const reading part = {.lengths = r->lengths,
                              .config = r->config,
                              .ctx = ctx,
                              .arena = r->arena,
                              .path = path,
                              .begin = r->begin + r->s->warmup + begins,
                              .whole = endless         ? 0
                                       : ends > begins ? ends - begins
                                                       : 1, /* the run ends before it */
                              .s = &parts[i]};
        snprintf(path, sizeof path, "%s[%d]", parts_key.text, i);
        AN_TRY_RETURN(read_schedule(&part));
    }
    r->s->part_count = count;
    r->s->parts = parts;
    r->s->milestones = milestones;
    return AN_OK;
}

/* Periods of so many epochs or samples; each is `growth` times as long as the one before. */
typedef struct {
    an_length length; /* of the first */
    double growth;
} periods;

/* The last epoch from which on steps have another number of samples. */
static int64_t last_change(const an_batches *b) {
    int index = 0;
    while (an_batches_change(b, index + 1) >= 0) index++;
    return an_batches_change(b, index);
}

/* Where periods end, as long as epochs still change their number of steps: *count of them, and in *next how
 * long the one after them is. */
static an_status find_borders(const reading *r, const periods *p, double *next, int64_t *borders, int64_t *count) {
    const an_batches *b = r->lengths->batches;
    const int64_t from = r->begin + r->s->warmup, end = an_batches_epoch_begin(b, last_change(b));
    const an_length_options options = an_open_length_options(r->lengths, from, 0);
    an_length sum = {p->length.unit, 0};
    int64_t at = 0;
    *next = p->length.amount;
    for (*count = 0; from + at < end && (r->whole == 0 || at < r->whole); ++*count) {
        int64_t border;
        sum.amount += *next;
        AN_TRY_RETURN(an_batches_steps(b, &sum, &options, &border));
        at = border > at ? border : at + 1;
        if (borders) borders[*count] = at;
        *next *= p->growth;
    }
    return AN_OK;
}

/* A period in epochs or samples has as many steps as they have, which accumulation by epoch changes. */
static an_status get_period(const reading *r, const char *key) {
    an_context *ctx = r->ctx;
    an_schedule_options *s = r->s;
    const an_batches *b = r->lengths->batches;
    periods p = {.growth = s->period_growth > 1 ? (double)s->period_growth : 1};
    double next;
    int64_t *borders = NULL, count;
    AN_TRY_RETURN(get_steps(r, key, s->warmup, &p.length, &s->period));
    const bool varies = p.length.unit == AN_LENGTH_EPOCHS || an_open_counts_samples(&p.length);
    if (!varies || an_batches_change(b, 1) < 0 || !(p.length.amount > 0)) return AN_OK;
    AN_TRY_RETURN(find_borders(r, &p, &next, NULL, &count));
    if (count == 0) return AN_OK;
    if (count > INT_MAX)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %lld periods are too many; use a longer period",
                        an_config_place(r->config, AN_KEY(r->path, key)), (long long)count);
    AN_TRY_RETURN(an_arena_alloc(r->arena, (void **)&borders, (size_t)count, sizeof *borders));
    AN_TRY_RETURN(find_borders(r, &p, &next, borders, &count));
    const an_length_options after = an_open_length_options(r->lengths, r->begin + s->warmup + borders[count - 1], 0);
    const an_length one = {p.length.unit, next};
    AN_TRY_RETURN(an_batches_steps(b, &one, &after, &s->period));
    s->border_count = (int)count;
    s->borders = borders;
    return AN_OK;
}

static an_status read_schedule(const reading *r) {
    an_schedule_options *s = r->s;
    an_schedule_options_init(s, sizeof *s);
    s->steps = r->whole;
    AN_TRY_RETURN(an_config_fill(r->config, r->path, an_schedule_options, s));
    AN_TRY_RETURN(get_warmup(r));
    AN_TRY_RETURN(get_end(r));
    AN_TRY_RETURN(get_period(r, s->type == AN_SCHEDULE_COSINE_RESTARTS ? "T_0" : "period"));
    if (s->type == AN_SCHEDULE_WSD) AN_TRY_RETURN(get_wsd(r));
    if (s->type == AN_SCHEDULE_POINTS) AN_TRY_RETURN(get_points(r));
    if (s->type == AN_SCHEDULE_SEQUENCE) AN_TRY_RETURN(get_sequence(r));
    return AN_OK;
}

/* What holds for a whole schedule is refused in its parts. */
static an_status check_parts(const reading *r) {
    an_context *ctx = r->ctx;
    const an_key key = an_key_join(r->path, "parts");
    for (int i = 0; i < an_config_size(r->config, key.text); i++) {
        char path[AN_PATH_TEXT + 16];
        snprintf(path, sizeof path, "%s[%d]", key.text, i);
        const reading part = {.config = r->config, .ctx = ctx, .path = path};
        const char *wrong = is_given(&part, "max_lr")                               ? "max_lr"
                            : an_config_is(r->config, AN_KEY(path, "per"), "epoch") ? "per"
                                                                                    : NULL;
        if (wrong)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %s applies to a whole schedule, not to a part of it; use %s",
                            an_config_place(r->config, AN_KEY(path, wrong)), wrong,
                            *wrong == 'm' ? AN_SETTING(optimizer.lr) : AN_SETTING(schedule.per));
        AN_TRY_RETURN(check_parts(&part));
    }
    return AN_OK;
}

/* The rate changes where an epoch begins. */
static an_status get_holds(const reading *r) {
    an_context *ctx = r->ctx;
    const an_batches *b = r->lengths->batches;
    an_schedule_hold *holds = NULL;
    int count = 0;
    while (an_batches_change(b, count) >= 0) count++;
    if (an_data_streams(r->config))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: a stream has no epochs; remove schedule.per",
                        an_config_place(r->config, AN_SETTING(schedule.per)));
    AN_TRY_RETURN(an_arena_alloc(r->arena, (void **)&holds, (size_t)count, sizeof *holds));
    for (int i = 0; i < count; i++) {
        const int64_t epoch = an_batches_change(b, i);
        holds[i] = (an_schedule_hold){an_batches_epoch_begin(b, epoch), an_batches_epoch_steps(b, epoch)};
    }
    r->s->hold_count = count;
    r->s->holds = holds;
    return AN_OK;
}

an_status an_open_schedule(an_schedule_options *schedule, const an_lengths *lengths, an_arena *arena, int64_t steps,
                           double *rate) {
    an_context *ctx = lengths->ctx;
    const reading r = {.lengths = lengths,
                       .config = lengths->config,
                       .ctx = ctx,
                       .arena = arena,
                       .path = AN_SETTING(schedule),
                       .whole = steps,
                       .s = schedule};
    AN_TRY_RETURN(check_parts(&r));
    AN_TRY_RETURN(read_schedule(&r));
    if (an_config_is(r.config, AN_SETTING(schedule.per), "epoch")) AN_TRY_RETURN(get_holds(&r));
    return is_there(&r, "max_lr") ? an_config_real(r.config, AN_SETTING(schedule.max_lr), rate) : AN_OK;
}
