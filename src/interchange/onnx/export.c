/* A checkpoint as an ONNX model, weights included. They are streamed: a message of Protocol Buffers begins with its
 * length, which is known before. */
#include <stdio.h>
#include <string.h>

#include "interchange/export_file.h"
#include "interchange/exporter.h"
#include "interchange/model_nodes.h"
#include "interchange/onnx/export.h"
#include "interchange/onnx/model.h"

typedef struct {
    an_context *ctx;
    an_graph *graph;
    an_export_list list;
    an_onnx_parts parts;
    an_text heads; /* of all weights, one behind the other */
    size_t *ends;  /* of each weight's head there; what nobody reads has none */
    const char *beside;
    int64_t bytes; /* of the weights that are needed */
} exporting;

/* Whether the function needs it: a loss may have weights that the outputs have not. */
static const an_node *find_weight(const exporting *e, const char *name) {
    for (const an_node *n = e->graph->first; n; n = n->next)
        if (n->mark && an_node_is_parameter(n) && !strcmp(an_node_name(n), name)) return n;
    return NULL;
}

static int64_t bytes_of(const an_result *r) {
    int64_t bytes = (int64_t)an_dtype_size(r->dtype);
    for (int i = 0; i < r->ndims; i++) bytes *= r->dims[i];
    return bytes;
}

static an_status check_weights(const exporting *e) {
    for (const an_node *n = e->graph->first; n; n = n->next) {
        bool found = !n->mark || !an_node_is_parameter(n);
        for (size_t i = 0; i < e->list.count && !found; i++)
            found = !strcmp(e->list.entries[i].name, an_node_name(n)) &&
                    e->list.entries[i].bytes == bytes_of(&n->outputs[0]);
        if (!found)
            return AN_ERROR(e->ctx, AN_ERR_DAMAGED, "%s: the weight '%s' of its graph is not there",
                            e->list.checkpoint->path, AN_QUOTE(an_node_name(n)));
    }
    return AN_OK;
}

static an_status write_heads(exporting *e) {
    an_context *ctx = e->ctx;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&e->ends, e->list.count, sizeof *e->ends));
    for (size_t i = 0; i < e->list.count; i++) {
        const an_safetensor *entry = &e->list.entries[i];
        const an_node *node = find_weight(e, entry->name);
        if (node) {
            an_onnx_weight(&e->heads, entry->name, node->outputs[0].dtype, entry->ndims, entry->dims,
                           (uint64_t)entry->bytes, e->beside, (uint64_t)e->bytes);
            e->bytes += entry->bytes;
        }
        e->ends[i] = e->heads.length;
    }
    return e->heads.status;
}

static an_status write_weights(const exporting *e, an_export_file *model, an_export_file *data) {
    for (size_t i = 0; i < e->list.count; i++) {
        const size_t begin = i > 0 ? e->ends[i - 1] : 0, length = e->ends[i] - begin;
        if (length == 0) continue;
        AN_TRY_RETURN(an_export_file_bytes(model, e->heads.bytes + begin, length));
        AN_TRY_RETURN(an_export_file_tensor(data ? data : model, &e->list, i));
    }
    return AN_OK;
}

static an_status write_files(exporting *e, an_export_file *model, an_export_file *data) {
    an_text *fields = &e->parts.model;
    const uint64_t weights = e->heads.length + (data ? 0 : (uint64_t)e->bytes);
    an_onnx_graph_head(fields, e->parts.graph.length + weights);
    AN_TRY_RETURN(fields->status);
    AN_TRY_RETURN(an_export_file_bytes(model, fields->bytes, fields->length));
    AN_TRY_RETURN(an_export_file_bytes(model, e->parts.graph.bytes, e->parts.graph.length));
    AN_TRY_RETURN(write_weights(e, model, data));
    if (data) AN_TRY_RETURN(an_export_file_finish(data));
    return an_export_file_finish(model);
}

static an_status read_graph(exporting *e, const an_checkpoint *c) {
    an_status status;
    an_context *ctx = c->ctx;
    char *form = NULL, *encoding = NULL, title[128];
    AN_TRY(an_checkpoint_text(c, "graph.ang", &form));
    AN_TRY(an_graph_parse(&e->graph, ctx, form, strlen(form)));
    AN_TRY(an_graph_verify(e->graph));
    AN_CHECK(ctx, !an_graph_has_blocks(e->graph), AN_ERR_UNSUPPORTED, "%s: has weights of q8_0, which ONNX cannot read",
             c->path);
    if (an_manifest_find_file(c->manifest, "encoding.json") >= 0)
        AN_TRY(an_checkpoint_text(c, "encoding.json", &encoding));
    snprintf(title, sizeof title, "The model of a run after step %lld", (long long)c->manifest->step);
    AN_TRY(an_onnx_write(&e->parts, e->graph, title, encoding, AN_ONNX_WEIGHTS_INSIDE));
    status = AN_OK;
fail:
    an_string_release(ctx, &form);
    an_string_release(ctx, &encoding);
    return status;
}

an_status an_onnx_export(const an_checkpoint *checkpoint, const char *file, int64_t most_inside) {
    an_status status;
    an_context *ctx = checkpoint->ctx;
    exporting e = {.ctx = ctx};
    an_export_file model = {0}, data = {0};
    char beside[AN_FILE_PATH];
    const char *slash = strrchr(file, '/');
    an_onnx_parts_init(&e.parts, ctx);
    an_text_init(&e.heads, ctx);
    AN_CHECK(ctx, checkpoint->manifest, AN_ERR_UNSUPPORTED,
             "%s: has only tensors; to write a model, give a run or a checkpoint, which has its graph",
             checkpoint->path);
    AN_CHECK(ctx, checkpoint->manifest->adapter.adapter.rank == 0, AN_ERR_UNSUPPORTED,
             "%s: has an adapter, and not the model that it changes: export the merged model instead",
             checkpoint->path);
    AN_CHECK(ctx, snprintf(beside, sizeof beside, "%s.data", file) < (int)sizeof beside, AN_ERR_ARGUMENT,
             "the path is too long: %.100s…", file);
    AN_TRY(read_graph(&e, checkpoint));
    AN_TRY(an_export_list_create(&e.list, checkpoint, NULL));
    AN_TRY(check_weights(&e));
    const bool is_large = e.list.bytes > most_inside;
    if (is_large) e.beside = beside + (slash ? slash + 1 - file : 0);
    AN_TRY(write_heads(&e));
    AN_TRY(an_export_file_open(&model, ctx, file));
    if (is_large) AN_TRY(an_export_file_open(&data, ctx, beside));
    AN_TRY(write_files(&e, &model, is_large ? &data : NULL));
    status = AN_OK;
fail:
    an_export_file_close(&data);
    an_export_file_close(&model);
    an_release(ctx, (void **)&e.ends, e.list.count, sizeof *e.ends);
    an_export_list_destroy(&e.list);
    an_onnx_parts_destroy(&e.parts);
    an_text_destroy(&e.heads);
    an_graph_destroy(&e.graph);
    return status;
}

static an_status write_onnx(const an_checkpoint *checkpoint, const char *file, const an_export_options *options) {
    (void)options;
    return an_onnx_export(checkpoint, file, AN_ONNX_MOST_INSIDE);
}

const an_exporter an_exporter_onnx = {.name = "onnx", .write = write_onnx};
