/* Type text: a text whose bytes or characters are tokens. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_text_source, path))),
    OPTION_AT(230, "data.train.tokens", CHOICE, "bytes", "bytes|chars", ANY, FIXED(SAMPLES),
              INTO(IN(an_text_source, tokens)), "unit of text that makes a token; bytes work for any file"),
    CONTEXT_OPTION,
    PART_OPTION(INTO(RANGE(an_text_source, begin, end))),
    OPTIONS_END,
};

static an_status open_source(const an_data_opening *o) {
    an_context *ctx = o->ctx;
    an_text_source s;
    an_text_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL(o, an_text_source, &s));
    AN_TRY_RETURN(an_data_context(o->config, ctx, o->path, &s.context));
    if (s.tokens != AN_TEXT_CHARACTERS) return an_dataset_create_text(o->dataset, ctx, &s);
    /* What evaluates must number characters as what was trained on: those of another file may be
     * others, in another order. */
    if (an_data_evaluates(o)) s.vocabulary = *o->vocabulary;
    AN_TRY_RETURN(an_dataset_create_text(o->dataset, ctx, &s));
    an_data_remember(o);
    return AN_OK;
}

const an_data_kind an_data_text = {
    .kind = {.name = "text", .options = options, .samples = AN_GIVES_TOKENS},
    .open = open_source,
    .is_text = true,
};
