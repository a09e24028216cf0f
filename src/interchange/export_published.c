/* Exports of language models for other programs: what the model is, where its weights and its tokenizer come from.
 * interchange/publish.h writes them. */
#include <stdio.h>
#include <string.h>

#include "anneal/data.h"
#include "base/files/file.h"
#include "base/word.h"
#include "formats/gguf_keys.h"
#include "interchange/export_file.h"
#include "interchange/exporter.h"
#include "interchange/merge.h"
#include "interchange/model_facts.h"
#include "interchange/publish.h"
#include "ir/adapter.h"
#include "pretrained/joints.h"
#include "pretrained/weights.h"
#include "store/open_weights.h"

typedef struct {
    const an_checkpoint *checkpoint;
    an_context *ctx;
    an_export_options options;
    const char *from;         /* the published model; NULL: there is none */
    an_pretrained *published; /* … opened */
    an_description *own;      /* of the checkpoint's graph, if there is none */
    an_description *description;
    an_graph *saved; /* of the checkpoint */
    an_graph *graph; /* of the description */
    an_merge merge;
    an_weights weights;
    an_encoding *encoding; /* of the run's data; NULL: there is none */
    an_arena names;
    const char **labels; /* of a run's classes; NULL: as they were */
    int64_t classes;
    bool new_head; /* the run has made a classifier of what was none */
} exporting;

/* ---- what the model is ---- */

static bool is_published(const char *path) {
    char file[AN_FILE_PATH];
    return an_gguf_is(path) || (an_path_join(file, path, "config.json") && an_file_exists(file));
}

static an_status read_graph(exporting *e) {
    an_status status;
    an_context *ctx = e->ctx;
    char *text = NULL;
    AN_TRY(an_checkpoint_text(e->checkpoint, "graph.ang", &text));
    AN_TRY(an_graph_parse(&e->saved, ctx, text, strlen(text)));
    status = AN_OK;
fail:
    an_string_release(ctx, &text);
    return status;
}

static const an_result *find_parameter(const an_graph *g, const char *name) {
    for (size_t i = 0; i < g->parameter_count; i++)
        if (!strcmp(g->parameters[i].name, name)) return an_node_output(g->parameters[i].node, 0);
    return NULL;
}

static an_status describe_graph(exporting *e) {
    an_context *ctx = e->ctx;
    const an_checkpoint *c = e->checkpoint;
    const an_saved_size *tokens = an_prediction_size(&c->manifest->prediction, "tokens");
    an_model_facts facts;
    char names[256];
    an_model_facts_of(&facts, e->saved);
    bool has[AN_FACTS];
    for (int i = 0; i < AN_FACTS; i++) has[i] = facts.facts[i].known && facts.facts[i].value != 0;
    const an_family *family = an_family_of_model(e->saved, has);
    if (!family)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: its model is of no family that other programs know (%s); export it with --to onnx or "
                        "--to torch, or its weights with --to NAME.safetensors",
                        c->path, an_family_list(names, sizeof names, false));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&e->own, 1, sizeof *e->own));
    AN_TRY_RETURN(an_description_begin(e->own, ctx, c->path));
    e->own->family = family;
    for (int i = 0; i < AN_FACTS; i++) {
        if (facts.facts[i].varies)
            return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                            "%s: the layers of its model differ, and a model of type %s has equal ones; export it with "
                            "--to onnx or --to torch",
                            c->path, family->name);
        if (facts.facts[i].known) an_description_state(e->own, (an_fact)i, facts.facts[i].value);
    }
    const an_result *positions = find_parameter(e->saved, "embeddings.position_embeddings.weight");
    if (tokens) an_description_state(e->own, AN_FACT_CONTEXT, (double)tokens->value);
    if (positions) an_description_state(e->own, AN_FACT_CONTEXT, (double)positions->dims[0]);
    e->description = e->own;
    return AN_OK;
}

/* The run may have changed the model: then its config.json would describe another. */
static an_status compare_graph(const exporting *e) {
    const double rounding = 1e-6; /* f32 in GGUF */
    an_model_facts facts;
    an_model_facts_of(&facts, e->saved);
    for (int i = 0; i < AN_FACTS; i++) {
        const double ours = facts.facts[i].value, theirs = e->description->facts[i].value,
                     difference = ours < theirs ? theirs - ours : ours - theirs;
        if (!facts.facts[i].known || !e->description->facts[i].known) continue;
        if (facts.facts[i].varies || difference > rounding * (ours < 0 ? -ours : ours))
            return AN_ERROR(e->ctx, AN_ERR_UNSUPPORTED,
                            "%s: its model is not the one that %s describes; export it with --to onnx or --to torch",
                            e->checkpoint->path, e->from);
    }
    return AN_OK;
}

