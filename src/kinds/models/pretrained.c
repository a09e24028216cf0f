/* model.from: published models. A run that resumes, or one that begins with the weights of a checkpoint, can take
 * the graph from there, so it no longer needs the folder. */
#include "anneal/pretrained.h"

#include <string.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "kinds/models/models.h"
#include "kinds/models/rows.h"

static const an_option rows[] = {
    OPTION_AT(
        20, "model.from", INPUT, REQUIRED, "", ANY, FREE("the model and its weights are in the checkpoint"), DERIVED,
        "published model: a folder as Hugging Face has it, or a GGUF file; architecture, sizes and weights come from "
        "there; model.type can then be left out"),
    OPTION_AT(
        110, "model.classes", COUNT, "auto", "auto", FROM(2), FIXED(MODEL), INTO(IN(an_pretrained_options, classes)),
        "number of target classes of a BERT; auto is as many as its classifier has, or those of the data if it has "
        "none or they are more"),
    OPTION_AT(
        310, "model.pooling", CHOICE, "auto", "auto|pooler|mean|first", ANY, FIXED(MODEL),
        INTO(IN(an_pretrained_options, pooling)),
        "what the classifier of a BERT reads, as with model.type bert; auto is what the folder says (1_Pooling), or "
        "else the pooler"),
    OPTION_AT(
        340, "model.context", COUNT, "1024", "", FROM(2), FIXED(MODEL), DERIVED,
        "most tokens in a sample; same as GPT-2. Unless it is given, a model that takes fewer has its own number"),
    OPTION_AT(420, "model.dropout", REAL, "auto", "auto", BELOW(0, 1), FIXED(MODEL),
              INTO(IN(an_pretrained_options, dropout)),
              "share of activations to drop, in a BERT or GPT-2; auto is what config.json of a BERT says, and none in "
              "others"),
    OPTIONS_END,
};

static an_status open_saved(an_model_opening *o, const char *path) {
    an_status status;
    an_context *ctx = o->ctx;
    an_checkpoint *checkpoint = NULL;
    char *text = NULL;
    AN_TRY(an_checkpoint_open(&checkpoint, ctx, path));
    AN_TRY(an_checkpoint_text(checkpoint, "graph.ang", &text));
    AN_TRY(an_graph_parse(o->graph, ctx, text, strlen(text)));
fail:
    an_string_release(ctx, &text);
    an_checkpoint_close(&checkpoint);
    return status;
}

/* Whether the config asks for so many tokens. The default may be more than the model takes; a checkpoint's
 * config has it in writing. */
static bool asks_for_context(an_config *config) {
    return an_config_origin_of(config, "model.context") != AN_ORIGIN_DEFAULT &&
           !an_config_is(config, "model.context", "1024");
}

an_status an_model_context(an_config *config, an_context *ctx, int64_t *context) {
    an_pretrained *p = NULL;
    an_pretrained_info info;
    const char *path;
    AN_TRY_RETURN(an_config_count(config, "model.context", context));
    if (!an_key_is_there(config, "model.from") || asks_for_context(config)) return AN_OK;
    an_pretrained_info_init(&info, sizeof info);
    AN_TRY_RETURN(an_config_path(config, "model.from", &path));
    /* What is wrong with the folder is said when the model is built; a run that resumes may no longer have it. */
    if (an_pretrained_open(&p, ctx, path) == AN_OK && an_pretrained_info_get(p, &info) == AN_OK)
        *context = info.context < *context ? info.context : *context;
    an_pretrained_close(&p);
    return AN_OK;
}

static an_status check_sizes(const an_model_opening *o, const an_pretrained *p) {
    an_context *ctx = o->ctx;
    an_pretrained_info info;
    an_pretrained_info_init(&info, sizeof info);
    int64_t context, vocabulary = 0;
    AN_TRY_RETURN(an_pretrained_info_get(p, &info));
    AN_TRY_RETURN(an_config_count(o->config, "model.context", &context));
    if (context > info.context && asks_for_context(o->config))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: model.context is %lld, but the model of %s takes at most %lld tokens; set model.context "
                        "to %lld or less",
                        an_config_place(o->config, "model.context"), (long long)context, info.path,
                        (long long)info.context, (long long)info.context);
    if (o->dataset) AN_TRY_RETURN(an_dataset_vocabulary(o->dataset, &vocabulary));
    if (vocabulary > info.vocabulary)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT, "%s: the data has %lld different tokens, but the model of %s knows only %lld",
            an_config_place(o->config, "model.from"), (long long)vocabulary, info.path, (long long)info.vocabulary);
    return AN_OK;
}

/* Classes, pooling and dropout: what the config leaves open, the folder says. Data may have more
 * classes than its classifier. */
static an_status choose_head(an_model_opening *o, const an_pretrained *p, an_pretrained_options *options) {
    an_pretrained_info info;
    an_pretrained_info_init(&info, sizeof info);
    AN_TRY_RETURN(an_pretrained_info_get(p, &info));
    options->dropout = info.dropout;
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_pretrained_options, options));
    if (!an_config_is(o->config, "model.classes", "auto")) return AN_OK;
    if (strcmp(info.family, "bert") != 0 || !o->dataset || o->targets.dtype != AN_DTYPE_I32) return AN_OK;
    AN_TRY_RETURN(an_model_classes(o));
    options->classes = o->classes > info.classes ? o->classes : 0;
    return AN_OK;
}

static an_status open_model(an_model_opening *o) {
    an_status status;
    an_context *ctx = o->ctx;
    an_pretrained *p = NULL;
    an_pretrained_options options;
    const char *path;
    /* The adapter is added to the model itself, whose folder is needed anyway: its checkpoint does not hold the
     * weights. */
    if (o->checkpoint && !an_model_adapts(o->config)) return open_saved(o, o->checkpoint);
    an_pretrained_options_init(&options, sizeof options);
    options.dtype = o->dtype;
    options.documents = an_model_keeps_documents_apart(o);
    AN_TRY(an_config_path(o->config, "model.from", &path));
    /* as 'anneal eval' opens a run */
    if (access(path, F_OK) != 0 && an_key_is_there(o->config, "model.init.from")) {
        const char *saved;
        AN_TRY(an_config_path(o->config, "model.init.from", &saved));
        if (open_saved(o, saved) == AN_OK) return AN_OK;
    }
    status = an_pretrained_open(&p, ctx, path);
    if (status == AN_OK) status = choose_head(o, p, &options);
    if (status == AN_OK) status = an_pretrained_graph(p, o->graph, &options);
    if (status != AN_OK)
        AN_FAIL(ctx, status, "%s: model.from: %s", an_config_place(o->config, "model.from"), an_last_error(ctx));
    AN_TRY(check_sizes(o, p));
fail:
    an_pretrained_close(&p);
    return status;
}

const an_model_kind an_model_kind_pretrained = {
    .kind = {.name = "pretrained", .options = rows, .samples = AN_GIVES_TOKENS | AN_GIVES_SENTENCES},
    .open = open_model,
    .no_scale = AN_TOKENS_HAVE_NO_SCALE,
};
