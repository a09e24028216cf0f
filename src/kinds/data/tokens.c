/* Type tokens: a file of tokens. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_token_source, path))),
    OPTION_AT(240, "data.train.format", CHOICE, "auto", "auto|u16|u32", ANY, FIXED(SAMPLES),
              INTO(IN(an_token_source, format)),
              "number type of a token; auto is what the header says, or u16 without a header"),
    CONTEXT_OPTION,
    DOCUMENTS_OPTION(INTO(IN(an_token_source, documents))),
    BORDER_TARGETS_OPTION,
    OPTION_AT(280, "data.train.end_token", COUNT, NONE, "", FROM(0), FIXED(SAMPLES),
              INTO(IN(an_token_source, end_token)), "token that ends a document"),
    PART_OPTION(INTO(RANGE(an_token_source, begin, end))),
    OPTIONS_END,
};

static an_status open_source(const an_data_opening *o) {
    an_context *ctx = o->ctx;
    an_token_source s;
    an_token_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL(o, an_token_source, &s));
    AN_TRY_RETURN(an_data_context(o->config, ctx, o->path, &s.context));
    AN_TRY_RETURN(an_data_ignores_borders(o, s.documents, &s.ignore_borders));
    return an_dataset_create_tokens(o->dataset, ctx, &s);
}

static an_status open_samples(const an_samples_opening *o) {
    an_token_source s;
    an_token_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL_ALL(o, an_token_source, &s));
    s.path = o->model->path;
    s.context = o->model->elements;
    s.documents = false;
    return an_dataset_create_tokens(o->source.dataset, o->source.ctx, &s);
}

const an_data_kind an_data_tokens = {
    .kind = {.name = "tokens", .options = options, .samples = AN_GIVES_TOKENS},
    .open = open_source,
    .open_samples = open_samples,
    .has_tokenizer = true,
};