/* What the run's data calls a class, or what transformers would. */
static an_status name_classes(exporting *e) {
    enum { NAME = 32 };
    AN_TRY_RETURN(an_arena_alloc(&e->names, (void **)&e->labels, (size_t)e->classes, sizeof *e->labels));
    for (int64_t i = 0; i < e->classes; i++) {
        char *name = NULL;
        e->labels[i] = e->encoding ? an_encoding_class(e->encoding, i) : NULL;
        if (e->labels[i]) continue;
        AN_TRY_RETURN(an_arena_alloc(&e->names, (void **)&name, NAME, 1));
        snprintf(name, NAME, "LABEL_%lld", (long long)i);
        e->labels[i] = name;
    }
    return AN_OK;
}

/* A run may have given the model another classifier: then it is described with that. */
static an_status take_classifier(exporting *e) {
    an_status status = AN_OK;
    an_context *ctx = e->ctx;
    const an_checkpoint *c = e->checkpoint;
    const char *class = e->description->family->classifier;
    const an_result *weight = find_parameter(e->saved, "classifier.weight");
    char *text = NULL;
    if (!class || !weight || weight->ndims != 2) return AN_OK;
    if (!find_parameter(e->saved, "pooler.dense.weight"))
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: its classifier takes the mean of the tokens or the first one as it is, and %s of "
                        "transformers has a pooler: train it with model.pooling: pooler, or export it with --to onnx "
                        "or --to torch",
                        c->path, class);
    if (an_manifest_find_file(c->manifest, "encoding.json") >= 0) {
        AN_TRY(an_checkpoint_text(c, "encoding.json", &text));
        AN_TRY(an_encoding_parse(&e->encoding, ctx, text, strlen(text)));
    }
    const double before = an_description_fact(e->description, AN_FACT_CLASSES);
    e->classes = weight->dims[0];
    e->new_head = before == 0;
    an_description_state(e->description, AN_FACT_CLASSES, (double)e->classes);
    an_description_state(e->description, AN_FACT_POOLING, 1 + AN_BERT_POOLING_POOLER);
    if (before != (double)e->classes || (e->encoding && an_encoding_class(e->encoding, 0))) AN_TRY(name_classes(e));
fail:
    an_string_release(ctx, &text);
    return status;
}

static an_status find_model(exporting *e) {
    an_context *ctx = e->ctx;
    const an_checkpoint *c = e->checkpoint;
    an_pretrained_options options;
    an_pretrained_options_init(&options, sizeof options);
    e->from = e->options.from;
    if (!c->manifest) e->from = c->path;
    if (c->manifest) AN_TRY_RETURN(read_graph(e));
    const char *base = c->manifest ? c->manifest->adapter.base : NULL;
    if (!e->from && base && is_published(base)) e->from = base;
    if (e->from) {
        AN_TRY_RETURN(an_pretrained_open(&e->published, ctx, e->from));
        e->description = an_pretrained_description_changed(e->published);
        if (c->manifest) AN_TRY_RETURN(compare_graph(e));
    } else {
        AN_TRY_RETURN(describe_graph(e));
    }
    if (c->manifest) AN_TRY_RETURN(take_classifier(e));
    return e->description->family->build(&e->graph, e->description, &options);
}

/* ---- its weights ---- */

static an_status open_weights(exporting *e) {
    an_context *ctx = e->ctx;
    const an_checkpoint *c = e->checkpoint;
    const bool adapted = c->manifest && c->manifest->adapter.adapter.rank > 0;
    if (adapted) AN_TRY_RETURN(an_merge_begin(&e->merge, c));
    const char *path = adapted ? c->manifest->adapter.base : c->path;
    AN_TRY_RETURN(an_weights_open(&e->weights, ctx, path, adapted ? AN_MODEL_WEIGHTS_AUTO : c->chosen));
    if (an_weights_gguf(&e->weights)) AN_TRY_RETURN(an_weights_rename_gguf(&e->weights, path));
    if (adapted) AN_TRY_RETURN(an_weights_add_trained(&e->weights, &e->merge));
    AN_TRY_RETURN(an_model_weights_view(&e->weights, e->graph, path, !c->manifest));
    return adapted ? an_weights_merge(&e->weights, &e->merge) : AN_OK;
}

/* ---- all of it ---- */

static const an_gguf_type *type_of(an_dtype dtype) {
    static const char *const names[] = {
        [AN_DTYPE_NONE] = "F32", [AN_DTYPE_F32] = "F32",   [AN_DTYPE_BF16] = "BF16",
        [AN_DTYPE_F16] = "F16",  [AN_DTYPE_Q8_0] = "Q8_0",
    };
    return an_gguf_type_named(names[dtype]);
}

