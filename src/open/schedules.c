/* Types of schedules: names and options. The order of schedules.def is that of an_schedule_type. */
#include "anneal/optimizer.h"
#include "base/option_rows.h"
#include "open/kinds.h"

#define MIN_RATIO_OPTION                                                           \
    OPTION_AT(10, "schedule.min_ratio", REAL, "0", "", BETWEEN(0, 1), FIXED(RATE), \
              INTO(IN(an_schedule_options, min_ratio)), "final learning rate as a share of the peak")

#define MIN_LR_OPTION                                                               \
    OPTION_AT(20, "schedule.min_lr", REAL, NONE, "", FROM(0), FIXED(RATE), DERIVED, \
              "final learning rate, instead of min_ratio, for parameters without an lr_scale")

static const an_option linear_options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTIONS_END,
};

static const an_option cosine_options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTION_AT(
        30, "schedule.floor", CHOICE, "scale", "scale|clamp", ANY, FIXED(RATE), INTO(IN(an_schedule_options, clamp)),
        "how min_ratio acts: scale lets the wave end at min_ratio; clamp lets it fall towards 0 and cuts it off at "
        "min_ratio, as many hand-written schedules do"),
    OPTIONS_END,
};

static const an_option cosine_restarts_options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTION_AT(40, "schedule.T_0", LENGTH, REQUIRED, "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
              DERIVED, "length of the first wave"),
    OPTION_AT(50, "schedule.T_mult", COUNT, "1", "", FROM(1), FIXED(RATE), INTO(IN(an_schedule_options, period_growth)),
              "factor by which each wave is longer than the one before; same as PyTorch"),
    OPTIONS_END,
};

static const an_option one_cycle_options[] = {
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

static const an_option wsd_options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTION_AT(130, "schedule.stable", LENGTH, NONE, "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
              DERIVED, "length of the phase at the peak; what schedule.decay leaves by default"),
    OPTION_AT(140, "schedule.decay", LENGTH, "10%", "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
              DERIVED, "length of the fall at the end; 10% is the usual share"),
    OPTIONS_END,
};

static const an_option step_options[] = {
    OPTION_AT(150, "schedule.period", LENGTH, REQUIRED, "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
              DERIVED, "interval between drops of the learning rate"),
    OPTION_AT(160, "schedule.gamma", REAL, "0.1", "", ABOVE(0), FIXED(RATE), INTO(IN(an_schedule_options, gamma)),
              "factor on the learning rate after every period; same as PyTorch"),
    OPTIONS_END,
};

static const an_option exponential_options[] = {
    OPTION_AT(170, "schedule.gamma", REAL, REQUIRED, "", ABOVE(0), FIXED(RATE), INTO(IN(an_schedule_options, gamma)),
              "factor on the learning rate after every step"),
    OPTIONS_END,
};

static const an_option polynomial_options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTION_AT(180, "schedule.power", REAL, "1", "", ABOVE(0), FIXED(RATE), INTO(IN(an_schedule_options, power)),
              "exponent of the remaining share of the run; same as PyTorch"),
    OPTIONS_END,
};

static const an_option points_options[] = {
    OPTION_AT(
        190, "schedule.points", REAL_MAP, REQUIRED, "", FROM(0), FIXED(RATE), DERIVED,
        "map of steps to factors on the learning rate, with straight lines between them, such as {0: 0, 500: 1, 20000: "
        "0.1}"),
    OPTIONS_END,
};

static const an_option sequence_options[] = {
    OPTION_AT(200, "schedule.parts", TABLES, REQUIRED, "", TABLE_OF("schedule"), FIXED(RATE), NO_MEMBER,
              "schedules to run one after another"),
    OPTION_AT(
        210, "schedule.milestones", LENGTHS, REQUIRED, "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
        DERIVED,
        "start of each part after the first, counted from the end of the warm-up; a share inside a part is a share of "
        "that part"),
    OPTIONS_END,
};

const an_kind an_schedule_kind_constant = {.name = "constant"};
const an_kind an_schedule_kind_linear = {.name = "linear", .options = linear_options};
const an_kind an_schedule_kind_cosine = {.name = "cosine", .options = cosine_options};
const an_kind an_schedule_kind_cosine_restarts = {.name = "cosine_restarts", .options = cosine_restarts_options};
const an_kind an_schedule_kind_one_cycle = {.name = "one_cycle", .options = one_cycle_options};
const an_kind an_schedule_kind_inverse_sqrt = {.name = "inverse_sqrt"};
const an_kind an_schedule_kind_wsd = {.name = "wsd", .options = wsd_options};
const an_kind an_schedule_kind_step = {.name = "step", .options = step_options};
const an_kind an_schedule_kind_exponential = {.name = "exponential", .options = exponential_options};
const an_kind an_schedule_kind_polynomial = {.name = "polynomial", .options = polynomial_options};
const an_kind an_schedule_kind_points = {.name = "points", .options = points_options};
const an_kind an_schedule_kind_sequence = {.name = "sequence", .options = sequence_options};
