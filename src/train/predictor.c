/* Prediction on a copy of a trainer's weights, in a context of its own: so predictors of different threads never meet. */
#include <stdio.h>
#include <string.h>

#include "ops/sink.h"
#include "ops/source.h"
#include "train/trainer.h"

struct an_predictor {
    an_context *ctx;   /* its own */
    an_context *owner; /* that its struct is from */
    an_graph *graph;
    an_params *params;
    an_plan *plan;
    an_program *program;
    const char *input, *output, *batch; /* names in the graph's memory */
    int64_t most, bound, input_elements, output_elements;
    an_array in, out;
};

/* ---- making one ---- */

/* The same model in the predictor's context. */
static an_status copy_graph(an_predictor *p, const an_trainer *t) {
    an_status status;
    an_context *ctx = t->ctx;
    char *text = NULL;
    AN_TRY(an_graph_print(t->graph, &text));
    status = an_graph_parse(&p->graph, p->ctx, text, strlen(text));
    if (status == AN_OK) status = an_graph_verify(p->graph);
    if (status != AN_OK) status = AN_ERROR(ctx, status, "%s", an_last_error(p->ctx));
fail:
    an_string_release(ctx, &text);
    return status;
}

static an_status make_plan(an_predictor *p, const an_trainer *t) {
    const char *symbols[AN_MAX_FEED_SYMBOLS + 1];
    int64_t maxima[AN_MAX_FEED_SYMBOLS + 1];
    an_plan_options plan = AN_INIT(plan);
    symbols[0] = t->feed.batch;
    maxima[0] = p->most;
    plan.symbol_count = t->feed.symbol_count + 1;
    for (int i = 0; i < t->feed.symbol_count; i++) {
        symbols[i + 1] = t->feed.symbols[i];
        maxima[i + 1] = t->feed.values[i];
    }
    plan.symbols = symbols;
    plan.maxima = maxima;
    plan.moments = -1;
    plan.precision = t->plan->low;
    plan.programs = AN_PROGRAM_PREDICTION;
    return an_plan_create(&p->plan, p->ctx, p->graph, &plan);
}

/* The one input that prediction reads, and the output that is wanted. */
static an_status find_ends(an_predictor *p, const char *output) {
    an_context *ctx = p->ctx;
    const an_program_form *form = &p->program->forms[AN_FORM_PREDICT];
    an_tensor t;
    const an_result *input = NULL, *result = NULL;
    for (size_t i = 0; i < form->sized.source_count; i++) {
        const an_result *r = &form->sized.sources[i]->outputs[0];
        if (r->storage != AN_STORAGE_INPUT || !r->first_use) continue;
        if (input) return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "prediction of this model reads several inputs");
        input = r;
        p->input = ((const an_input_attributes *)r->node->attributes)->name;
    }
    for (size_t i = 0; i < form->tables.outputs && !result; i++)
        if (!output || !strcmp(form->outputs[i].name, output)) {
            result = form->outputs[i].result;
            p->output = form->outputs[i].name;
        }
    if (!input || !result)
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "prediction of this model has no %s%s%s%s", input ? "output" : "input",
                        input && output ? " '" : "", input && output ? output : "", input && output ? "'" : "");
    if (!an_result_tensor(&form->sized, input, &t))
        return AN_ERROR(ctx, AN_ERR_SHAPE, "the sizes of '%s' are not known", p->input);
    p->in = (an_array){.size = sizeof p->in, .dtype = t.dtype, .ndims = t.ndims};
    memcpy(p->in.dims, t.dims, sizeof p->in.dims);
    if (!an_result_tensor(&form->sized, result, &t))
        return AN_ERROR(ctx, AN_ERR_SHAPE, "the sizes of '%s' are not known", p->output);
    p->out = (an_array){.size = sizeof p->out, .dtype = t.dtype, .ndims = t.ndims};
    memcpy(p->out.dims, t.dims, sizeof p->out.dims);
    p->input_elements = p->output_elements = 1;
    for (int d = 1; d < p->in.ndims; d++) p->input_elements *= p->in.dims[d];
    for (int d = 1; d < p->out.ndims; d++) p->output_elements *= p->out.dims[d];
    return AN_OK;
}

static an_status bind(an_predictor *p, const an_trainer *t) {
    an_context *ctx = p->ctx;
    AN_TRY_RETURN(an_program_bind(p->program, t->feed.batch, p->most));
    for (int i = 0; i < t->feed.symbol_count; i++)
        AN_TRY_RETURN(an_program_bind(p->program, t->feed.symbols[i], t->feed.values[i]));
    p->bound = p->most;
    for (int i = 0; an_graph_symbol_name(p->graph, i); i++)
        if (!strcmp(an_graph_symbol_name(p->graph, i), t->feed.batch)) p->batch = an_graph_symbol_name(p->graph, i);
    return AN_OK;
}

static an_status fill(an_predictor *p, const an_trainer *t, const char *output) {
    an_context *ctx = p->ctx;
    an_params_options params = AN_INIT(params);
    params.without_gradients = true;
    AN_TRY_RETURN(an_params_create(&p->params, ctx, p->graph, &params));
    AN_TRY_RETURN(make_plan(p, t));
    AN_TRY_RETURN(an_program_create(&p->program, p->plan, p->params));
    AN_TRY_RETURN(bind(p, t));
    return find_ends(p, output);
}

