/* Type stream: samples that the program pushes, step by step. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    DTYPE_OPTION(DERIVED),
    OPTIONS_END,
};

const an_data_kind an_data_stream = {
    .kind = {.name = "stream", .options = options, .flags = AN_KIND_ENDLESS},
};
