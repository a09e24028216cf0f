/* Kinds of memory, for tables and pictures. */
#include <string.h>

#include "cli/plan/report.h"

const char *const cli_kind_fills[CLI_KINDS] = {"#332288", "#88ccee", "#6699cc", "#44aa99", "#4477aa", "#ddaa33",
                                               "#999933", "#bbbbbb", "#aa4499", "#117733", "#cc6677"};

void cli_kinds(const an_plan_memory *memory, cli_kind kinds[CLI_KINDS]) {
    const an_plan_memory *m = memory;
    const cli_kind all[CLI_KINDS] = {
        {"weights", m->weights},     {"gradients", m->gradients},     {"leaves", m->leaves},
        {"optimizer", m->optimizer}, {"activations", m->activations}, {"scratch", m->scratch},
        {"inputs", m->inputs},       {"tables", m->tables},           {"checkpoint", m->checkpoint},
        {"messages", m->messages},   {"trainer", m->trainer},
    };
    memcpy(kinds, all, sizeof all);
}
