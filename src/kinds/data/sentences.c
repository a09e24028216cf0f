/* Type sentences: texts with classes, for BERT. */
#include "anneal/pretrained.h"
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_sentence_source, path))),
    TOKENIZER_OPTION,
    OPTION_AT(
        320, "data.train.context", COUNT, "auto", "auto", FROM(4), FIXED(SAMPLES), DERIVED,
        "tokens of a sample, to which records are cut or padded; auto is the longest record of the training data, at "
        "most the model's context"),
    PART_OPTION(INTO(RANGE(an_sentence_source, begin, end))),
    OPTIONS_END,
};

/* What evaluates has samples as long as those that were trained on, and their numbers of classes. */
static an_status open_sentences(const an_data_opening *o, const an_tokenizer *tokenizer) {
    an_context *ctx = o->ctx;
    const an_dataset *like = *o->vocabulary;
    an_sentence_source s;
    an_field field;
    an_sentence_source_init(&s, sizeof s);
    an_field_init(&field, sizeof field);
    s.tokenizer = tokenizer;
    AN_TRY_RETURN(AN_FILL(o, an_sentence_source, &s));
    AN_TRY_RETURN(an_data_context(o->config, ctx, o->path, &s.context));
    s.padded = !an_config_is(o->config, AN_KEY(o->path, "context"), "auto");
    if (like && !s.padded) {
        AN_TRY_RETURN(an_dataset_field(like, 0, &field));
        s.context = field.dims[0];
        s.padded = true;
    }
    if (like && an_dataset_class_name(like, 0)) s.like = like;
    return an_dataset_create_sentences(o->dataset, ctx, &s);
}

static an_status open_source(const an_data_opening *o) {
    an_status status;
    const char *place = NULL;
    an_tokenizer *tokenizer = NULL;
    AN_TRY(an_data_tokenizer(o, &tokenizer, &place));
    AN_TRY(open_sentences(o, tokenizer));
    an_data_remember(o);
    status = AN_OK;
fail:
    an_tokenizer_destroy(&tokenizer);
    return status;
}

/* The tokenizer is the run's, or that of the model which it began with. */
static an_status open_samples(const an_samples_opening *o) {
    an_status status;
    const char *place = NULL;
    an_tokenizer *tokenizer = NULL;
    an_sentence_source s;
    an_sentence_source_init(&s, sizeof s);
    AN_TRY(an_data_tokenizer(&o->source, &tokenizer, &place));
    s.path = o->model->path;
    s.tokenizer = tokenizer;
    s.context = o->model->elements;
    s.padded = true;
    s.has_targets = false;
    o->info->sentences = true;
    AN_TRY(an_dataset_create_sentences(o->source.dataset, o->source.ctx, &s));
    status = AN_OK;
fail:
    an_tokenizer_destroy(&tokenizer);
    return status;
}

const an_data_kind an_data_sentences = {
    .kind = {.name = "sentences", .options = options, .samples = AN_GIVES_SENTENCES},
    .open = open_source,
    .open_samples = open_samples,
    .is_text = true,
};
