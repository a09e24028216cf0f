/* Generation: a graph of next tokens (pass/decoding.h), and two programs of it that share one cache.
 *
 * One program is for prompts: one sequence, many tokens. The other is for what follows: one token of each sequence. A
 * sequence has a slot of the cache, and its row in a run says which; so rows are dense however sequences come and go.
 * Every kernel gives a row the bits that it has alone, so what is generated depends neither on the rows beside it nor
 * on where a prompt was cut.
 */
#include <string.h>

#include "anneal/generate.h"
#include "base/guard.h"
#include "base/integer.h"
#include "exec/context.h"
#include "ir/registry.h"
#include "pass/decoding.h"
#include "pass/frozen.h"
#include "predict/predictor.h"
#include "predict/sampler.h"
#include "predict/structs.h"
#include "train/trainer.h"

typedef struct {
    bool is_used;
    int64_t count, prompt; /* tokens that it has, and how many of them are its prompt */
    int64_t known;         /* tokens that the cache has */
    int32_t *tokens;       /* room for a context of them */
    an_sampling_options sampling;
    int32_t *stop_tokens;
} slot;

struct an_generator {
    an_context *ctx;   /* its own */
    an_context *owner; /* that its struct is from */
    an_graph *graph;   /* of next tokens */
    an_params *params;
    an_plan *prompt_plan, *next_plan;
    an_program *prompts, *nexts; /* the second has the cache of the first */
    an_decoding facts;
    int64_t maximum, context, chunk;
    slot *slots;
    int64_t *order; /* slots by age, the oldest first; `used` of them */
    int64_t used;
    int32_t *histories, *tokens, *positions, *rows; /* of all slots; and of a run: its inputs */
    float *logits;
    an_candidate *candidates;
};

/* ---- making one ---- */

static an_status make_plan(an_plan **plan, const an_generator *g, const an_predictor_model *model, int64_t batch,
                           int64_t tokens) {
    const char *symbols[AN_MAX_FEED_SYMBOLS + 1];
    int64_t maxima[AN_MAX_FEED_SYMBOLS + 1];
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    symbols[0] = model->batch;
    maxima[0] = batch;
    options.symbol_count = model->symbol_count + 1;
    for (int i = 0; i < model->symbol_count; i++) {
        symbols[i + 1] = model->symbols[i];
        maxima[i + 1] = strcmp(model->symbols[i], g->facts.tokens) ? model->values[i] : tokens;
    }
    options.symbols = symbols;
    options.maxima = maxima;
    options.moments = 0;
    options.precision = model->precision;
    options.f32_storage = model->f32_storage;
    options.programs = AN_PROGRAM_PREDICTION;
    return an_plan_create(plan, g->ctx, g->graph, &options);
}

static an_status bind(const an_generator *g, an_program *program, int64_t batch, int64_t tokens) {
    AN_TRY_RETURN(an_program_bind(program, g->facts.batch, batch));
    return an_program_bind(program, g->facts.tokens, tokens);
}

static an_status bind_others(const an_generator *g, an_program *program, const an_predictor_model *model) {
    for (int i = 0; i < model->symbol_count; i++)
        if (strcmp(model->symbols[i], g->facts.tokens) != 0)
            AN_TRY_RETURN(an_program_bind(program, model->symbols[i], model->values[i]));
    return AN_OK;
}

/* How many tokens the model was trained with; 0: it does not say. */
static int64_t trained_context(const an_generator *g, const an_predictor_model *model) {
    for (int i = 0; i < model->symbol_count; i++)
        if (!strcmp(model->symbols[i], g->facts.tokens)) return model->values[i];
    return 0;
}

static an_status choose_context(an_generator *g, const an_predictor_model *model, const an_generator_options *options) {
    const int64_t maximum = g->facts.most_context;
    g->context = options->context ? options->context : trained_context(g, model);
    if (g->context == 0) g->context = maximum;
    if (g->context < 1) return AN_ERROR(g->ctx, AN_ERR_ARGUMENT, "the model does not say its context: set `context`");
    if (maximum > 0 && g->context > maximum)
        return AN_ERROR(g->ctx, AN_ERR_ARGUMENT, "context is %lld, but the model has %lld positions",
                        (long long)g->context, (long long)maximum);
    return AN_OK;
}