static an_status find_tokenizer(const exporting *e, const char **path) {
    an_context *ctx = e->ctx;
    char file[AN_FILE_PATH];
    an_gguf *gguf = NULL;
    *path = e->options.tokenizer;
    if (*path || !e->from) return AN_OK;
    if (an_gguf_is(e->from)) {
        AN_TRY_RETURN(an_gguf_open(&gguf, ctx, e->from));
        if (an_gguf_find(gguf, "tokenizer.ggml.tokens")) *path = e->from; /* its model may be no_vocab */
        an_gguf_close(&gguf);
    } else if (an_path_join(file, e->from, "tokenizer.json") && an_file_exists(file)) {
        *path = e->from;
    }
    return AN_OK;
}

static an_status export_model(exporting *e, const char *to,
                              an_status (*write)(const an_publication *publication, const char *to)) {
    an_context *ctx = e->ctx;
    const an_export_options *o = &e->options;
    an_publication p = {.ctx = ctx, .weights = &e->weights, .type = type_of(o->dtype), .max_bytes = o->max_bytes};
    AN_TRY_RETURN(find_model(e));
    AN_TRY_RETURN(open_weights(e));
    p.description = e->description;
    p.labels = e->labels;
    p.label_count = e->classes;
    p.new_head = e->new_head;
    p.from = e->from;
    AN_TRY_RETURN(find_tokenizer(e, &p.tokenizer));
    return write(&p, to);
}

static an_status export_checkpoint(const an_checkpoint *checkpoint, const char *to, const an_export_options *options,
                                   an_status (*write)(const an_publication *publication, const char *to)) {
    an_status status;
    an_context *ctx = checkpoint->ctx;
    exporting *e = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&e, 1, sizeof *e));
    e->checkpoint = checkpoint;
    e->ctx = ctx;
    an_arena_init(&e->names, ctx);
    e->options = *options;
    AN_TRY(export_model(e, to, write));
    status = AN_OK;
fail:
    if (e->weights.close) an_weights_close(&e->weights);
    an_merge_end(&e->merge);
    an_encoding_destroy(&e->encoding);
    an_arena_destroy(&e->names);
    an_graph_destroy(&e->graph);
    an_graph_destroy(&e->saved);
    if (e->own) an_description_destroy(e->own);
    an_release(ctx, (void **)&e->own, 1, sizeof *e->own);
    an_pretrained_close(&e->published);
    an_release(ctx, (void **)&e, 1, sizeof *e);
    return status;
}

static an_status write_folder(const an_checkpoint *checkpoint, const char *path, const an_export_options *options) {
    return export_checkpoint(checkpoint, path, options, an_publish_folder);
}

static an_status write_gguf(const an_checkpoint *checkpoint, const char *path, const an_export_options *options) {
    return export_checkpoint(checkpoint, path, options, an_publish_gguf);
}

const an_exporter an_exporter_huggingface = {.name = "huggingface", .write = write_folder, .converts = true};
const an_exporter an_exporter_gguf = {.name = "gguf", .write = write_gguf, .converts = true};

/* PEFT has one adapter for a tensor, and the model here one for each layer in it. */
static an_status check_adapted(const an_checkpoint *c, const an_family *family) {
    const an_manifest *m = c->manifest;
    char layer[AN_LAYER_NAME], tensor[AN_LAYER_NAME];
    for (size_t i = 0; i < m->tensor_count; i++) {
        const char *name = m->tensors[i].name;
        if (!an_ends_in(name, AN_ADAPTER_FIRST)) continue;
        snprintf(layer, sizeof layer, "%.*s.weight", (int)(strlen(name) - strlen(AN_ADAPTER_FIRST)), name);
        if (an_joint_find(family, layer, tensor) >= 0)
            return AN_ERROR(c->ctx, AN_ERR_UNSUPPORTED,
                            "%s: its adapter changes '%s', which a model of type %s has in '%s' with other layers, and "
                            "PEFT has one adapter for all of them; merge it with --to hf FOLDER or with "
                            "--to NAME.safetensors --merge",
                            c->path, layer, family->name, tensor);
    }
    return AN_OK;
}

static an_status write_adapter(const an_checkpoint *checkpoint, const char *folder, const an_export_options *options) {
    (void)options;
    an_status status = AN_OK;
    an_context *ctx = checkpoint->ctx;
    an_pretrained *published = NULL;
    const char *base = checkpoint->manifest ? checkpoint->manifest->adapter.base : NULL;
    /* nothing is known of a base that is gone, or of no family */
    if (base && is_published(base) && an_pretrained_open(&published, ctx, base) == AN_OK)
        status = check_adapted(checkpoint, an_pretrained_description(published)->family);
    an_pretrained_close(&published);
    return status == AN_OK ? an_export_adapter(checkpoint, folder) : status;
}

const an_exporter an_exporter_adapter = {.name = "adapter", .write = write_adapter};
