/* Models of type graph: the text form of a graph, from a file. */
#include "base/context.h"
#include "base/files/reader.h"
#include "kinds/models/models.h"
#include "kinds/models/rows.h"

static const an_option options[] = {
    OPTION_AT(10, "model.graph", INPUT, REQUIRED, "", ANY, SAME_FILE, DERIVED,
              "file with the text form of a graph (.ang); model.type can then be left out"),
    OPTIONS_END,
};

static an_status check_graph(const an_model_opening *o, const char *file) {
    an_graph_info info;
    an_graph_info_init(&info, sizeof info);
    AN_TRY_RETURN(an_graph_info_get(*o->graph, &info));
    if (!info.has_loss)
        return AN_ERROR(
            o->ctx, AN_ERR_ARGUMENT,
            "%s: %s has no loss, so it cannot be trained; end it with a line such as 'loss %%9 targets %%y'",
            an_config_place(o->config, "model.graph"), file);
    if (!info.has_targets)
        return AN_ERROR(o->ctx, AN_ERR_ARGUMENT,
                        "%s: the loss of %s does not name its targets; write 'loss %%9 targets %%y'",
                        an_config_place(o->config, "model.graph"), file);
    return AN_OK;
}

static an_status open_model(an_model_opening *o) {
    an_status status;
    an_context *ctx = o->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    const char *file;
    char *bytes = NULL;
    size_t size = 0, capacity = 0;
    AN_TRY(an_config_path(o->config, "model.graph", &file));
    status = an_reader_load(ctx, file, &bytes, &size, &capacity, note);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s: %s", an_config_place(o->config, "model.graph"), text);
    status = an_graph_parse(o->graph, ctx, bytes, size);
    if (status != AN_OK)
        AN_FAIL(ctx, status, "%s: %s:%s", an_config_place(o->config, "model.graph"), file, ctx->error.message);
    AN_TRY(check_graph(o, file));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&bytes, capacity, 1);
    return status;
}

const an_model_kind an_model_kind_graph = {
    .kind = {.name = "graph", .options = options},
    .open = open_model,
    .no_scale = "a graph from a file says itself what it does with its inputs",
};
