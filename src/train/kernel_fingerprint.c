#include "train/kernel_fingerprint.h"

#include <xxhash.h>

#include "anneal/models.h"
#include "anneal/optimizer.h"
#include "anneal/plan.h"
#include "base/context.h"
#include "base/memory.h"
#include "base/system/thread.h"
#include "exec/context.h"
#include "exec/params.h"

/* ---- the models ----
 *
 * One training step of each. Sizes are small, and large enough for the kernels that full-sized models run: several
 * tiles of a product, more keys than a tile of attention has. */

enum { BATCH = 2, TOKENS = 40 };

static an_status make_gpt2(an_graph **graph, an_context *ctx) {
    an_gpt2_options o;
    an_gpt2_options_init(&o, sizeof o);
    o.layers = 1;
    o.heads = 2;
    o.width = 64;
    o.context = TOKENS;
    o.vocabulary = 96;
    return an_model_gpt2(graph, ctx, &o);
}

static an_status make_llama(an_graph **graph, an_context *ctx) {
    an_llama_options o;
    an_llama_options_init(&o, sizeof o);
    o.layers = 1;
    o.heads = 2;
    o.kv_heads = 1;
    o.width = 64;
    o.hidden = 96;
    o.context = TOKENS;
    o.vocabulary = 96;
    return an_model_llama(graph, ctx, &o);
}

static an_status make_cnn(an_graph **graph, an_context *ctx) {
    static const int64_t filters[] = {16, 16};
    an_cnn_options o;
    an_cnn_options_init(&o, sizeof o);
    o.channels = 3;
    o.height = o.width = 12;
    o.classes = 10;
    o.filters = filters;
    o.filter_count = sizeof filters / sizeof *filters;
    o.hidden = 32;
    o.batch_norm = true;
    return an_model_cnn(graph, ctx, &o);
}

static an_status make_mlp(an_graph **graph, an_context *ctx) {
    static const int64_t hidden[] = {48, 48};
    an_mlp_options o;
    an_mlp_options_init(&o, sizeof o);
    o.inputs = 32;
    o.outputs = 8;
    o.hidden = hidden;
    o.hidden_count = sizeof hidden / sizeof *hidden;
    o.dtype = AN_DTYPE_F64;
    o.activation = AN_ACTIVATION_TANH;
    o.loss = AN_LOSS_SQUARED;
    return an_model_mlp(graph, ctx, &o);
}

/* Every elementary function that kernels have, and a softmax of what they give. */
static an_status make_functions(an_graph **graph, an_context *ctx) {
    an_status status;
    an_graph *g = NULL;
    AN_TRY(an_graph_create(&g, ctx, "functions"));
    const an_dim dims[] = {an_symbol_dim(g, "batch"), 64};
    const an_value x = an_linear(g, an_input(g, "x", AN_DTYPE_F32, 2, dims), "fc", 64);
    const an_value y = an_input(g, "y", AN_DTYPE_F32, 2, dims), positive = an_softplus(g, x);
    an_value sum = an_add(g, an_exp(g, x), an_log(g, positive));
    sum = an_add(g, sum, an_add(g, an_sin(g, x), an_cos(g, x)));
    sum = an_add(g, sum, an_add(g, an_tanh(g, x), an_gelu(g, x)));
    sum = an_add(g, sum, an_add(g, an_sigmoid(g, x), an_sqrt(g, positive)));
    sum = an_add(g, sum, an_power(g, positive, an_sigmoid(g, x)));
    an_graph_set_loss(g, an_squared_error(g, an_softmax(g, sum, 1), y), y);
    AN_TRY(an_graph_verify(g));
    *graph = g;
    return AN_OK;
fail:
    an_graph_destroy(&g);
    return status;
}

static const struct {
    an_status (*make)(an_graph **graph, an_context *ctx);
    an_dtype precision;
} models[] = {{make_gpt2, AN_DTYPE_NONE},  {make_gpt2, AN_DTYPE_BF16},     {make_gpt2, AN_DTYPE_F16},
              {make_llama, AN_DTYPE_NONE}, {make_cnn, AN_DTYPE_NONE},      {make_cnn, AN_DTYPE_BF16},
              {make_mlp, AN_DTYPE_NONE},   {make_functions, AN_DTYPE_NONE}};

/* ---- a step of one ---- */