/* Caches are sized by the context, which the rewriting of the graph tells: it is done once to ask, and once to be
 * used. */
static an_status make_graph(an_generator *g, const an_predictor_model *model, const an_generator_options *options) {
    an_context *ctx = g->ctx;
    an_decoding_options decoding = {.slots = g->maximum, .context = 1, .output = options->output};
    if (model->precision != AN_DTYPE_NONE && !model->f32_storage) decoding.cache = model->precision;
    for (int again = 0; again < 2; again++) {
        an_graph_destroy(&g->graph);
        AN_TRY_RETURN(an_graph_parse(&g->graph, ctx, model->graph, strlen(model->graph)));
        AN_TRY_RETURN(an_graph_verify(g->graph));
        AN_TRY_RETURN(an_graph_make_decoding(g->graph, &decoding, &g->facts));
        AN_TRY_RETURN(choose_context(g, model, options));
        decoding.context = g->context;
    }
    if (options->storage != AN_DTYPE_NONE) {
        AN_TRY_RETURN(an_graph_freeze(g->graph, options->storage));
        if (options->storage == AN_DTYPE_Q8_0) AN_TRY_RETURN(an_graph_round_products(g->graph));
        AN_TRY_RETURN(an_graph_refresh_views(g->graph));
        AN_TRY_RETURN(an_graph_verify(g->graph));
    }
    g->chunk = an_smaller(options->chunk, g->context);
    return AN_OK;
}

static an_status allocate_slots(an_generator *g) {
    an_context *ctx = g->ctx;
    const size_t maximum = (size_t)g->maximum, rows = (size_t)an_larger(g->maximum, g->chunk);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g->slots, maximum, sizeof *g->slots));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g->order, maximum, sizeof *g->order));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g->histories, maximum * (size_t)g->context, sizeof *g->histories));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g->tokens, rows, sizeof *g->tokens));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g->positions, rows, sizeof *g->positions));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g->rows, maximum, sizeof *g->rows));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g->logits, maximum * (size_t)g->facts.vocabulary, sizeof *g->logits));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g->candidates, (size_t)g->facts.vocabulary, sizeof *g->candidates));
    for (size_t i = 0; i < maximum; i++) g->slots[i].tokens = g->histories + i * (size_t)g->context;
    return AN_OK;
}

static an_status fill(an_generator *g, const an_predictor_model *model, const an_generator_options *options) {
    an_context *ctx = g->ctx;
    an_params_options params;
    an_params_options_init(&params, sizeof params);
    params.gradients = false;
    AN_TRY_RETURN(make_graph(g, model, options));
    AN_TRY_RETURN(an_params_create(&g->params, ctx, g->graph, &params));
    AN_TRY_RETURN(make_plan(&g->prompt_plan, g, model, 1, g->chunk));
    AN_TRY_RETURN(make_plan(&g->next_plan, g, model, g->maximum, 1));
    AN_TRY_RETURN(an_program_create(&g->prompts, g->prompt_plan, g->params));
    AN_TRY_RETURN(an_program_create_beside(&g->nexts, g->next_plan, g->params, g->prompts));
    AN_TRY_RETURN(bind_others(g, g->prompts, model));
    AN_TRY_RETURN(bind_others(g, g->nexts, model));
    AN_TRY_RETURN(bind(g, g->prompts, 1, g->chunk));
    AN_TRY_RETURN(bind(g, g->nexts, g->maximum, 1));
    AN_TRY_RETURN(an_program_keep(g->prompts, AN_FORM_PREDICT, false));
    AN_TRY_RETURN(an_program_keep(g->nexts, AN_FORM_PREDICT, false));
    return allocate_slots(g);
}

