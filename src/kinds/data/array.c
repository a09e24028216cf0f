/* Type array: samples that the program has in memory. No config can use it yet. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PART_OPTION(DERIVED),
    OPTIONS_END,
};

const an_data_kind an_data_array = {
    .kind = {.name = "array", .options = options, .flags = AN_KIND_UNSUPPORTED},
};