typedef struct {
    an_context *ctx;
    an_graph *graph;
    an_plan *plan;
    an_params *params;
    an_program *program;
    an_groups *groups;
    an_optimizer *optimizer;
} rig;

static void rig_release(rig *r) {
    an_optimizer_destroy(&r->optimizer);
    an_groups_destroy(&r->groups);
    an_program_destroy(&r->program);
    an_params_destroy(&r->params);
    an_plan_destroy(&r->plan);
    an_graph_destroy(&r->graph);
}

static an_status rig_make(rig *r, const char *kernels, an_dtype precision) {
    enum { SYMBOLS = 2 };
    static const char *const symbols[SYMBOLS] = {"batch", "tokens"};
    static const int64_t maxima[SYMBOLS] = {BATCH, TOKENS};
    an_context *ctx = r->ctx;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.symbols = symbols;
    options.maxima = maxima;
    options.kernels = kernels;
    options.precision = precision;
    options.programs = 1U << AN_FORM_TRAIN_FIRST | 1U << AN_FORM_TRAIN_NEXT;
    while (options.symbol_count < SYMBOLS && an_graph_symbol_name(r->graph, options.symbol_count))
        options.symbol_count++;
    AN_TRY_RETURN(an_plan_create(&r->plan, ctx, r->graph, &options));
    AN_TRY_RETURN(an_params_create(&r->params, ctx, r->graph, NULL));
    AN_TRY_RETURN(an_params_reset(r->params, 1));
    AN_TRY_RETURN(an_program_create(&r->program, r->plan, r->params));
    for (int i = 0; i < SYMBOLS && i < options.symbol_count; i++)
        AN_TRY_RETURN(an_program_bind(r->program, symbols[i], maxima[i]));
    AN_TRY_RETURN(an_groups_create(&r->groups, r->graph, NULL));
    return an_optimizer_create(&r->optimizer, r->params, r->groups, NULL);
}

/* The same numbers for ever: not from the library's generator, whose own bits are covered by the weights. */
static uint32_t number(int64_t i) {
    const uint32_t mixed = (uint32_t)i * 2654435761U; /* Knuth's multiplicative hash */
    return mixed ^ mixed >> 15;
}

static an_status set_input(const rig *r, const an_input_info *info) {
    enum { MOST = BATCH * 3 * 12 * 12 }; /* the images */
    an_context *ctx = r->ctx;
    double bytes[MOST]; /* large enough for any type */
    int64_t elements = 1;
    an_array array = {.data = bytes, .dtype = info->dtype, .ndims = info->ndims};
    for (int d = 0; d < info->ndims; d++) elements *= array.dims[d] = info->dims[d];
    if (elements > MOST)
        return AN_ERROR(ctx, AN_ERR_STATE, "input '%s' has %lld elements, more than expected", info->name,
                        (long long)elements);
    for (int64_t i = 0; i < elements; i++) {
        const double real = (double)(int32_t)number(i) * 0x1p-31;
        if (info->dtype == AN_DTYPE_I32)
            ((int32_t *)bytes)[i] = (int32_t)(number(i) % (uint32_t)info->limit);
        else if (info->dtype == AN_DTYPE_F32)
            ((float *)bytes)[i] = (float)real;
        else
            bytes[i] = real;
    }
    return an_program_set_input(r->program, info->name, &array);
}

static an_status take_step(const rig *r, double *loss, double *norm) {
    an_input_info info;
    an_update update;
    an_input_info_init(&info, sizeof info);
    an_update_init(&update, sizeof update);
    update.rate = 1e-3;
    update.clip_norm = 1;
    for (int64_t i = 0; i < an_program_input_count(r->program); i++) {
        AN_TRY_RETURN(an_program_input(r->program, i, &info));
        AN_TRY_RETURN(set_input(r, &info));
    }
    AN_TRY_RETURN(an_program_run(r->program, AN_FORM_TRAIN_FIRST));
    AN_TRY_RETURN(an_program_run(r->program, AN_FORM_TRAIN_NEXT));
    AN_TRY_RETURN(an_program_loss(r->program, loss));
    AN_TRY_RETURN(an_optimizer_norm(r->optimizer, 1, norm));
    return an_optimizer_update(r->optimizer, &update);
}

