/* A predictor from a checkpoint: its graph and its weights are read, and neither data, config nor moments. Or from a
 * published model, which says what its graph is. */
#include <string.h>

#include "anneal/pretrained.h"
#include "base/files/file.h"
#include "base/guard.h"
#include "exec/plan.h"
#include "formats/gguf.h"
#include "interchange/load_model.h"
#include "predict/predictor.h"
#include "predict/structs.h"
#include "store/chosen_weights.h"
#include "store/inspect.h"
#include "store/load.h"

/* ---- sizes ---- */

static const int64_t *find_given(const an_predictor_options *options, const char *symbol) {
    for (int i = 0; i < options->symbol_count; i++)
        if (!strcmp(options->symbols[i], symbol)) return &options->sizes[i];
    return NULL;
}

static an_status check_given(an_context *ctx, const an_graph *graph, const char *batch,
                             const an_predictor_options *options) {
    const int count = options->symbol_count;
    if (count < 0 || (count > 0 && (!options->symbols || !options->sizes)))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "symbol_count is %d, but it is below 0, or symbols or sizes is NULL",
                        count);
    for (int i = 0; i < count; i++) {
        const char *symbol = options->symbols[i], *name = NULL;
        if (!symbol) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "symbols[%d] is NULL", i);
        if (!strcmp(symbol, batch))
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the symbol '%s' is the number of samples: its option is 'most'",
                            symbol);
        for (int k = 0; (name = an_graph_symbol_name(graph, k)) && strcmp(name, symbol) != 0;) k++;
        if (!name) return AN_ERROR(ctx, AN_ERR_UNKNOWN, "the model has no symbol '%s'", symbol);
        if (options->sizes[i] < 1)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the size of the symbol '%s' is %lld; it must be 1 or more", symbol,
                            (long long)options->sizes[i]);
    }
    return AN_OK;
}

/* What the caller gives goes before what was saved: a predictor may be for shorter sequences. */
static an_status take_sizes(an_predictor_model *model, const an_checkpoint *c, const an_graph *graph,
                            const an_predictor_options *options) {
    an_context *ctx = c->ctx;
    const char *name;
    AN_TRY_RETURN(check_given(ctx, graph, model->batch, options));
    for (int i = 0; (name = an_graph_symbol_name(graph, i)); i++) {
        if (!strcmp(name, model->batch)) continue;
        const int64_t *given = find_given(options, name);
        const an_saved_size *saved = an_prediction_size(&c->manifest->prediction, name);
        if (!given && !saved)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "%s: does not say the size of the model's symbol '%s', as checkpoints of 0.1 do not: give "
                            "it in an_predictor_options, with symbols and sizes",
                            c->path, name);
        if (model->symbol_count == AN_MAX_FEED_SYMBOLS)
            return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: the model has more than %d symbols", c->path,
                            AN_MAX_FEED_SYMBOLS);
        model->symbols[model->symbol_count] = name;
        model->values[model->symbol_count++] = given ? *given : saved->value;
    }
    return AN_OK;
}

/* ---- the model ---- */

static an_status take_precision(an_predictor_model *model, const an_checkpoint *c,
                                const an_predictor_options *options) {
    const an_saved_prediction *saved = &c->manifest->prediction;
    const char *precision = c->manifest->bits.precision;
    static const an_dtype known[] = {AN_DTYPE_NONE, AN_DTYPE_BF16, AN_DTYPE_F16};
    model->f32_storage = saved->is_known ? saved->f32_storage : options->f32_storage;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(an_dtype_name(known[i]), precision)) {
            model->precision = known[i];
            return AN_OK;
        }
    return AN_ERROR(c->ctx, AN_ERR_UNSUPPORTED,
                    "%s: was trained in the precision '%s', which this version does not know", c->path, precision);
}

/* A plan for one sample, which also refuses what no predictor can be made of. */
static an_status take_work(an_predictor_model *model, const an_graph *graph) {
    an_context *ctx = graph->ctx;
    an_plan *plan = NULL;
    AN_TRY_RETURN(an_predictor_plan(&plan, ctx, graph, model, 1));
    model->work = an_predictor_work(plan->forms[AN_FORM_PREDICT], model->batch);
    an_plan_destroy(&plan);
    return AN_OK;
}

/* ---- published models ---- */

static bool is_published(const char *path) {
    char file[AN_FILE_PATH];
    return an_gguf_is(path) || (an_path_join(file, path, "config.json") && an_file_exists(file));
}

/* As long as the model's context, unless the caller says something else. */
static an_status take_published_sizes(an_predictor_model *model, const an_graph *graph, int64_t context,
                                      const an_predictor_options *options) {
    an_context *ctx = graph->ctx;
    const char *name;
    AN_TRY_RETURN(check_given(ctx, graph, model->batch, options));
    for (int i = 0; (name = an_graph_symbol_name(graph, i)) && model->symbol_count < AN_MAX_FEED_SYMBOLS; i++) {
        if (!strcmp(name, model->batch)) continue;
        const int64_t *given = find_given(options, name);
        model->symbols[model->symbol_count] = name;
        model->values[model->symbol_count++] = given ? *given : context;
    }
    return AN_OK;
}

