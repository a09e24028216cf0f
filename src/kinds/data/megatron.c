/* Type megatron: the indexed files of tokens of Megatron-LM. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_megatron_source, prefix))),         CONTEXT_OPTION,
    DOCUMENTS_OPTION(INTO(IN(an_megatron_source, documents))), BORDER_TARGETS_OPTION,
    PART_OPTION(INTO(RANGE(an_megatron_source, begin, end))),  OPTIONS_END,
};

static an_status open_source(const an_data_opening *o) {
    an_context *ctx = o->ctx;
    an_megatron_source s;
    an_megatron_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL(o, an_megatron_source, &s));
    AN_TRY_RETURN(an_data_context(o->config, ctx, o->path, &s.context));
    AN_TRY_RETURN(an_data_ignores_borders(o, s.documents, &s.ignore_borders));
    return an_dataset_create_megatron(o->dataset, ctx, &s);
}

static an_status open_samples(const an_samples_opening *o) {
    an_megatron_source s;
    an_megatron_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL_ALL(o, an_megatron_source, &s));
    s.prefix = o->model->path;
    s.context = o->model->elements;
    s.documents = false;
    return an_dataset_create_megatron(o->source.dataset, o->source.ctx, &s);
}

const an_data_kind an_data_megatron = {
    .kind = {.name = "megatron", .options = options, .samples = AN_GIVES_TOKENS},
    .open = open_source,
    .open_samples = open_samples,
};
