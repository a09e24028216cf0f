/* Prediction on a copy of the weights, in its own context, so predictors of different threads are
 * independent.
 *
 * A model with little work per sample runs on one thread, on a part of the samples at a time, so that the values
 * between its layers stay in a cache; each thread takes a part, and they synchronize once per call. Any other model
 * runs as a whole, with all threads in its kernels. A sample's result never depends on its batch, so callers cannot
 * see the difference.
 */
#include "predict/predictor.h"

#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/integer.h"
#include "base/parallel.h"
#include "exec/context.h"
#include "ops/sink.h"
#include "ops/source.h"
#include "predict/structs.h"
#include "train/trainer.h"

/* Flops of a sample that is little work (0.2 ms or so), of a call that is worth a team, and the samples of a part. */
static const double little_work = 0x1p24, team_work = 0x1p20;
enum { PART_SAMPLES = 64 };

/* A program, and what it runs on: no two lanes share anything that a run writes. */
typedef struct an_predictor_lane {
    an_context *ctx;
    an_program *program;
    int64_t bound;
    an_array in, out;
    int64_t failed_part; /* of this call, if its status says so */
    an_status status;
} lane;

/* ---- making one ---- */

an_status an_predictor_plan(an_plan **plan, an_context *ctx, const an_graph *graph, const an_predictor_model *model,
                            int64_t maximum) {
    const char *symbols[AN_MAX_FEED_SYMBOLS + 1];
    int64_t maxima[AN_MAX_FEED_SYMBOLS + 1];
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    symbols[0] = model->batch;
    maxima[0] = maximum;
    options.symbol_count = model->symbol_count + 1;
    for (int i = 0; i < model->symbol_count; i++) {
        symbols[i + 1] = model->symbols[i];
        maxima[i + 1] = model->values[i];
    }
    options.symbols = symbols;
    options.maxima = maxima;
    options.moments = 0;
    options.precision = model->precision;
    options.f32_storage = model->f32_storage;
    options.programs = AN_PROGRAM_PREDICTION;
    return an_plan_create(plan, ctx, graph, &options);
}

/* What an_predictor_run_sentences takes, in this order. */
static const char *const sentence[AN_SENTENCE_INPUTS] = {"tokens", "token_types", "mask"};

/* The one input that prediction reads, or the three of sentences; *input: the first of them; NULL: there is none. */
static an_status find_inputs(an_predictor *p, const an_program_form *form, const an_result **input) {
    int count = 0, known = 0;
    *input = NULL;
    for (size_t i = 0; i < form->sized.source_count; i++) {
        const an_result *r = &form->sized.sources[i]->outputs[0];
        if (r->storage != AN_STORAGE_INPUT || !r->first_use) continue;
        const char *name = ((const an_input_attributes *)r->node->attributes)->name;
        int which = 0;
        while (which < AN_SENTENCE_INPUTS && strcmp(sentence[which], name) != 0) which++;
        if (count++ == 0 || which == 0) {
            *input = r;
            p->inputs[0] = name;
        }
        known += which < AN_SENTENCE_INPUTS && r->dtype == AN_DTYPE_I32 && r->ndims == 2;
    }
    p->input_count = count > 1 ? AN_SENTENCE_INPUTS : 1;
    if (count <= 1) return AN_OK;
    if (count != AN_SENTENCE_INPUTS || known != count)
        return AN_ERROR(p->ctx, AN_ERR_UNSUPPORTED, "prediction with this model reads several inputs");
    memcpy(p->inputs, sentence, sizeof p->inputs);
    return AN_OK;
}

