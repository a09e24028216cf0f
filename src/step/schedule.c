/* Learning-rate schedules: the factor on the peak rate, a pure function of the step. Here is what all have in common: a
 * warm-up, parts one after another, steps at which the rate is held. Their formulas are in schedules/. */
#include "step/schedule.h"

#include <string.h>

#include "base/guard.h"
#include "step/schedules/keep.h"
#include "step/schedules/kind.h"
#include "step/structs.h"

/* By an_schedule_type. */
static const an_schedule_kind *const kinds[] = {
#define AN_SCHEDULE(type, name) &an_schedule_kind_##name,
#include "anneal/schedules.def"
#undef AN_SCHEDULE
};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *an_schedule_type_name(an_schedule_type type) {
    return (unsigned)type < KINDS ? kinds[type]->kind.name : "";
}

/* ---- making one ---- */

static bool is_factor(double number) {
    return number >= 0 && __builtin_isfinite(number);
}

static an_status check_borders(an_context *ctx, const an_schedule_options *o) {
    an_status status;
    AN_CHECK(ctx, o->border_count >= 0 && (o->border_count == 0 || o->borders), AN_ERR_ARGUMENT,
             "the schedule has %d borders between periods, but borders is NULL", o->border_count);
    for (int i = 0; i < o->border_count; i++)
        AN_CHECK(ctx, o->borders[i] > (i ? o->borders[i - 1] : 0), AN_ERR_ARGUMENT,
                 "border %d of the schedule is step %lld, but each border must be later than the one before", i,
                 (long long)o->borders[i]);
    return AN_OK;
fail:
    return status;
}

static an_status check_holds(an_context *ctx, const an_schedule_options *o) {
    an_status status;
    AN_CHECK(ctx, o->hold_count >= 0 && (o->hold_count == 0 || o->holds), AN_ERR_ARGUMENT,
             "the schedule has %d holds, but holds is NULL", o->hold_count);
    for (int i = 0; i < o->hold_count; i++)
        AN_CHECK(ctx, o->holds[i].every > 0 && (i ? o->holds[i].from > o->holds[i - 1].from : o->holds[i].from == 0),
                 AN_ERR_ARGUMENT,
                 "hold %d of the schedule is every %lld steps from step %lld on; holds must be in order, and the first "
                 "must begin at step 0",
                 i, (long long)o->holds[i].every, (long long)o->holds[i].from);
    return AN_OK;
fail:
    return status;
}

static an_status check(an_context *ctx, const an_schedule_options *o) {
    an_status status;
    AN_CHECK(ctx, (unsigned)o->type < KINDS, AN_ERR_ARGUMENT, "type is %d, which is not a value of an_schedule_type",
             (int)o->type);
    const an_schedule_kind *kind = kinds[o->type];
    const char *name = kind->kind.name;
    AN_CHECK(ctx, o->steps > 0 || (o->steps == 0 && !kind->needs_steps), AN_ERR_ARGUMENT,
             "the schedule '%s' needs the number of steps of the run", name);
    AN_CHECK(ctx, o->warmup >= 0, AN_ERR_ARGUMENT, "the warm-up has %lld steps", (long long)o->warmup);
    AN_CHECK(ctx, an_is_auto(o->start_factor) || (o->start_factor >= 0 && o->start_factor <= 1), AN_ERR_ARGUMENT,
             "start_factor is %g; it is the first rate as a fraction of the peak, from 0 to 1", o->start_factor);
    AN_CHECK(ctx, o->min_ratio >= 0 && o->min_ratio <= 1, AN_ERR_ARGUMENT,
             "min_ratio is %g; the last learning rate as a share of the peak must be 0 to 1", o->min_ratio);
    AN_CHECK(ctx, !kind->needs_period || o->period > 0, AN_ERR_ARGUMENT,
             "the schedule '%s' needs a period of at least one step", name);
    AN_CHECK(ctx, !kind->gamma_per || (o->gamma > 0 && is_factor(o->gamma)), AN_ERR_ARGUMENT,
             "the schedule '%s' needs gamma, the factor from one %s to the next", name, kind->gamma_per);
    AN_CHECK(ctx, o->pct_start > 0 && o->pct_start < 1, AN_ERR_ARGUMENT,
             "pct_start is %g; it is the fraction of the run in which the rate rises, above 0 and below 1",
             o->pct_start);
    AN_CHECK(ctx,
             o->div_factor > 0 && is_factor(o->div_factor) && o->final_div_factor > 0 && is_factor(o->final_div_factor),
             AN_ERR_ARGUMENT,
             "div_factor is %g and final_div_factor %g; they divide the peak and the first rate, and must be above 0",
             o->div_factor, o->final_div_factor);
    AN_CHECK(ctx, o->power > 0 && is_factor(o->power), AN_ERR_ARGUMENT, "power is %g; it must be above 0", o->power);
    AN_CHECK(ctx, o->period_growth > 0, AN_ERR_ARGUMENT, "period_growth is %lld; it must be 1 or more",
             (long long)o->period_growth);
    AN_TRY(check_holds(ctx, o));
    AN_TRY(check_borders(ctx, o));
    return kind->check ? kind->check(ctx, o) : AN_OK;
fail:
    return status;
}