/* After the weights have changed. */
static an_status keep_again(const an_generator *g, an_context *ctx) {
    an_status status = an_program_keep_again(g->prompts, AN_FORM_PREDICT);
    if (status == AN_OK) status = an_program_keep_again(g->nexts, AN_FORM_PREDICT);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s", an_last_error(g->ctx));
}

static an_status check_options(an_context *ctx, const an_generator_options *o) {
    if (o->max_sequences < 1 || o->context < 0 || o->chunk < 1 || o->threads < 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "max_sequences is %lld, context %lld, chunk %lld and threads %d; the first and chunk must be 1 "
                        "or more, the others 0 or more",
                        (long long)o->max_sequences, (long long)o->context, (long long)o->chunk, o->threads);
    if (o->precision != AN_DTYPE_NONE && o->precision != AN_DTYPE_F32 && o->precision != AN_DTYPE_BF16)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "precision is %s; a generator computes in f32 or bf16",
                        an_dtype_name(o->precision));
    const bool can_store = o->storage == AN_DTYPE_NONE || o->storage == AN_DTYPE_Q8_0 ||
                           (o->storage == AN_DTYPE_BF16 && o->precision == AN_DTYPE_BF16);
    if (!can_store)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "storage is %s; a generator can store matrices in q8_0, or in bf16 if that is its precision",
                        an_dtype_name(o->storage));
    return AN_OK;
}

static an_status make(an_generator **generator, an_context *ctx, const an_predictor_model *given,
                      const an_generator_options *options) {
    an_status status;
    an_generator *g = NULL;
    an_context_options own;
    an_predictor_model model = *given;
    *generator = NULL;
    if (options->precision != AN_DTYPE_NONE) {
        model.precision = options->precision == AN_DTYPE_F32 ? AN_DTYPE_NONE : options->precision;
        model.f32_storage = false;
    }
    AN_TRY(an_alloc(ctx, (void **)&g, 1, sizeof *g));
    g->owner = ctx;
    g->maximum = options->max_sequences;
    an_context_options_init(&own, sizeof own);
    own.isa = an_context_isa(ctx);
    own.allocator = &ctx->allocator;
    own.device = ctx->device;
    own.threads = options->threads ? options->threads : an_context_threads(ctx);
    status = an_context_make(&g->ctx, &own);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s", an_last_error(NULL));
    an_registry_share(g->ctx, ctx);
    status = fill(g, &model, options);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s", an_last_error(g->ctx));
    *generator = g;
    return AN_OK;
fail:
    an_generator_destroy(&g);
    return status;
}

an_status an_generator_open(an_generator **generator, an_context *ctx, const char *path,
                            const an_generator_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, generator, path);
    an_status status;
    an_opened_model opened = {0};
    an_generator *g = NULL;
    an_generator_options options;
    an_predictor_options sizes;
    *generator = NULL;
    an_predictor_options_init(&sizes, sizeof sizes);
    AN_TRY(an_generator_options_read(ctx, &options, given));
    AN_TRY(check_options(ctx, &options));
    AN_TRY(an_opened_model_open(&opened, ctx, path, &sizes));
    AN_TRY(make(&g, ctx, &opened.model, &options));
    if (options.storage == AN_DTYPE_NONE)
        AN_TRY(an_opened_model_load(&opened, ctx, options.weights, g->params, g->graph));
    else
        AN_TRY(an_opened_model_convert(&opened, ctx, options.weights, g->params));
    AN_TRY(keep_again(g, ctx));
    *generator = g;
    g = NULL;
    status = AN_OK;
fail:
    an_generator_destroy(&g);
    an_opened_model_close(&opened);
    return status;
}

