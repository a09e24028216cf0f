/* sequence: several schedules one after another, each with steps of its own (step/schedule.c). */
#include "base/status.h"
#include "step/schedules/keep.h"
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"

static an_status check(an_context *ctx, const an_schedule_options *o) {
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

static an_status keep(an_arena *arena, an_schedule_options *kept, const an_schedule_options *given) {
    return an_schedule_keep(arena, (const void **)&kept->milestones, given->milestones, (size_t)given->part_count - 1,
                            sizeof *given->milestones);
}

static const an_option options[] = {
    OPTION_AT(200, "schedule.parts", TABLES, REQUIRED, "", TABLE_OF("schedule"), FIXED(RATE), NO_MEMBER,
              "schedules to run one after another"),
    OPTION_AT(
        210, "schedule.milestones", LENGTHS, REQUIRED, "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
        DERIVED,
        "start of each part after the first, counted from the end of the warm-up; 2 epochs means after two epochs. A "
        "share inside a part is a share of that part"),
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_sequence = {
    .kind = {.name = "sequence", .options = options},
    .needs_steps = true,
    .check = check,
    .keep = keep,
};
