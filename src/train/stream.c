/* Checks whether data and a graph match, and creates datasets whose samples come from the program. */
#include <string.h>

#include "anneal/stream.h"
#include "base/guard.h"
#include "ops/source.h"
#include "train/feed.h"
#include "train/trainer.h"

an_status an_graph_check_data(an_graph *graph, const an_dataset *dataset) {
    AN_GUARD;
    AN_NEED(graph, dataset);
    an_feed feed;
    return an_feed_make(&feed, graph, dataset);
}

/* ---- streams ---- */

static an_status read_nothing(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    (void)user, (void)n, (void)indices, (void)fields;
    if (message_capacity > 0) message[0] = 0;
    return AN_ERR_STATE; /* a trainer on a stream has no loader */
}

static const char *name_of(const an_result *input) {
    return ((const an_input_attributes *)input->node->attributes)->name;
}

static an_status make_field(an_field *field, const an_graph *g, const an_result *r, int64_t symbol_size) {
    an_field_init(field, sizeof *field);
    field->name = name_of(r);
    field->dtype = r->dtype;
    field->ndims = r->ndims - 1;
    field->target = an_graph_result(g, g->targets) == r;
    for (int d = 1; d < r->ndims; d++) {
        field->dims[d - 1] = r->dims[d] >= 0 ? r->dims[d] : symbol_size;
        if (field->dims[d - 1] == 0)
            return AN_ERROR(g->ctx, AN_ERR_SHAPE,
                            "the model's input '%s' is %s, and a stream does not provide these sizes; use constants "
                            "for all dimensions except the samples",
                            field->name, AN_DESCRIBE(g, r));
    }
    return AN_OK;
}

an_status an_dataset_create_stream(an_dataset **dataset, const an_graph *graph, int64_t symbol_size) {
    AN_GUARD;
    AN_NEED(graph, dataset);
    const an_graph *g = graph;
    an_context *ctx = g->ctx;
    an_field fields[AN_MAX_FEEDS];
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    *dataset = NULL;
    for (size_t i = 0; i < g->source_count && record.field_count < AN_MAX_FEEDS; i++) {
        const an_result *r = &g->sources[i]->outputs[0];
        if (r->storage != AN_STORAGE_INPUT || (!strcmp(name_of(r), "samples") && r->dtype == AN_DTYPE_I64)) continue;
        AN_TRY_RETURN(make_field(&fields[record.field_count++], g, r, symbol_size));
    }
    record.count = 1;
    record.fields = fields;
    record.read = read_nothing;
    AN_TRY_RETURN(an_dataset_create(dataset, ctx, &record));
    (*dataset)->streams = true;
    return AN_OK;
}