an_status an_generator_create(an_generator **generator, an_trainer *trainer, const an_generator_options *given) {
    AN_GUARD;
    AN_NEED(trainer, generator);
    an_status status;
    an_context *ctx = trainer->ctx;
    char *text = NULL;
    an_generator *g = NULL;
    an_generator_options options;
    an_predictor_model model;
    *generator = NULL;
    AN_TRY(an_generator_options_read(ctx, &options, given));
    AN_TRY(check_options(ctx, &options));
    AN_CHECK(ctx, options.storage == AN_DTYPE_NONE, AN_ERR_ARGUMENT,
             "a generator of a trainer copies its weights as they are: storage must be AN_DTYPE_NONE");
    AN_TRY(an_graph_print(trainer->graph, &text));
    an_predictor_model_of(&model, trainer, text);
    AN_TRY(make(&g, ctx, &model, &options));
    AN_TRY(an_generator_refresh(g, trainer));
    *generator = g;
    g = NULL;
    status = AN_OK;
fail:
    an_string_release(ctx, &text);
    an_generator_destroy(&g);
    return status;
}

static void release_stops(const an_generator *g, slot *s) {
    an_release(g->ctx, (void **)&s->stop_tokens, (size_t)s->sampling.stop_count, sizeof *s->stop_tokens);
}

void an_generator_destroy(an_generator **generator) {
    an_generator *g = generator ? *generator : NULL;
    if (!g) return;
    an_context *ctx = g->ctx, *owner = g->owner;
    if (ctx) {
        const size_t maximum = (size_t)g->maximum, rows = (size_t)an_larger(g->maximum, g->chunk);
        const size_t vocabulary = (size_t)g->facts.vocabulary;
        for (size_t i = 0; g->slots && i < maximum; i++) release_stops(g, &g->slots[i]);
        an_release(ctx, (void **)&g->candidates, vocabulary, sizeof *g->candidates);
        an_release(ctx, (void **)&g->logits, maximum * vocabulary, sizeof *g->logits);
        an_release(ctx, (void **)&g->rows, maximum, sizeof *g->rows);
        an_release(ctx, (void **)&g->positions, rows, sizeof *g->positions);
        an_release(ctx, (void **)&g->tokens, rows, sizeof *g->tokens);
        an_release(ctx, (void **)&g->histories, maximum * (size_t)g->context, sizeof *g->histories);
        an_release(ctx, (void **)&g->order, maximum, sizeof *g->order);
        an_release(ctx, (void **)&g->slots, maximum, sizeof *g->slots);
        an_program_destroy(&g->nexts);
        an_program_destroy(&g->prompts);
        an_plan_destroy(&g->next_plan);
        an_plan_destroy(&g->prompt_plan);
        an_params_destroy(&g->params);
        an_graph_destroy(&g->graph);
    }
    an_context_destroy(&g->ctx);
    an_release(owner, (void **)generator, 1, sizeof *g);
}

an_status an_generator_refresh(an_generator *generator, const an_trainer *trainer) {
    AN_GUARD;
    AN_NEED(generator, trainer);
    an_context *ctx = trainer->ctx;
    for (int64_t i = 0; i < generator->maximum; i++) {
        release_stops(generator, &generator->slots[i]);
        generator->slots[i].is_used = false;
    }
    generator->used = 0;
    AN_TRY_RETURN(an_params_take_from(generator->params, trainer));
    return keep_again(generator, ctx);
}

/* ---- asking it ---- */

an_status an_generator_info_get(const an_generator *generator, an_generator_info *info) {
    AN_GUARD;
    AN_NEED(generator, info);
    const an_generator *g = generator;
    const an_plan_memory *first = &g->prompt_plan->memory, *second = &g->next_plan->memory;
    an_generator_info own = {.size = sizeof own,
                             .vocabulary = g->facts.vocabulary,
                             .context = g->context,
                             .max_sequences = g->maximum,
                             .free = g->maximum - g->used,
                             .weights = first->weights,
                             .cache = g->prompt_plan->sizes.program_state_bytes,
                             .peak = (int64_t)(g->ctx->bytes + sizeof *g)};
    own.work = first->activations + first->scratch + first->inputs + second->activations + second->scratch +
               second->inputs - 2 * own.cache; /* which is among the inputs of both */
    own.tables = own.peak - own.weights - own.cache - own.work;
    return an_generator_info_write(g->ctx, info, &own);
}