static an_status open_published(an_opened_model *opened, const char *path, const an_predictor_options *options) {
    an_status status;
    an_context *ctx = opened->ctx;
    an_pretrained *p = NULL;
    an_pretrained_info info;
    an_pretrained_info_init(&info, sizeof info);
    opened->published = path;
    AN_TRY(an_pretrained_open(&p, ctx, path));
    AN_TRY(an_pretrained_info_get(p, &info));
    AN_CHECK(ctx, info.tensors > 0, AN_ERR_FILE, "%s: says what the model is, but has no weights", path);
    AN_TRY(an_pretrained_graph(p, &opened->graph, NULL));
    AN_TRY(an_graph_print(opened->graph, &opened->text));
    opened->model.graph = opened->text;
    AN_TRY(an_feed_find_batch(opened->graph, &opened->model.batch));
    AN_TRY(take_published_sizes(&opened->model, opened->graph, info.context, options));
    opened->model.f32_storage = options->f32_storage;
    status = AN_OK;
fail:
    an_pretrained_close(&p);
    return status;
}

/* ---- opening ---- */

void an_opened_model_close(an_opened_model *opened) {
    an_graph_destroy(&opened->graph);
    if (opened->ctx) an_string_release(opened->ctx, &opened->text);
    an_checkpoint_close(&opened->checkpoint);
}

an_status an_opened_model_open(an_opened_model *opened, an_context *ctx, const char *path,
                               const an_predictor_options *options) {
    an_status status;
    *opened = (an_opened_model){.ctx = ctx};
    if (is_published(path)) {
        status = open_published(opened, path, options);
        if (status != AN_OK) an_opened_model_close(opened);
        return status;
    }
    AN_TRY(an_checkpoint_open(&opened->checkpoint, ctx, path));
    const an_checkpoint *c = opened->checkpoint;
    AN_CHECK(ctx, c->manifest, AN_ERR_UNSUPPORTED,
             "%s: has weights, but is no checkpoint of a run, so there is no graph to predict with: make a trainer of "
             "the model that starts from these weights (model.init.from, an_trainer_load_weights), and a predictor of "
             "it with "
             "an_predictor_create",
             path);
    AN_TRY(an_checkpoint_text(c, "graph.ang", &opened->text));
    AN_TRY(an_graph_parse(&opened->graph, ctx, opened->text, strlen(opened->text)));
    AN_TRY(an_graph_verify(opened->graph));
    opened->model.graph = opened->text;
    AN_TRY(an_feed_find_batch(opened->graph, &opened->model.batch));
    AN_TRY(take_sizes(&opened->model, c, opened->graph, options));
    AN_TRY(take_precision(&opened->model, c, options));
    return AN_OK;
fail:
    an_opened_model_close(opened);
    return status;
}

/* A predictor has a context of its own, and so its messages. */
static an_status pass_on(an_context *ctx, const an_params *params, an_status status) {
    return status == AN_OK || ctx == params->ctx ? status : AN_ERROR(ctx, status, "%s", an_last_error(params->ctx));
}

an_status an_opened_model_load(const an_opened_model *opened, an_context *ctx, an_model_weights weights,
                               an_params *params, const an_graph *graph) {
    const an_checkpoint *c = opened->checkpoint;
    bool average;
    if (!c) return pass_on(ctx, params, an_weights_load(params, opened->published, AN_MODEL_WEIGHTS_AUTO));
    AN_TRY_RETURN(an_choose_weights(ctx, c->manifest, c->path, weights, &average));
    if (c->manifest->adapter.adapter.rank > 0) /* the weights that the adapter changes */
        AN_TRY_RETURN(pass_on(ctx, params, an_base_load(params, &c->manifest->adapter, c->path)));
    return an_checkpoint_load(ctx, params, graph, c->manifest, c->path, average ? AN_LOAD_AVERAGE : AN_LOAD_WEIGHTS);
}

an_status an_opened_model_convert(const an_opened_model *opened, an_context *ctx, an_model_weights weights,
                                  an_params *params) {
    const an_checkpoint *c = opened->checkpoint;
    if (c && c->manifest->adapter.adapter.rank > 0)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: has an adapter for weights that are stored as in training (lora.base); merge it first to "
                        "store them in another type",
                        c->path);
    return pass_on(ctx, params, an_weights_load(params, c ? c->path : opened->published, weights));
}

an_status an_predictor_open(an_predictor **predictor, an_context *ctx, const char *path,
                            const an_predictor_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, predictor, path);
    an_status status;
    an_opened_model opened = {0};
    an_predictor *p = NULL;
    an_predictor_options options;
    *predictor = NULL;
    AN_TRY(an_predictor_options_read(ctx, &options, given));
    AN_TRY(an_opened_model_open(&opened, ctx, path, &options));
    AN_TRY(take_work(&opened.model, opened.graph));
    AN_TRY(an_predictor_make(&p, ctx, &opened.model, &options));
    AN_TRY(an_opened_model_load(&opened, ctx, options.weights, p->params, p->graph));
    AN_TRY(an_predictor_keep_again(p, ctx));
    *predictor = p;
    p = NULL;
    status = AN_OK;
fail:
    an_predictor_destroy(&p);
    an_opened_model_close(&opened);
    return status;
}
