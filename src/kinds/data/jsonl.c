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

const an_data_kind an_data_jsonl = {
    .kind = {.name = "jsonl", .options = options, .samples = AN_GIVES_NUMBERS},
    .open = open_source,
    .is_text = true,
};
