/* Learning-rate schedules: the factor on the peak rate, a pure function of the step. Step t counts from 0; u is t
 * without the warm-up, and length the steps that are left after it. */
#include "step/schedule.h"

#include <string.h>

#include "base/elementary/elementary.h"
#include "base/guard.h"
#include "step/structs.h"

static const double pi = 3.14159265358979323846;

/* As PyTorch's OneCycleLR, and transformers' inverse_sqrt without a warm-up. */
static const double least_momentum = 0.85, most_momentum = 0.95;
enum { DEFAULT_TIMESCALE = 10000 };

/* ---- the shapes ---- */

/* Where u stands on the way from 0 to 1; a run that goes on stays at the end. */
static double progress(int64_t u, int64_t length) {
    return length <= 0 || u >= length ? 1 : (double)u / (double)length;
}

static double above(double least, double share) {
    return least + (1 - least) * share;
}

static double half_cosine(double p) {
    return (1 + an_cos_f64(pi * p)) / 2;
}

static double constant(const an_schedule *s, int64_t u, int64_t length) {
    (void)s, (void)u, (void)length;
    return 1;
}

static double linear(const an_schedule *s, int64_t u, int64_t length) {
    return above(s->options.min_ratio, 1 - progress(u, length));
}

static double cosine(const an_schedule *s, int64_t u, int64_t length) {
    const double share = half_cosine(progress(u, length));
    if (!s->options.clamp) return above(s->options.min_ratio, share);
    return share > s->options.min_ratio ? share : s->options.min_ratio;
}

/* Which period a step is in, as long as their borders are given; *u then counts from its beginning. */
static int period_at(const an_schedule *s, int64_t *u) {
    const int64_t *borders = s->options.borders;
    int low = 0, high = s->options.border_count; /* so many borders are at or before u */
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (borders[middle] <= *u)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0) *u -= borders[low - 1];
    return low;
}

/* Periods of T_0, T_0·T_mult, T_0·T_mult², …: at most 63 of them if they grow. */
static double cosine_restarts(const an_schedule *s, int64_t u, int64_t length) {
    const int64_t growth = s->options.period_growth;
    const int index = period_at(s, &u);
    int64_t period = s->options.period;
    (void)length;
    if (index < s->options.border_count)
        period = s->options.borders[index] - (index ? s->options.borders[index - 1] : 0);
    if (growth == 1) u %= period;
    while (u >= period) {
        u -= period;
        if (!an_multiply_i64(period, growth, &period)) period = INT64_MAX; /* no run reaches its end */
    }
    return above(s->options.min_ratio, half_cosine((double)u / (double)period));
}

static double inverse_sqrt(const an_schedule *s, int64_t u, int64_t length) {
    const double scale = s->options.warmup > 0 ? (double)s->options.warmup : DEFAULT_TIMESCALE;
    (void)length;
    return 1 / __builtin_sqrt(((double)u + scale) / scale);
}

static double wsd(const an_schedule *s, int64_t u, int64_t length) {
    const int64_t stable = length - s->options.decay_steps;
    return u < stable ? 1 : above(s->options.min_ratio, 1 - progress(u - stable, s->options.decay_steps));
}

static double step(const an_schedule *s, int64_t u, int64_t length) {
    (void)length;
    const int index = period_at(s, &u);
    const int64_t periods = index < s->options.border_count ? index : index + u / s->options.period;
    return an_pow_f64(s->options.gamma, (double)periods);
}

static double exponential(const an_schedule *s, int64_t u, int64_t length) {
    (void)length;
    return an_pow_f64(s->options.gamma, (double)u);
}

static double polynomial(const an_schedule *s, int64_t u, int64_t length) {
    return above(s->options.min_ratio, an_pow_f64(1 - progress(u, length), s->options.power));
}

