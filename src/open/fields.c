/* What the fields of a config's data tell its model. */
#include <stdio.h>
#include <string.h>

#include "open/open.h"

int64_t an_open_elements(const an_field *field) {
    int64_t elements = 1;
    for (int d = 0; d < field->ndims; d++)
        if (!an_multiply_i64(elements, field->dims[d], &elements)) return INT64_MAX; /* no data has as many */
    return elements;
}

an_sizes_text an_sizes_describe(const an_field *field) {
    an_sizes_text sizes = {"["};
    for (int d = 0; d < field->ndims; d++) {
        const size_t used = strlen(sizes.text);
        snprintf(sizes.text + used, sizeof sizes.text - used, "%s%lld", d ? ", " : "", (long long)field->dims[d]);
    }
    const size_t used = strlen(sizes.text);
    snprintf(sizes.text + used, sizeof sizes.text - used, "]");
    return sizes;
}

/* How many classes the targets name, the largest and one. Files of labels do not say: O(samples), all of them are read, once. */
an_status an_open_classes(an_model_opening *o) {
    enum { AT_ONCE = 256 };
    an_status status;
    an_context *ctx = o->ctx;
    an_sample_buffer b;
    int field = 0;
    AN_TRY_RETURN(an_sample_buffer_create(&b, ctx, o->dataset, AT_ONCE));
    for (int i = 0; i < an_dataset_field_count(o->dataset); i++) {
        an_field f = AN_INIT(f);
        AN_TRY(an_dataset_field(o->dataset, i, &f));
        if (!strcmp(f.name, o->targets.name)) field = i;
    }
    AN_CHECK(ctx, o->targets.dtype == AN_DTYPE_I32, AN_ERR_ARGUMENT,
             "%s: the model needs classes, and the targets of data.train are numbers; take data with labels, or csv "
             "with classes: on",
             an_config_place(o->config, "model"));
    const int64_t samples = an_dataset_count(o->dataset), each = an_open_elements(&o->targets);
    for (int64_t begin = 0; begin < samples; begin += AT_ONCE) {
        const int64_t n = samples - begin < AT_ONCE ? samples - begin : AT_ONCE;
        for (int64_t i = 0; i < n; i++) b.indices[i] = begin + i;
        AN_TRY(an_dataset_read(o->dataset, n, b.indices, b.fields));
        for (int64_t i = 0; i < n * each; i++) {
            const int32_t target = ((const int32_t *)b.fields[field])[i];
            if (target >= o->classes) o->classes = (int64_t)target + 1;
        }
    }
    status = AN_OK;
fail:
    an_sample_buffer_destroy(&b, ctx);
    return status;
}

bool an_open_wants_classes(const an_model_opening *o) {
    const bool integers = o->targets.dtype == AN_DTYPE_I32 || o->targets.dtype == AN_DTYPE_I64;
    return an_config_is(o->config, "model.loss", "cross_entropy") ||
           (integers && an_config_is(o->config, "model.loss", "auto"));
}