/* What goes in, and the output that is wanted. */
static an_status find_ends(an_predictor *p, lane *l, const char *output) {
    an_context *ctx = p->ctx;
    const an_program_form *form = &l->program->forms[AN_FORM_PREDICT];
    an_tensor t;
    const an_result *input = NULL, *result = NULL;
    AN_TRY_RETURN(find_inputs(p, form, &input));
    for (size_t i = 0; i < form->tables.outputs && !result; i++)
        if (!output || !strcmp(form->outputs[i].name, output)) {
            result = form->outputs[i].result;
            p->output = form->outputs[i].name;
        }
    if (!input || !result)
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "prediction with this model has no %s%s%s%s", input ? "output" : "input",
                        input && output ? " '" : "", input && output ? output : "", input && output ? "'" : "");
    if (!an_result_tensor(&form->sized, input, &t))
        return AN_ERROR(ctx, AN_ERR_SHAPE, "the sizes of '%s' are not known", p->inputs[0]);
    l->in = (an_array){.dtype = t.dtype, .ndims = t.ndims};
    memcpy(l->in.dims, t.dims, sizeof l->in.dims);
    if (!an_result_tensor(&form->sized, result, &t))
        return AN_ERROR(ctx, AN_ERR_SHAPE, "the sizes of '%s' are not known", p->output);
    l->out = (an_array){.dtype = t.dtype, .ndims = t.ndims};
    memcpy(l->out.dims, t.dims, sizeof l->out.dims);
    p->input_elements = p->output_elements = 1;
    for (int d = 1; d < l->in.ndims; d++) p->input_elements *= l->in.dims[d];
    for (int d = 1; d < l->out.ndims; d++) p->output_elements *= l->out.dims[d];
    return AN_OK;
}

static an_status bind(const an_predictor *p, lane *l, const an_predictor_model *model) {
    AN_TRY_RETURN(an_program_bind(l->program, model->batch, p->part_most));
    for (int i = 0; i < model->symbol_count; i++)
        AN_TRY_RETURN(an_program_bind(l->program, model->symbols[i], model->values[i]));
    l->bound = p->part_most;
    return AN_OK;
}

static an_status fill_lane(an_predictor *p, int index, const an_predictor_model *model, const char *output) {
    an_context *ctx = p->ctx;
    lane *l = &p->lanes[index];
    an_status status;
    l->ctx = ctx;
    if (index > 0) {
        an_context_options own;
        an_context_options_init(&own, sizeof own);
        own.threads = 1;
        own.isa = ctx->isa;
        own.allocator = &ctx->allocator;
        own.device = ctx->device;
        l->ctx = NULL;
        status = an_context_make(&l->ctx, &own);
        if (status != AN_OK) return AN_ERROR(ctx, status, "%s", an_last_error(NULL));
        an_registry_share(l->ctx, ctx);
    }
    status = an_program_create_in(&l->program, l->ctx, p->plan, p->params);
    if (status == AN_OK) status = bind(p, l, model);
    if (status != AN_OK && index > 0) return AN_ERROR(ctx, status, "%s", an_last_error(l->ctx));
    if (status != AN_OK) return status;
    AN_TRY_RETURN(find_ends(p, l, output));
    if (index > 0)
        an_program_keep_of(l->program, AN_FORM_PREDICT, p->lanes[0].program);
    else
        AN_TRY_RETURN(an_program_keep(l->program, AN_FORM_PREDICT, ctx->threads == 1));
    return AN_OK;
}

double an_predictor_work(const an_graph *form, const char *batch) {
    double flops = 0;
    for (const an_node *n = form->first; n; n = n->next)
        if (n->phase != AN_PHASE_BACKWARD && an_node_runs(n)) flops += an_node_cost(form, n).flops;
    for (size_t i = 0; i < form->dimensions.symbol_count; i++)
        if (!strcmp(form->dimensions.symbols[i].name, batch) && form->dimensions.symbols[i].value > 0)
            flops /= (double)form->dimensions.symbols[i].value;
    return flops > 1 ? flops : 1;
}

/* The same model in the predictor's context, and what runs it. */
static an_status fill(an_predictor *p, const an_predictor_model *model, const char *output) {
    an_context *ctx = p->ctx;
    an_params_options params;
    an_params_options_init(&params, sizeof params);
    params.gradients = false;
    AN_TRY_RETURN(an_graph_parse(&p->graph, ctx, model->graph, strlen(model->graph)));
    AN_TRY_RETURN(an_graph_verify(p->graph));
    AN_TRY_RETURN(an_params_create(&p->params, ctx, p->graph, &params));
    AN_TRY_RETURN(an_predictor_plan(&p->plan, ctx, p->graph, model, p->part_most));
    for (int i = 0; an_graph_symbol_name(p->graph, i); i++)
        if (!strcmp(an_graph_symbol_name(p->graph, i), model->batch)) p->batch = an_graph_symbol_name(p->graph, i);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&p->lanes, (size_t)p->lane_count, sizeof *p->lanes));
    for (int i = 0; i < p->lane_count; i++) AN_TRY_RETURN(fill_lane(p, i, model, output));
    return an_ranges_make(&p->ranges, p->params, p->input_elements);
}