/* Linear between points, constant before the first and after the last. */
static double points(const an_schedule *s, int64_t u, int64_t length) {
    const int64_t *at = s->options.point_steps;
    const double *factors = s->options.point_factors;
    int next = 0;
    (void)length;
    while (next < s->options.point_count && at[next] <= u) next++;
    if (next == 0) return factors[0];
    if (next == s->options.point_count) return factors[next - 1];
    const double p = (double)(u - at[next - 1]) / (double)(at[next] - at[next - 1]);
    return factors[next - 1] + (factors[next] - factors[next - 1]) * p;
}

static double custom(const an_schedule *s, int64_t u, int64_t length) {
    (void)length;
    return s->options.custom(s->options.custom_user, u);
}

/* Parts one after another, each with steps of its own. */
static int part_at(const an_schedule *s, int64_t u) {
    int part = 0;
    while (part + 1 < s->options.part_count && s->options.milestones[part] <= u) part++;
    return part;
}

static double factor_at(const an_schedule *s, int64_t t);

static double sequence(const an_schedule *s, int64_t u, int64_t length) {
    const int part = part_at(s, u);
    const int64_t begin = part > 0 ? s->options.milestones[part - 1] : 0;
    (void)length;
    return factor_at(s->parts[part], u - begin);
}

/* ---- one cycle ---- */

typedef struct {
    double end, from, to; /* steps where the phase ends, factors on the peak rate */
    double momentum_from, momentum_to;
} phase;

enum { MOST_PHASES = 3 };

/* As PyTorch's: the ends of phases are fractions of steps. */
static int one_cycle_phases(const an_schedule *s, int64_t length, phase *phases) {
    const an_schedule_options *o = &s->options;
    const double part = o->pct_start, total = (double)length;
    const double first = 1 / o->div_factor, last = first / o->final_div_factor;
    phases[0] = (phase){part * total - 1, first, 1, most_momentum, least_momentum};
    if (!o->three_phase) {
        phases[1] = (phase){total - 1, 1, last, least_momentum, most_momentum};
        return 2;
    }
    phases[1] = (phase){2 * part * total - 2, 1, first, least_momentum, most_momentum};
    phases[2] = (phase){total - 1, first, last, most_momentum, most_momentum};
    return MOST_PHASES;
}

static double between(const an_schedule *s, double from, double to, double p) {
    return s->options.linear ? (to - from) * p + from : to + (from - to) / 2 * (an_cos_f64(pi * p) + 1);
}

static double one_cycle_at(const an_schedule *s, int64_t u, int64_t length, bool momentum) {
    phase phases[MOST_PHASES];
    const int count = one_cycle_phases(s, length, phases);
    const double at = (double)(u < length ? u : length - 1);
    double begin = 0;
    int i = 0;
    while (i + 1 < count && at > phases[i].end) begin = phases[i++].end;
    const double p = phases[i].end > begin ? (at - begin) / (phases[i].end - begin) : 1;
    return momentum ? between(s, phases[i].momentum_from, phases[i].momentum_to, p)
                    : between(s, phases[i].from, phases[i].to, p);
}

static double one_cycle(const an_schedule *s, int64_t u, int64_t length) {
    return one_cycle_at(s, u, length, false);
}

/* ---- the table ---- */

typedef struct {
    const char *name;
    double (*factor)(const an_schedule *s, int64_t u, int64_t length);
    bool needs_steps, needs_period, needs_gamma;
} shape;

