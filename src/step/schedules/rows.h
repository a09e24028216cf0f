/* Options that several schedules have (base/options/option_rows.h). */
#ifndef AN_STEP_SCHEDULES_ROWS_H
#define AN_STEP_SCHEDULES_ROWS_H

#include "anneal/optimizer.h"
#include "base/options/option_rows.h"

#define MIN_RATIO_OPTION                                                           \
    OPTION_AT(10, "schedule.min_ratio", REAL, "0", "", BETWEEN(0, 1), FIXED(RATE), \
              INTO(IN(an_schedule_options, min_ratio)), "final learning rate as a share of the peak")

#define MIN_LR_OPTION                                                               \
    OPTION_AT(20, "schedule.min_lr", REAL, NONE, "", FROM(0), FIXED(RATE), DERIVED, \
              "final learning rate, instead of min_ratio, for parameters without an lr_scale")

#endif