static bool has_parts(const an_schedule_options *o) {
    return !kinds[o->type]->factor;
}

static an_status make_parts(an_schedule *s, const an_schedule_options *o) {
    an_context *ctx = s->ctx;
    AN_TRY_RETURN(an_arena_alloc(&s->arena, (void **)&s->parts, (size_t)o->part_count, sizeof(an_schedule *)));
    for (int i = 0; i < o->part_count; i++) {
        an_schedule_options part;
        AN_TRY_RETURN(an_schedule_options_read_at(ctx, &part, o->parts, i));
        const int64_t begin = i ? o->milestones[i - 1] : 0;
        const int64_t end = i + 1 < o->part_count ? o->milestones[i] : o->steps - o->warmup;
        if (part.steps == 0) part.steps = end > begin ? end - begin : 1;
        AN_TRY_RETURN(an_schedule_create(&s->parts[i], ctx, &part));
    }
    return AN_OK;
}

/* Copies what the options of its type point to, so that the caller's may go. */
static an_status keep_options(an_schedule *s, const an_schedule_options *o) {
    s->options = *o;
    s->options.point_steps = s->options.milestones = NULL;
    s->options.point_factors = NULL;
    s->options.parts = NULL;
    s->options.holds = NULL;
    s->options.borders = NULL;
    AN_TRY_RETURN(an_schedule_keep(&s->arena, (const void **)&s->options.borders, o->borders, (size_t)o->border_count,
                                   sizeof *o->borders));
    AN_TRY_RETURN(an_schedule_keep(&s->arena, (const void **)&s->options.holds, o->holds, (size_t)o->hold_count,
                                   sizeof *o->holds));
    if (o->custom_name)
        AN_TRY_RETURN(an_arena_string(&s->arena, &s->options.custom_name, o->custom_name, strlen(o->custom_name)));
    if (kinds[o->type]->keep) AN_TRY_RETURN(kinds[o->type]->keep(&s->arena, &s->options, o));
    return has_parts(o) ? make_parts(s, o) : AN_OK;
}

an_status an_schedule_create(an_schedule **schedule, an_context *ctx, const an_schedule_options *options) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, schedule, options);
    an_status status;
    an_schedule *s = NULL;
    an_schedule_options own;
    *schedule = NULL;
    AN_TRY(an_schedule_options_read(ctx, &own, options));
    AN_TRY(check(ctx, &own));
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->ctx = ctx;
    an_arena_init(&s->arena, ctx);
    AN_TRY(keep_options(s, &own));
    *schedule = s;
    return AN_OK;
fail:
    an_schedule_destroy(&s);
    return status;
}

void an_schedule_destroy(an_schedule **schedule) {
    an_schedule *s = schedule ? *schedule : NULL;
    if (!s) return;
    an_context *ctx = s->ctx;
    for (int i = 0; s->parts && i < s->options.part_count; i++) an_schedule_destroy(&s->parts[i]);
    an_arena_destroy(&s->arena);
    an_release(ctx, (void **)schedule, 1, sizeof *s);
}

/* ---- asking it ---- */

static double warm_up(const an_schedule_options *o, int64_t t) {
    const double length = (double)o->warmup;
    const double start = an_is_auto(o->start_factor) ? 1 / length : o->start_factor;
    return start + (1 - start) * (double)t / length;
}

/* The part of a sequence that step *t is in after its warm-up; *t then counts from its beginning. */
static const an_schedule *part_at(const an_schedule *s, int64_t *t) {
    const int64_t u = *t - s->options.warmup;
    int part = 0;
    while (part + 1 < s->options.part_count && s->options.milestones[part] <= u) part++;
    *t = u - (part > 0 ? s->options.milestones[part - 1] : 0);
    return s->parts[part];
}

static double factor_at(const an_schedule *s, int64_t t) {
    if (t < 0) t = 0;
    while (has_parts(&s->options) && t >= s->options.warmup) s = part_at(s, &t);
    const an_schedule_options *o = &s->options;
    if (t < o->warmup) return warm_up(o, t);
    return kinds[o->type]->factor(o, t - o->warmup, o->steps - o->warmup);
}

/* The step whose rate holds at step t: the first of its epoch. */
static int64_t held(const an_schedule *s, int64_t t) {
    const an_schedule_hold *holds = s->options.holds;
    int i = s->options.hold_count - 1;
    if (i < 0 || t < 0) return t;
    while (i > 0 && holds[i].from > t) i--;
    return t - (t - holds[i].from) % holds[i].every;
}

double an_schedule_factor(const an_schedule *schedule, int64_t t) {
    AN_GUARD;
    AN_NEED_OR(0, schedule);
    return factor_at(schedule, held(schedule, t));
}

static double momentum_at(const an_schedule *s, int64_t t) {
    if (t < 0) t = 0;
    while (has_parts(&s->options) && t >= s->options.warmup) s = part_at(s, &t);
    const an_schedule_options *o = &s->options;
    const an_schedule_kind *kind = kinds[o->type];
    return kind->momentum ? kind->momentum(o, t - o->warmup, o->steps - o->warmup) : 0;
}

double an_schedule_momentum(const an_schedule *schedule, int64_t t) {
    AN_GUARD;
    AN_NEED_OR(0, schedule);
    return momentum_at(schedule, held(schedule, t));
}