static const shape shapes[] = {
    [AN_SCHEDULE_CONSTANT] = {"constant", constant, false, false, false},
    [AN_SCHEDULE_LINEAR] = {"linear", linear, true, false, false},
    [AN_SCHEDULE_COSINE] = {"cosine", cosine, true, false, false},
    [AN_SCHEDULE_COSINE_RESTARTS] = {"cosine_restarts", cosine_restarts, false, true, false},
    [AN_SCHEDULE_ONE_CYCLE] = {"one_cycle", one_cycle, true, false, false},
    [AN_SCHEDULE_INVERSE_SQRT] = {"inverse_sqrt", inverse_sqrt, false, false, false},
    [AN_SCHEDULE_WSD] = {"wsd", wsd, true, false, false},
    [AN_SCHEDULE_STEP] = {"step", step, false, true, true},
    [AN_SCHEDULE_EXPONENTIAL] = {"exponential", exponential, false, false, true},
    [AN_SCHEDULE_POLYNOMIAL] = {"polynomial", polynomial, true, false, false},
    [AN_SCHEDULE_POINTS] = {"points", points, false, false, false},
    [AN_SCHEDULE_SEQUENCE] = {"sequence", sequence, true, false, false},
    [AN_SCHEDULE_CUSTOM] = {"custom", custom, false, false, false},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

const char *an_schedule_type_name(an_schedule_type type) {
    return (unsigned)type < SHAPES ? shapes[type].name : "";
}

/* ---- making one ---- */

static bool is_factor(double number) {
    return number >= 0 && __builtin_isfinite(number);
}

static an_status check_points(an_context *ctx, const an_schedule_options *o) {
    an_status status;
    AN_CHECK(ctx, o->point_count > 0 && o->point_steps && o->point_factors, AN_ERR_ARGUMENT,
             "a schedule of type points needs at least one point");
    for (int i = 0; i < o->point_count; i++) {
        AN_CHECK(ctx, o->point_steps[i] >= 0 && (i == 0 || o->point_steps[i] > o->point_steps[i - 1]), AN_ERR_ARGUMENT,
                 "point %d of the schedule is at step %lld, but each point must be later than the one before", i,
                 (long long)o->point_steps[i]);
        AN_CHECK(ctx, is_factor(o->point_factors[i]), AN_ERR_ARGUMENT,
                 "point %d of the schedule has the factor %g; factors cannot be negative", i, o->point_factors[i]);
    }
    return AN_OK;
fail:
    return status;
}

static an_status check_sequence(an_context *ctx, const an_schedule_options *o) {
    an_status status;
    AN_CHECK(ctx, o->part_count > 0 && o->parts && (o->part_count == 1 || o->milestones), AN_ERR_ARGUMENT,
             "a sequence of schedules needs parts, and one milestone fewer than parts");
    for (int i = 0; i + 1 < o->part_count; i++)
        AN_CHECK(ctx, o->milestones[i] > (i ? o->milestones[i - 1] : 0), AN_ERR_ARGUMENT,
                 "milestone %d of the schedule is step %lld, but each milestone must be later than the one before", i,
                 (long long)o->milestones[i]);
    return AN_OK;
fail:
    return status;
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
    AN_CHECK(ctx, (unsigned)o->type < SHAPES, AN_ERR_ARGUMENT, "type is %d, which is not a value of an_schedule_type",
             (int)o->type);
    const char *name = shapes[o->type].name;
    AN_CHECK(ctx, o->steps > 0 || (o->steps == 0 && !shapes[o->type].needs_steps), AN_ERR_ARGUMENT,
             "the schedule '%s' needs the number of steps of the run", name);
    AN_CHECK(ctx, o->warmup >= 0, AN_ERR_ARGUMENT, "the warm-up has %lld steps", (long long)o->warmup);
    AN_CHECK(ctx, an_is_auto(o->start_factor) || (o->start_factor >= 0 && o->start_factor <= 1), AN_ERR_ARGUMENT,
             "start_factor is %g; it is the first rate as a fraction of the peak, from 0 to 1", o->start_factor);
    AN_CHECK(ctx, o->min_ratio >= 0 && o->min_ratio <= 1, AN_ERR_ARGUMENT,
             "min_ratio is %g; the last learning rate as a share of the peak must be 0 to 1", o->min_ratio);
    AN_CHECK(ctx, !shapes[o->type].needs_period || o->period > 0, AN_ERR_ARGUMENT,
             "the schedule '%s' needs a period of at least one step", name);
    AN_CHECK(ctx, !shapes[o->type].needs_gamma || (o->gamma > 0 && is_factor(o->gamma)), AN_ERR_ARGUMENT,
             "the schedule '%s' needs gamma, the factor from one %s to the next", name,
             o->type == AN_SCHEDULE_STEP ? "period" : "step");
    AN_CHECK(ctx, o->type != AN_SCHEDULE_WSD || o->decay_steps > 0, AN_ERR_ARGUMENT,
             "the schedule 'wsd' needs the number of steps of its decay");
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
    AN_CHECK(ctx, o->type != AN_SCHEDULE_CUSTOM || o->custom, AN_ERR_ARGUMENT, "the schedule 'custom' has no function");
    AN_TRY(check_holds(ctx, o));
    AN_TRY(check_borders(ctx, o));
    if (o->type == AN_SCHEDULE_POINTS) return check_points(ctx, o);
    if (o->type == AN_SCHEDULE_SEQUENCE) return check_sequence(ctx, o);
    return AN_OK;
fail:
    return status;
}

static an_status keep(an_schedule *s, const void **kept, const void *given, size_t count, size_t element) {
    an_context *ctx = s->ctx;
    void *copy = NULL;
    if (count == 0) return AN_OK;
    AN_TRY_RETURN(an_arena_alloc(&s->arena, &copy, count, element));
    memcpy(copy, given, count * element);
    *kept = copy;
    return AN_OK;
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
    an_context *ctx = s->ctx;
    s->options = *o;
    s->options.point_steps = s->options.milestones = NULL;
    s->options.point_factors = NULL;
    s->options.parts = NULL;
    s->options.holds = NULL;
    s->options.borders = NULL;
    AN_TRY_RETURN(keep(s, (const void **)&s->options.borders, o->borders, (size_t)o->border_count, sizeof *o->borders));
    AN_TRY_RETURN(keep(s, (const void **)&s->options.holds, o->holds, (size_t)o->hold_count, sizeof *o->holds));
    if (o->custom_name)
        AN_TRY_RETURN(an_arena_string(&s->arena, &s->options.custom_name, o->custom_name, strlen(o->custom_name)));
    if (o->type == AN_SCHEDULE_POINTS) {
        const size_t count = (size_t)o->point_count;
        AN_TRY_RETURN(keep(s, (const void **)&s->options.point_steps, o->point_steps, count, sizeof(int64_t)));
        return keep(s, (const void **)&s->options.point_factors, o->point_factors, count, sizeof(double));
    }
    if (o->type != AN_SCHEDULE_SEQUENCE) return AN_OK;
    AN_TRY_RETURN(
        keep(s, (const void **)&s->options.milestones, o->milestones, (size_t)o->part_count - 1, sizeof(int64_t)));
    return make_parts(s, o);
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

static double factor_at(const an_schedule *s, int64_t t) {
    const an_schedule_options *o = &s->options;
    if (t < 0) t = 0;
    if (t < o->warmup) return warm_up(o, t);
    return shapes[o->type].factor(s, t - o->warmup, o->steps - o->warmup);
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
    const an_schedule_options *o = &s->options;
    if (t < 0) t = 0;
    if (o->type == AN_SCHEDULE_SEQUENCE && t >= o->warmup) {
        const int part = part_at(s, t - o->warmup);
        return momentum_at(s->parts[part], t - o->warmup - (part ? o->milestones[part - 1] : 0));
    }
    if (o->type != AN_SCHEDULE_ONE_CYCLE || !o->cycle_momentum) return 0;
    if (t < o->warmup && o->steps <= o->warmup) return most_momentum; /* the run has no cycle to begin */
    return one_cycle_at(s, t > o->warmup ? t - o->warmup : 0, o->steps - o->warmup, true);
}

double an_schedule_momentum(const an_schedule *schedule, int64_t t) {
    AN_GUARD;
    AN_NEED_OR(0, schedule);
    return momentum_at(schedule, held(schedule, t));
}
