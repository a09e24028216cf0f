/* A checkpoint for PyTorch: a folder with its weights and the model's code. */
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "interchange/exporter.h"
#include "interchange/model_nodes.h"
#include "interchange/torch_text.h"
#include "store/inspect.h"

static an_status write_model(const an_checkpoint *c, const char *file) {
    an_status status;
    an_context *ctx = c->ctx;
    an_graph *graph = NULL;
    an_text text;
    char *form = NULL, title[128], message[1024] = "";
    const an_note note = {message, sizeof message};
    an_text_init(&text, ctx);
    AN_TRY(an_checkpoint_text(c, "graph.ang", &form));
    AN_TRY(an_graph_parse(&graph, ctx, form, strlen(form)));
    AN_TRY(an_graph_verify(graph));
    AN_CHECK(ctx, !an_graph_has_blocks(graph), AN_ERR_UNSUPPORTED, "%s: has weights of q8_0, which PyTorch cannot read",
             c->path);
    snprintf(title, sizeof title, "The model of a run after step %lld, written by anneal %s.",
             (long long)c->manifest->step, an_version());
    AN_TRY(an_torch_write(&text, graph, title));
    AN_TRY(an_note_raise(ctx, an_file_replace(file, text.bytes, text.length, note), note));
    status = AN_OK;
fail:
    an_text_destroy(&text);
    an_graph_destroy(&graph);
    an_string_release(ctx, &form);
    return status;
}

/* What the model's inputs and classes mean. */
static an_status write_encoding(const an_checkpoint *c, const char *file) {
    an_context *ctx = c->ctx;
    char *text = NULL, message[1024] = "";
    const an_note note = {message, sizeof message};
    if (an_manifest_find_file(c->manifest, "encoding.json") < 0) return AN_OK;
    AN_TRY_RETURN(an_checkpoint_text(c, "encoding.json", &text));
    const an_status status = an_note_raise(ctx, an_file_replace(file, text, strlen(text), note), note);
    an_string_release(ctx, &text);
    return status;
}

/* The code first: it says whether PyTorch can do this at all. */
static an_status write_code(const an_checkpoint *checkpoint, const char *folder, const an_export_options *options) {
    (void)options;
    an_status status;
    an_context *ctx = checkpoint->ctx;
    char code[AN_FILE_PATH], weights[AN_FILE_PATH], encoding[AN_FILE_PATH], message[1024] = "";
    const an_note note = {message, sizeof message};
    AN_CHECK(ctx, checkpoint->manifest, AN_ERR_UNSUPPORTED,
             "%s: has only tensors; to write the code of a model, give a run or a checkpoint, which has its graph",
             checkpoint->path);
    AN_CHECK(ctx, checkpoint->manifest->adapter.adapter.rank == 0, AN_ERR_UNSUPPORTED,
             "%s: has an adapter, and not the model that it changes: export the merged model instead",
             checkpoint->path);
    AN_CHECK(ctx,
             an_path_join(code, folder, "model.py") && an_path_join(weights, folder, "model.safetensors") &&
                 an_path_join(encoding, folder, "encoding.json"),
             AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    AN_TRY(an_note_raise(ctx, an_folders_make(folder, note), note));
    AN_TRY(write_model(checkpoint, code));
    AN_TRY(an_export_write(checkpoint, weights, NULL));
    AN_TRY(write_encoding(checkpoint, encoding));
    status = AN_OK;
fail:
    return status;
}

const an_exporter an_exporter_torch = {.name = "torch", .write = write_code};