/* ---- sequences ---- */

static an_status check_prompt(const an_generator *g, const int32_t *tokens, int64_t count) {
    if (count < 1) return AN_ERROR(g->ctx, AN_ERR_ARGUMENT, "a prompt must have 1 token or more");
    if (count >= g->context)
        return AN_ERROR(g->ctx, AN_ERR_ARGUMENT,
                        "the prompt has %lld tokens, but a sequence of this generator has at most %lld, with what is "
                        "generated",
                        (long long)count, (long long)g->context);
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= g->facts.vocabulary)
            return AN_ERROR(g->ctx, AN_ERR_ARGUMENT,
                            "token %lld of the prompt is %d, but the model has tokens 0 to %lld", (long long)i,
                            tokens[i], (long long)g->facts.vocabulary - 1);
    return AN_OK;
}

an_status an_generator_add(an_generator *generator, const int32_t *tokens, int64_t count,
                           const an_sampling_options *options) {
    AN_GUARD;
    AN_NEED(generator, tokens);
    an_generator *g = generator;
    an_context *ctx = g->ctx;
    an_sampling_options sampling;
    int64_t at = 0;
    AN_TRY_RETURN(an_sampling_options_read(ctx, &sampling, options));
    AN_TRY_RETURN(an_sampling_check(ctx, &sampling));
    AN_TRY_RETURN(check_prompt(g, tokens, count));
    for (int64_t i = 0; i < g->used; i++)
        if (g->slots[g->order[i]].sampling.sequence == sampling.sequence)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "sequence %lld is already being generated: sequences need different numbers",
                            (long long)sampling.sequence);
    if (g->used == g->maximum)
        return AN_ERROR(ctx, AN_ERR_STATE, "%lld sequences are being generated, and the generator was made for no more",
                        (long long)g->maximum);
    while (g->slots[at].is_used) at++;
    slot *s = &g->slots[at];
    int32_t *stops = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&stops, (size_t)sampling.stop_count, sizeof *stops));
    if (sampling.stop_count) memcpy(stops, sampling.stop_tokens, (size_t)sampling.stop_count * sizeof *stops);
    sampling.stop_tokens = stops;
    *s = (slot){.is_used = true,
                .count = count,
                .prompt = count,
                .tokens = s->tokens,
                .sampling = sampling,
                .stop_tokens = stops};
    memcpy(s->tokens, tokens, (size_t)count * sizeof *tokens);
    g->order[g->used++] = at;
    return AN_OK;
}

/* Takes sequences that have ended out of the order of the others. */
static void drop_ended(an_generator *g) {
    int64_t kept = 0;
    for (int64_t i = 0; i < g->used; i++) {
        slot *s = &g->slots[g->order[i]];
        if (s->is_used)
            g->order[kept++] = g->order[i];
        else
            release_stops(g, s);
    }
    g->used = kept;
}

an_status an_generator_stop(an_generator *generator, int64_t sequence) {
    AN_NEED(generator);
    for (int64_t i = 0; i < generator->used; i++) {
        slot *s = &generator->slots[generator->order[i]];
        if (s->sampling.sequence != sequence) continue;
        s->is_used = false;
        drop_ended(generator);
        return AN_OK;
    }
    return AN_ERROR(generator->ctx, AN_ERR_UNKNOWN, "sequence %lld is not being generated", (long long)sequence);
}

/* ---- a step ---- */