static an_status make_contexts(an_predictor *p, an_context *ctx, double work, int threads) {
    an_context_options own;
    an_context_options_init(&own, sizeof own);
    const bool parts = work < little_work, team = parts && threads > 1 && work * (double)p->maximum >= team_work;
    own.isa = an_context_isa(ctx);
    own.allocator = &ctx->allocator;
    own.device = ctx->device;
    own.threads = parts ? 1 : threads;
    p->part_most = parts && p->maximum > PART_SAMPLES ? PART_SAMPLES : p->maximum;
    p->lane_count = team ? threads : 1;
    p->team_least = (int64_t)(team_work / work) + 1;
    an_status status = an_context_make(&p->ctx, &own);
    if (status == AN_OK) an_registry_share(p->ctx, ctx);
    own.threads = threads;
    if (status == AN_OK && team) status = an_context_make(&p->team, &own);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s", an_last_error(NULL));
}

an_status an_predictor_make(an_predictor **predictor, an_context *ctx, const an_predictor_model *model,
                            const an_predictor_options *options) {
    an_status status;
    an_predictor *p = NULL;
    *predictor = NULL;
    AN_CHECK(ctx, options->max_samples > 0 && options->threads >= 0, AN_ERR_ARGUMENT,
             "max_samples is %lld and threads %d; the first must be 1 or more, the second 0 or more",
             (long long)options->max_samples, options->threads);
    AN_TRY(an_alloc(ctx, (void **)&p, 1, sizeof *p));
    p->owner = ctx;
    p->maximum = options->max_samples;
    AN_TRY(make_contexts(p, ctx, model->work, options->threads ? options->threads : an_context_threads(ctx)));
    status = fill(p, model, options->output);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s", an_last_error(p->ctx));
    *predictor = p;
    return AN_OK;
fail:
    an_predictor_destroy(&p);
    return status;
}

void an_predictor_model_of(an_predictor_model *model, const an_trainer *trainer, const char *text) {
    const an_feed *feed = &trainer->samples.feed;
    *model = (an_predictor_model){.graph = text,
                                  .batch = feed->batch,
                                  .symbol_count = feed->symbol_count,
                                  .precision = trainer->precision,
                                  .f32_storage = trainer->plan->passes.f32_storage,
                                  .work = an_predictor_work(trainer->plan->forms[AN_FORM_TRAIN_FIRST], feed->batch)};
    memcpy(model->symbols, feed->symbols, sizeof model->symbols);
    memcpy(model->values, feed->values, sizeof model->values);
}

an_status an_predictor_create(an_predictor **predictor, an_trainer *trainer, const an_predictor_options *given) {
    AN_GUARD;
    AN_NEED(trainer, predictor);
    an_status status;
    an_context *ctx = trainer->ctx;
    char *text = NULL;
    an_predictor *p = NULL;
    an_predictor_options options;
    an_predictor_model model;
    *predictor = NULL;
    AN_TRY(an_predictor_options_read(ctx, &options, given));
    AN_CHECK(ctx, options.symbol_count == 0 && !options.f32_storage, AN_ERR_ARGUMENT,
             "symbols and f32_storage are options of an_predictor_open; a trainer knows those of its model");
    AN_TRY(an_graph_print(trainer->graph, &text));
    an_predictor_model_of(&model, trainer, text);
    AN_TRY(an_predictor_make(&p, ctx, &model, &options));
    AN_TRY(an_predictor_refresh(p, trainer));
    *predictor = p;
    p = NULL;
    status = AN_OK;
fail:
    an_string_release(ctx, &text);
    an_predictor_destroy(&p);
    return status;
}

void an_predictor_destroy(an_predictor **predictor) {
    an_predictor *p = predictor ? *predictor : NULL;
    if (!p) return;
    an_context *owner = p->owner;
    for (int i = p->lanes ? p->lane_count - 1 : -1; i >= 0; i--) {
        an_program_destroy(&p->lanes[i].program);
        if (i > 0) an_context_destroy(&p->lanes[i].ctx);
    }
    an_ranges_destroy(&p->ranges);
    if (p->lanes) an_release(p->ctx, (void **)&p->lanes, (size_t)p->lane_count, sizeof *p->lanes);
    an_plan_destroy(&p->plan);
    an_params_destroy(&p->params);
    an_graph_destroy(&p->graph);
    an_context_destroy(&p->team);
    an_context_destroy(&p->ctx);
    an_release(owner, (void **)predictor, 1, sizeof *p);
}