/* The weights after the update, which everything before it has changed. */
static void add_weights(XXH3_state_t *state, const an_params *params) {
    for (size_t i = 0; i < params->entry_count; i++) {
        const an_stored *e = &params->entries[i];
        XXH3_128bits_update(state, (const char *)an_params_base(params, e->storage) + e->offset,
                            (size_t)an_dtype_bytes(e->dtype, e->elements));
    }
}

static an_status add_model(XXH3_state_t *state, rig *r, const char *kernels, size_t model) {
    an_context *ctx = r->ctx;
    double results[2]; /* loss and norm */
    AN_TRY_RETURN(models[model].make(&r->graph, ctx));
    AN_TRY_RETURN(rig_make(r, kernels, models[model].precision));
    AN_TRY_RETURN(take_step(r, &results[0], &results[1]));
    XXH3_128bits_update(state, results, sizeof results);
    add_weights(state, r->params);
    return AN_OK;
}

/* ---- the fingerprint ---- */

/* In a context of its own, so that neither the device, the ops and the optimizers that a program added nor the count
 * of bytes of its context take part. */
static an_status compute(an_context *ctx, const char *kernels, uint64_t hash[2]) {
    an_status status;
    rig r = {0};
    XXH3_state_t *state = XXH3_createState();
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_allocator allocator = ctx->allocator;
    options.allocator = &allocator;
    options.threads = 1;
    options.isa = ctx->isa;
    AN_CHECK(ctx, state, AN_ERR_MEMORY, "out of memory: a hash cannot be computed");
    XXH3_128bits_reset(state);
    status = an_context_make(&r.ctx, &options);
    for (size_t i = 0; status == AN_OK && i < sizeof models / sizeof *models; i++) {
        status = add_model(state, &r, kernels, i);
        rig_release(&r);
    }
    if (status != AN_OK) AN_FAIL(ctx, status, "the kernels cannot be compared: %s", an_last_error(r.ctx));
    const XXH128_hash_t made = XXH3_128bits_digest(state);
    hash[0] = made.low64;
    hash[1] = made.high64;
fail:
    an_context_destroy(&r.ctx);
    XXH3_freeState(state);
    return status;
}

typedef struct {
    an_context *ctx;
    const char *kernels;
    uint64_t *hash;
    an_status status;
} job;

static void *run(void *user) {
    job *j = user;
    j->status = compute(j->ctx, j->kernels, j->hash);
    return NULL;
}

/* On a thread with a stack of its own: the caller's may be as small as a run of its own model allows, and other
 * kernels than that run's are called here. */
an_status an_kernel_fingerprint_compute(an_context *ctx, const char *kernels, uint64_t hash[2]) {
    job j = {.ctx = ctx, .kernels = kernels, .hash = hash};
    pthread_t thread;
    if (an_thread_start(&thread, run, &j) != 0) return compute(ctx, kernels, hash);
    pthread_join(thread, NULL);
    return j.status;
}

/* The same in all contexts of a process, whose code and processor it depends on, but for the level: the first one that
 * asks computes it. Nobody waits for another thread, which may not exist any more after a fork; two that ask at the
 * same time both compute it. */
enum { EMPTY, BEING_WRITTEN, WRITTEN };

typedef struct {
    int state;
    uint64_t hash[2];
} known;

static known known_of_levels[AN_ISA_AMX + 1];

static an_status find(an_context *ctx, uint64_t hash[2]) {
    known *k = &known_of_levels[ctx->isa];
    int empty = EMPTY;
    if (__atomic_load_n(&k->state, __ATOMIC_ACQUIRE) == WRITTEN) {
        hash[0] = k->hash[0];
        hash[1] = k->hash[1];
        return AN_OK;
    }
    AN_TRY_RETURN(an_kernel_fingerprint_compute(ctx, NULL, hash));
    if (!__atomic_compare_exchange_n(&k->state, &empty, BEING_WRITTEN, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return AN_OK;
    k->hash[0] = hash[0];
    k->hash[1] = hash[1];
    __atomic_store_n(&k->state, WRITTEN, __ATOMIC_RELEASE);
    return AN_OK;
}

an_status an_kernel_fingerprint(an_context *ctx, uint64_t hash[2]) {
    uint64_t *kept = ctx->kernel_fingerprint;
    if (!kept[0] && !kept[1]) AN_TRY_RETURN(find(ctx, kept));
    hash[0] = kept[0];
    hash[1] = kept[1];
    return AN_OK;
}
