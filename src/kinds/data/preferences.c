/* Type preferences: prompts, each with a chosen and a rejected answer. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_chat_source, path))),
    TOKENIZER_OPTION,
    OPTION_AT(
        310, "data.train.context", COUNT, "auto", "auto", FROM(4), FIXED(SAMPLES), DERIVED,
        "tokens of a sample, which holds both answers of a pair, each with the prompt; longer answers are cut; auto is "
        "the model's context"),
    TEMPLATE_OPTION,
    SYSTEM_OPTION,
    PART_OPTION(INTO(RANGE(an_chat_source, begin, end))),
    OPTIONS_END,
};

static an_status open_source(const an_data_opening *o) {
    return an_data_open_chat(o, true);
}

const an_data_kind an_data_preferences = {
    .kind = {.name = "preferences", .options = options},
    .open = open_source,
    .is_text = true,
};