an_status an_predictor_keep_again(an_predictor *predictor, an_context *ctx) {
    an_status status = an_program_keep_again(predictor->lanes[0].program, AN_FORM_PREDICT);
    if (status == AN_OK) status = an_ranges_read(&predictor->ranges);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s", an_last_error(predictor->ctx));
}

an_status an_params_take_from(an_params *to, const an_trainer *trainer) {
    const an_params *from = trainer->params;
    an_context *ctx = trainer->ctx;
    const an_device *device = to->device;
    if (!from) return AN_ERROR(ctx, AN_ERR_STATE, "this trainer was opened only for its plan and has no weights");
    const void *weights = trainer->evaluator.shows_average ? an_params_average(from) : from->masters;
    const an_page_range pages = {0, from->sizes.trainable_elements / AN_PAGE};
    const struct {
        void *to;
        const void *from;
        int64_t bytes, expected;
    } parts[] = {
        {to->masters, weights, an_params_flat_bytes(&to->sizes), an_params_flat_bytes(&from->sizes)},
        {to->frozen, from->frozen, to->sizes.frozen_bytes, from->sizes.frozen_bytes},
        {to->states, from->states, to->sizes.state_bytes, from->sizes.state_bytes},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].bytes != parts[i].expected)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the trainer and the predictor have different models");
        if (i == 0 && from->pieces.shards)
            AN_TRY_RETURN(an_params_spread(from, weights, &pages, to->masters));
        else if (parts[i].bytes)
            AN_TRY_RETURN(
                device->copy(device, ctx, parts[i].to, parts[i].from, (size_t)parts[i].bytes, AN_COPY_ON_DEVICE));
    }
    to->version++;
    return device->synchronize(device, ctx);
}

an_status an_predictor_refresh(an_predictor *predictor, const an_trainer *trainer) {
    AN_GUARD;
    AN_NEED(predictor, trainer);
    an_context *ctx = trainer->ctx;
    AN_TRY_RETURN(an_params_take_from(predictor->params, trainer));
    return an_predictor_keep_again(predictor, ctx);
}

/* ---- asking it ---- */

int64_t an_predictor_input_elements(const an_predictor *predictor) {
    AN_NEED_OR(0, predictor);
    return predictor->input_elements;
}

int64_t an_predictor_output_elements(const an_predictor *predictor) {
    AN_NEED_OR(0, predictor);
    return predictor->output_elements;
}

an_dtype an_predictor_dtype(const an_predictor *predictor) {
    AN_NEED_OR(AN_DTYPE_NONE, predictor);
    return predictor->lanes[0].in.dtype;
}

typedef struct {
    an_predictor *predictor;
    int64_t samples, part; /* in all, and of a part */
    const char *inputs[AN_SENTENCE_INPUTS];
    char *outputs;
} asked;

static an_status run_part(const asked *a, lane *l, int64_t first, int64_t n) {
    const an_predictor *p = a->predictor;
    if (n != l->bound) AN_TRY_RETURN(an_program_bind(l->program, p->batch, n));
    l->bound = n;
    l->in.dims[0] = l->out.dims[0] = n;
    l->out.data = a->outputs + first * p->output_elements * (int64_t)an_dtype_size(l->out.dtype);
    for (int i = 0; i < p->input_count; i++) {
        const char *from = a->inputs[i] + first * p->input_elements * (int64_t)an_dtype_size(l->in.dtype);
        l->in.data = (void *)(uintptr_t)from; /* read only */
        AN_TRY_RETURN(an_program_set_input(l->program, p->inputs[i], &l->in));
    }
    AN_TRY_RETURN(an_program_run(l->program, AN_FORM_PREDICT));
    return an_program_get_output(l->program, p->output, &l->out);
}

static void part_task(void *user, int64_t index, int thread) {
    const asked *a = user;
    lane *l = &a->predictor->lanes[thread];
    const int64_t first = index * a->part, left = a->samples - first;
    if (l->status != AN_OK) return;
    l->failed_part = index;
    l->status = run_part(a, l, first, left < a->part ? left : a->part);
}

