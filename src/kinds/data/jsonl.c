/* Type jsonl: JSON lines, each an object with numbers. */
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_jsonl_source, path))),
    OPTION_AT(
        90, "data.train.inputs", STRINGS, "auto", "auto", ANY, FIXED(SAMPLES),
        INTO(LIST(an_jsonl_source, inputs, input_count)),
        "members of each object that are inputs, numbers or lists of numbers, such as [age, size.height]; auto is all "
        "that the first object has but the targets"),
    OPTION_AT(100, "data.train.targets", STRINGS, "auto", "auto", ANY, FIXED(SAMPLES),
              INTO(LIST(an_jsonl_source, targets, target_count)),
              "members of each object that are targets; auto is the last one that the first object has"),
    OPTION_AT(110, "data.train.classes", BOOL, "off", "", ANY, FIXED(SAMPLES), INTO(IN(an_jsonl_source, classes)),
              "the target is a class number; off; names of classes are recognised by themselves"),
    DTYPE_OPTION(INTO(AS(an_jsonl_source, dtype, AN_DTYPE_F32, AN_DTYPE_F64))),
    PART_OPTION(INTO(RANGE(an_jsonl_source, begin, end))),
    OPTIONS_END,
};

static an_status open_source(const an_data_opening *o) {
    an_context *ctx = o->ctx;
    an_jsonl_source s;
    an_jsonl_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL(o, an_jsonl_source, &s));
    s.weights = o->config->settings->data.weights;
    s.weights_optional = an_data_evaluates(o);
    s.like = an_data_classes(o);
    AN_TRY_RETURN(an_dataset_create_jsonl(o->dataset, ctx, &s));
    if (!*o->vocabulary && an_dataset_class_name(*o->dataset, 0)) *o->vocabulary = *o->dataset;
    return AN_OK;
}

/* A record may have the members of targets or not. */
static an_status open_samples(const an_samples_opening *o) {
    an_context *ctx = o->source.ctx;
    an_dataset **dataset = o->source.dataset;
    const int64_t elements = o->model->elements;
    an_jsonl_source s;
    an_jsonl_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL_ALL(o, an_jsonl_source, &s));
    s.weights = o->source.config->settings->data.weights;
    const int target_count = s.target_count;
    s.path = o->model->path;
    s.dtype = o->model->dtype;
    s.weights_optional = true; /* that member too may be there or not */
    s.classes = s.has_targets = false;
    s.target_count = 0;
    an_status status = an_dataset_create_jsonl(dataset, ctx, &s);
    int64_t numbers = *dataset ? an_data_elements(*dataset) : 0;
    if (*dataset && numbers == elements) return AN_OK;
    an_dataset_destroy(dataset);
    if (s.input_count == 0) {
        s.has_targets = true;
        s.target_count = target_count;
        status = an_dataset_create_jsonl(dataset, ctx, &s);
        if (*dataset && an_data_elements(*dataset) == elements) return AN_OK;
        if (*dataset && numbers == 0) numbers = an_data_elements(*dataset);
    }
    if (numbers == 0) return status;
    return AN_ERROR(ctx, AN_ERR_SHAPE,
                    "%s: a record has %lld numbers, but the model reads %lld, with or without the targets", s.path,
                    (long long)numbers, (long long)elements);
}

const an_data_kind an_data_jsonl = {
    .kind = {.name = "jsonl", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_source,
    .open_samples = open_samples,
    .is_text = true,
};