an_status an_predictor_create(an_predictor **predictor, an_trainer *trainer, const an_predictor_options *options) {
    an_status status;
    an_context *ctx = trainer->ctx;
    an_predictor *p = NULL;
    an_context_options own = AN_INIT(own);
    const an_predictor_options defaults = AN_INIT(defaults);
    if (!options) options = &defaults;
    *predictor = NULL;
    AN_CHECK(ctx, options->size >= sizeof *options, AN_ERR_ARGUMENT,
             "an_predictor_options has size %zu: set it with AN_INIT", options->size);
    AN_CHECK(ctx, options->most >= 0 && options->threads >= 0, AN_ERR_ARGUMENT,
             "a predictor of %lld samples on %d threads", (long long)options->most, options->threads);
    AN_TRY(an_alloc(ctx, (void **)&p, 1, sizeof *p));
    p->owner = ctx;
    p->most = options->most ? options->most : 1;
    own.threads = options->threads ? options->threads : an_context_threads(ctx);
    own.isa = an_context_isa(ctx);
    own.allocator = &ctx->allocator;
    own.device = ctx->device;
    status = an_context_create(&p->ctx, &own);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s", an_last_error(NULL));
    AN_TRY(copy_graph(p, trainer));
    status = fill(p, trainer, options->output);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s", an_last_error(p->ctx));
    AN_TRY(an_predictor_refresh(p, trainer));
    *predictor = p;
    return AN_OK;
fail:
    an_predictor_destroy(&p);
    return status;
}

void an_predictor_destroy(an_predictor **predictor) {
    an_predictor *p = predictor ? *predictor : NULL;
    if (!p) return;
    an_context *owner = p->owner;
    an_program_destroy(&p->program);
    an_plan_destroy(&p->plan);
    an_params_destroy(&p->params);
    an_graph_destroy(&p->graph);
    an_context_destroy(&p->ctx);
    an_release(owner, (void **)predictor, 1, sizeof *p);
}

an_status an_predictor_refresh(an_predictor *predictor, const an_trainer *trainer) {
    const an_params *from = trainer->params;
    an_params *to = predictor->params;
    an_context *ctx = trainer->ctx;
    const an_device *device = to->device;
    const struct {
        void *to;
        const void *from;
        int64_t bytes, expected;
    } parts[] = {
        {to->masters, from->masters, an_params_flat_bytes(&to->sizes), an_params_flat_bytes(&from->sizes)},
        {to->frozen, from->frozen, to->sizes.frozen_bytes, from->sizes.frozen_bytes},
        {to->states, from->states, to->sizes.state_bytes, from->sizes.state_bytes},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].bytes != parts[i].expected)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the trainer has another model than the predictor");
        if (parts[i].bytes)
            AN_TRY_RETURN(
                device->copy(device, ctx, parts[i].to, parts[i].from, (size_t)parts[i].bytes, AN_COPY_ON_DEVICE));
    }
    to->version++;
    return device->synchronize(device, ctx);
}

/* ---- asking it ---- */

int64_t an_predictor_input_elements(const an_predictor *predictor) {
    return predictor->input_elements;
}

int64_t an_predictor_output_elements(const an_predictor *predictor) {
    return predictor->output_elements;
}

an_dtype an_predictor_dtype(const an_predictor *predictor) {
    return predictor->in.dtype;
}

const char *an_predictor_error(const an_predictor *predictor) {
    return an_last_error(predictor->ctx);
}

static an_status run(an_predictor *p, int64_t n, an_dtype dtype, const void *inputs, void *outputs) {
    an_context *ctx = p->ctx;
    if (dtype != p->in.dtype || dtype != p->out.dtype)
        return AN_ERROR(ctx, AN_ERR_DTYPE, "the model reads %s and gives %s; it was asked with %s",
                        an_dtype_name(p->in.dtype), an_dtype_name(p->out.dtype), an_dtype_name(dtype));
    if (n < 1 || n > p->most)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%lld samples, but the predictor was made for 1 to %lld", (long long)n,
                        (long long)p->most);
    if (n != p->bound) AN_TRY_RETURN(an_program_bind(p->program, p->batch, n));
    p->bound = n;
    p->in.dims[0] = p->out.dims[0] = n;
    p->in.data = (void *)(uintptr_t)inputs; /* read only */
    p->out.data = outputs;
    AN_TRY_RETURN(an_program_set_input(p->program, p->input, &p->in));
    AN_TRY_RETURN(an_program_run(p->program, AN_FORM_PREDICT));
    return an_program_get_output(p->program, p->output, &p->out);
}

an_status an_predictor_run_f32(an_predictor *predictor, int64_t n, const float *inputs, float *outputs) {
    return run(predictor, n, AN_DTYPE_F32, inputs, outputs);
}

an_status an_predictor_run_f64(an_predictor *predictor, int64_t n, const double *inputs, double *outputs) {
    return run(predictor, n, AN_DTYPE_F64, inputs, outputs);
}