/* Parts are taken in order, so the first that fails is the same however many threads there are. */
static an_status first_failure(an_predictor *p) {
    const lane *first = NULL;
    for (int i = 0; i < p->lane_count; i++)
        if (p->lanes[i].status != AN_OK && (!first || p->lanes[i].failed_part < first->failed_part))
            first = &p->lanes[i];
    if (!first) return AN_OK;
    return first->ctx == p->ctx ? first->status : AN_ERROR(p->ctx, first->status, "%s", an_last_error(first->ctx));
}

static an_status run_parts(an_predictor *p, int64_t n, const void *const *inputs, void *outputs) {
    const bool team = p->team && n >= p->team_least;
    int64_t parts = an_divide_up(n, p->part_most);
    if (team) parts = an_divide_up(parts, p->lane_count) * p->lane_count;
    asked a = {.predictor = p, .samples = n, .part = an_divide_up(n, parts), .outputs = outputs};
    for (int i = 0; i < p->input_count; i++) a.inputs[i] = inputs[i];
    parts = an_divide_up(n, a.part);
    for (int i = 0; i < p->lane_count; i++) p->lanes[i].status = AN_OK;
    if (team)
        an_parallel(p->team, parts, part_task, &a);
    else
        for (int64_t i = 0; i < parts; i++) part_task(&a, i, 0);
    return first_failure(p);
}

static an_status run(an_predictor *p, int64_t n, an_dtype in, int input_count, const void *const *inputs, an_dtype out,
                     void *outputs) {
    an_context *ctx = p->ctx;
    const an_dtype reads = p->lanes[0].in.dtype, gives = p->lanes[0].out.dtype;
    if (in != reads || out != gives)
        return AN_ERROR(ctx, AN_ERR_DTYPE, "the model reads %s and gives %s, but the arrays are %s and %s",
                        an_dtype_name(reads), an_dtype_name(gives), an_dtype_name(in), an_dtype_name(out));
    if (input_count != p->input_count)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the model reads %s",
                        p->input_count > 1 ? "sentences: tokens, their types and the mask of padding "
                                             "(an_predictor_run_sentences)"
                                           : "one input, and no sentences");
    if (n < 1 || n > p->maximum)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "there are %lld samples, but the predictor was created for 1 to %lld",
                        (long long)n, (long long)p->maximum);
    if (p->team && an_context_check_threads(p->team) != AN_OK)
        return AN_ERROR(ctx, AN_ERR_STATE, "%s", an_last_error(p->team));
    AN_TRY_RETURN(run_parts(p, n, inputs, outputs));
    an_ranges_count(&p->ranges, in, n, inputs[0]);
    return AN_OK;
}

an_status an_predictor_run_f32(an_predictor *predictor, int64_t n, const float *inputs, float *outputs) {
    AN_GUARD;
    AN_NEED(predictor, inputs, outputs);
    return run(predictor, n, AN_DTYPE_F32, 1, &(const void *){inputs}, AN_DTYPE_F32, outputs);
}

an_status an_predictor_run_f64(an_predictor *predictor, int64_t n, const double *inputs, double *outputs) {
    AN_GUARD;
    AN_NEED(predictor, inputs, outputs);
    return run(predictor, n, AN_DTYPE_F64, 1, &(const void *){inputs}, AN_DTYPE_F64, outputs);
}

an_status an_predictor_run_tokens(an_predictor *predictor, int64_t n, const int32_t *tokens, float *outputs) {
    AN_GUARD;
    AN_NEED(predictor, tokens, outputs);
    return run(predictor, n, AN_DTYPE_I32, 1, &(const void *){tokens}, AN_DTYPE_F32, outputs);
}

an_status an_predictor_run_sentences(an_predictor *predictor, int64_t n, const int32_t *tokens,
                                     const int32_t *token_types, const int32_t *mask, float *outputs) {
    AN_GUARD;
    AN_NEED(predictor, tokens, token_types, mask, outputs);
    const void *const inputs[AN_SENTENCE_INPUTS] = {tokens, token_types, mask};
    return run(predictor, n, AN_DTYPE_I32, AN_SENTENCE_INPUTS, inputs, AN_DTYPE_F32, outputs);
}