/* Runs the tokens that lie ready; `logits` gets those of every row. */
static an_status run(an_generator *g, an_program *program, int64_t batch, int64_t tokens, float *logits) {
    an_array in = {.data = g->tokens, .dtype = AN_DTYPE_I32, .ndims = 2, .dims = {batch, tokens}};
    an_array out = {.data = logits, .dtype = AN_DTYPE_F32, .ndims = 3, .dims = {batch, 1, g->facts.vocabulary}};
    AN_TRY_RETURN(bind(g, program, batch, tokens));
    AN_TRY_RETURN(an_program_set_input(program, g->facts.input, &in));
    in.data = g->positions;
    AN_TRY_RETURN(an_program_set_input(program, AN_DECODING_POSITIONS, &in));
    in = (an_array){.data = g->rows, .dtype = AN_DTYPE_I32, .ndims = 1, .dims = {batch}};
    AN_TRY_RETURN(an_program_set_input(program, AN_DECODING_SLOTS, &in));
    AN_TRY_RETURN(an_program_run(program, AN_FORM_PREDICT));
    return logits ? an_program_get_output(program, g->facts.output, &out) : AN_OK;
}

/* All of a prompt but what the cache already has, by chunks. */
static an_status run_prompt(an_generator *g, int64_t at, float *logits) {
    slot *s = &g->slots[at];
    g->rows[0] = (int32_t)at;
    while (s->known < s->count) {
        const int64_t tokens = an_smaller(g->chunk, s->count - s->known);
        for (int64_t i = 0; i < tokens; i++) {
            g->tokens[i] = s->tokens[s->known + i];
            g->positions[i] = (int32_t)(s->known + i);
        }
        AN_TRY_RETURN(run(g, g->prompts, 1, tokens, s->known + tokens == s->count ? logits : NULL));
        s->known += tokens;
    }
    return AN_OK;
}

static an_generation_end end_of(const an_generator *g, const slot *s, int32_t token) {
    for (int i = 0; i < s->sampling.stop_count; i++)
        if (s->stop_tokens[i] == token) return AN_GENERATION_STOP;
    if (s->sampling.max_tokens > 0 && s->count - s->prompt >= s->sampling.max_tokens) return AN_GENERATION_LENGTH;
    return s->count == g->context ? AN_GENERATION_CONTEXT : AN_GENERATION_GOES_ON;
}

/* Whether all that is missing in the cache is the last token. */
static bool is_next(const slot *s) {
    return s->known > 0 && s->count - s->known == 1;
}

/* Logits of every sequence, in their order. Those of one token are computed together; they are older than those whose
 * prompt is still to be computed, so they come first. */
static an_status compute(an_generator *g) {
    int64_t rows = 0;
    for (; rows < g->used && is_next(&g->slots[g->order[rows]]); rows++) {
        const slot *s = &g->slots[g->order[rows]];
        g->rows[rows] = (int32_t)g->order[rows];
        g->tokens[rows] = s->tokens[s->known];
        g->positions[rows] = (int32_t)s->known;
    }
    if (rows > 0) AN_TRY_RETURN(run(g, g->nexts, rows, 1, g->logits));
    for (int64_t i = 0; i < rows; i++) g->slots[g->order[i]].known++;
    for (int64_t i = rows; i < g->used; i++)
        AN_TRY_RETURN(run_prompt(g, g->order[i], g->logits + i * g->facts.vocabulary));
    return AN_OK;
}

an_status an_generator_step(an_generator *generator, an_generated *tokens, int64_t *count) {
    AN_GUARD;
    AN_NEED(generator, tokens, count);
    an_generator *g = generator;
    *count = 0;
    const an_status status = compute(g);
    if (status != AN_OK) { /* whatever was computed has no token yet: it is computed again */
        for (int64_t i = 0; i < g->used; i++) {
            slot *s = &g->slots[g->order[i]];
            if (s->known == s->count) s->known--;
        }
        return status;
    }
    for (int64_t i = 0; i < g->used; i++) {
        slot *s = &g->slots[g->order[i]];
        const int32_t token = an_sample(&s->sampling, s->tokens, s->count, g->facts.vocabulary,
                                        g->logits + i * g->facts.vocabulary, g->candidates);
        s->tokens[s->count++] = token;
        const an_generation_end end = end_of(g, s, token);
        s->is_used = end == AN_GENERATION_GOES_ON;
        tokens[i] = (an_generated){s->sampling.sequence, token, end};
    }
    *count = g->used;
    drop_ended(g);
    return AN_OK;
}
