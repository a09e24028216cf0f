/* one_cycle: up to 1 and down again, the momentum the other way, as PyTorch's OneCycleLR. */
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"
#include "step/schedules/shapes.h"

static const double least_momentum = 0.85, most_momentum = 0.95;

typedef struct {
    double end, from, to; /* steps where the phase ends, factors on the peak rate */
    double momentum_from, momentum_to;
} phase;

enum { MOST_PHASES = 3 };

/* As PyTorch's: the ends of phases are fractions of steps. */
static int make_phases(const an_schedule_options *o, int64_t length, phase *phases) {
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

static double between(const an_schedule_options *o, double from, double to, double p) {
    return o->linear ? (to - from) * p + from : to + (from - to) / 2 * (an_cos_f64(an_schedule_pi * p) + 1);
}

static double value_at(const an_schedule_options *o, int64_t u, int64_t length, bool momentum) {
    phase phases[MOST_PHASES];
    const int count = make_phases(o, length, phases);
    const double at = (double)(u < length ? u : length - 1);
    double begin = 0;
    int i = 0;
    while (i + 1 < count && at > phases[i].end) begin = phases[i++].end;
    const double p = phases[i].end > begin ? (at - begin) / (phases[i].end - begin) : 1;
    return momentum ? between(o, phases[i].momentum_from, phases[i].momentum_to, p)
                    : between(o, phases[i].from, phases[i].to, p);
}

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    return value_at(o, u, length, false);
}

/* In a warm-up it is that of the first step; a warm-up as long as the run has no cycle to begin. */
static double momentum(const an_schedule_options *o, int64_t u, int64_t length) {
    if (!o->cycle_momentum) return 0;
    return u < 0 && length <= 0 ? most_momentum : value_at(o, u > 0 ? u : 0, length, true);
}

static const an_option options[] = {
    OPTION_AT(60, "schedule.max_lr", REAL, NONE, "", ABOVE(0), FIXED(RATE), DERIVED,
              "peak learning rate; optimizer.lr by default"),
    OPTION_AT(70, "schedule.pct_start", SHARE, "0.3", "", BELOW_ABOVE(0, 1), FIXED(RATE),
              INTO(IN(an_schedule_options, pct_start)),
              "share of the run in which the learning rate rises; same as PyTorch"),
    OPTION_AT(80, "schedule.div_factor", REAL, "25", "", ABOVE(0), FIXED(RATE),
              INTO(IN(an_schedule_options, div_factor)),
              "peak learning rate divided by the first one; same as PyTorch"),
    OPTION_AT(90, "schedule.final_div_factor", REAL, "10000", "", ABOVE(0), FIXED(RATE),
              INTO(IN(an_schedule_options, final_div_factor)),
              "first learning rate divided by the last one; same as PyTorch"),
    OPTION_AT(100, "schedule.anneal", CHOICE, "cos", "cos|linear", ANY, FIXED(RATE),
              INTO(IN(an_schedule_options, linear)), "shape of the rise and the fall; same as PyTorch"),
    OPTION_AT(110, "schedule.three_phase", BOOL, "off", "", ANY, FIXED(RATE),
              INTO(IN(an_schedule_options, three_phase)),
              "fall as slowly as the rise, followed by a last phase down to the final rate; same as PyTorch"),
    OPTION_AT(120, "schedule.momentum", BOOL, "on", "", ANY, FIXED(RATE), INTO(IN(an_schedule_options, cycle_momentum)),
              "momentum (beta 1) that moves against the learning rate, between 0.95 and 0.85; same as PyTorch"),
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_one_cycle = {
    .kind = {.name = "one_cycle", .options = options},
    .factor = factor,
    .momentum = momentum,
    .needs_steps = true,
};
