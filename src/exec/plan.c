/* an_plan_create: clones the model for every requested form and sends the clones through the passes. */
#include "exec/plan.h"

#include <string.h>

#include "base/guard.h"
#include "base/integer.h"
#include "comm/borders.h"
#include "exec/params.h"
#include "exec/structs.h"
#include "ir/text_form.h"
#include "ops/common.h"
#include "ops/sink.h"
#include "ops/source.h"
#include "pass/cost.h"

/* The same loss for the other targets, added to the weighed one. Two plain nodes, so that every loss is mixed as it is
 * defined, with whatever attributes it has. */
static void mix_loss(const an_plan *p, an_graph *g, const an_node *loss) {
    const an_value inputs[] = {an_node_input_value(g, loss, 0), p->mixed_targets, p->mixed_weights};
    g->loss = an_add(g, g->loss, an_graph_add(g, loss->op, AN_COUNT(inputs), inputs, loss->attributes));
}

/* The weights of samples become those of the targets that the loss reads, which may be of another shape than the
 * model's. */
static an_status weigh_loss(const an_plan *p, an_graph *g) {
    const an_result *read = an_node_input(an_graph_result(g, g->loss)->node, 1),
                    *given = an_graph_result(g, g->targets);
    an_value weights = p->weights;
    if (read->ndims == 0 || read->dims[0] != given->dims[0]) {
        an_dim dims[AN_MAX_DIMS];
        for (int i = 0; i < given->ndims; i++) dims[i] = i ? 1 : given->dims[0];
        weights = an_expand(g, an_reshape(g, weights, given->ndims, dims), given->ndims, given->dims);
        weights = an_reshape(g, weights, read->ndims, read->dims);
    }
    const an_value loss = g->loss;
    g->loss = an_weigh_loss(g, loss, weights);
    if (p->mixed_targets) mix_loss(p, g, an_graph_result(g, loss)->node);
    return g->status == AN_OK ? AN_OK : AN_ERROR(g->ctx, g->status, "%s", g->message);
}

static an_status add_weights(an_plan *p) {
    an_graph *g = p->model;
    const an_result *loss = an_graph_result(g, g->loss), *targets = an_graph_result(g, g->targets);
    if (!loss || !loss->node->op->count_targets || !targets || targets->ndims == 0)
        return AN_ERROR(p->ctx, AN_ERR_UNSUPPORTED,
                        "graph '%s' cannot weigh samples: its loss must come from a loss op whose targets have one "
                        "dimension for samples",
                        g->name);
    p->weights = an_input(g, AN_LOSS_WEIGHTS, loss->dtype, 1, targets->dims);
    return g->status == AN_OK ? AN_OK : AN_ERROR(p->ctx, g->status, "%s", g->message);
}

static an_status add_mixed_targets(an_plan *p, bool weighs) {
    an_graph *g = p->model;
    const an_result *loss = an_graph_result(g, g->loss), *targets = an_graph_result(g, g->targets);
    if (!weighs || !targets || an_node_input(loss->node, 1) != targets || targets->ndims != 1)
        return AN_ERROR(p->ctx, AN_ERR_UNSUPPORTED,
                        "graph '%s' cannot mix targets: samples must have weights, and one target each, which the loss "
                        "reads directly",
                        g->name);
    p->mixed_targets = an_input(g, AN_MIXED_TARGETS, targets->dtype, 1, targets->dims);
    p->mixed_weights = an_input(g, AN_MIXED_WEIGHTS, loss->dtype, 1, targets->dims);
    return g->status == AN_OK ? AN_OK : AN_ERROR(p->ctx, g->status, "%s", g->message);
}

an_status an_plan_run_passes(const an_plan *p, an_graph *g, an_form form, const char *first, const char *last) {
    an_pass_options options = p->passes;
    bool began = first == NULL;
    options.form = form;
    if (!first && p->weights && an_form_trains(form)) AN_TRY_RETURN(weigh_loss(p, g));
    for (const an_pass *pass = an_pass_table; pass->name; pass++) {
        began = began || !strcmp(pass->name, first);
        if (began) AN_TRY_RETURN(pass->run(g, &options));
        if (last && !strcmp(pass->name, last)) break;
    }
    return AN_OK;
}

/* Scalars have one slot a name in all forms; constants one a node. Both, and whether low copies of parameters are read,
 * are known only after the passes. */
static an_status assign_slots(an_plan *p, an_graph *g) {
    for (an_node *n = g->first; n; n = n->next) {
        an_result *r = &n->outputs[0];
        if (n->op->flags & AN_OP_SOURCE && r->storage == AN_STORAGE_LOW) p->low = r->dtype;
        if (n->op->flags & AN_OP_SOURCE && r->storage == AN_STORAGE_CONSTANT) {
            r->place = p->constant_bytes;
            p->constant_bytes += AN_SLOT_BYTES;
        }
        if (!(n->op->flags & AN_OP_SOURCE) || r->storage != AN_STORAGE_SCALAR) continue;
        const char *name = *(const char **)an_node_attribute(n, "name", AN_ATTRIBUTE_STRING);
        int slot = 0;
        while (slot < p->scalar_count && strcmp(p->scalars[slot], name)) slot++;
        if (slot == AN_MAX_SCALARS)
            return AN_ERROR(p->ctx, AN_ERR_OVERFLOW, "a plan may have at most %d scalars", AN_MAX_SCALARS);
        if (slot == p->scalar_count) {
            p->scalars[p->scalar_count] = name;
            p->scalar_dtypes[p->scalar_count++] = r->dtype;
        }
        r->place = slot * AN_SLOT_BYTES;
    }
    p->scalar_bytes = p->scalar_count * AN_SLOT_BYTES;
    if (g->shard && g->shard->low != AN_DTYPE_NONE) p->low = g->shard->low;
    return AN_OK;
}

static void count_tables(const an_graph *g, an_form_tables *t) {
    for (const an_node *n = g->first; n; n = n->next) {
        if (n->op->flags & AN_OP_KEEPS_INPUTS) t->outputs++;
        if (!an_node_runs(n)) continue;
        t->instructions++;
        t->tensors += (size_t)(n->input_count + n->output_count);
        t->attribute_bytes += an_round_up(n->op->attribute_bytes, sizeof(max_align_t));
    }
}

void an_plan_bind(const an_plan *p, an_graph *g, an_form form) {
    const int64_t *maxima = p->maxima[form == AN_FORM_EVALUATE];
    an_dimensions *d = &g->dimensions;
    for (size_t i = 0; maxima && i < d->symbol_count; i++) d->symbols[i].maximum = d->symbols[i].value = maxima[i];
}

static an_status compile(an_plan *p, an_form form) {
    an_graph **g = &p->forms[form];
    an_flat_sizes sizes;
    AN_TRY_RETURN(an_graph_clone(g, p->model));
    AN_TRY_RETURN(an_graph_lay_out(*g, true, &sizes));
    an_plan_bind(p, *g, form);
    AN_TRY_RETURN(an_plan_run_passes(p, *g, form, NULL, NULL));
    AN_TRY_RETURN(assign_slots(p, *g));
    count_tables(*g, &p->tables[form]);
    if ((*g)->memory->arena_bytes > p->arena_bytes) p->arena_bytes = (*g)->memory->arena_bytes;
    if ((*g)->memory->arena_without_scratch > p->memory.activations)
        p->memory.activations = (*g)->memory->arena_without_scratch;
    return AN_OK;
}

/* What the autodiff pass has found of contributions to gradients. */
static void take_extras(an_plan *p) {
    const an_graph *g = p->forms[AN_FORM_TRAIN_FIRST];
    for (size_t i = 0; i < g->parameter_count; i++) {
        an_parameter *own = &p->model->parameters[i];
        own->extras = g->parameters[i].extras;
        own->extra = g->parameters[i].extra;
        if (own->extras) p->sizes.gradient_elements = own->extra + own->extras * an_parameter_padded(own);
    }
}

void an_plan_count_rank(an_plan *plan, const an_leaf_range *range, int64_t checkpoint) {
    const an_plan *p = plan;
    const bool trains = p->forms[AN_FORM_TRAIN_FIRST] != NULL;
    an_plan_memory *m = &plan->memory;
    const int64_t flat = an_params_flat_bytes(&p->sizes), gradient = an_params_gradient_bytes(&p->sizes);
    *m = (an_plan_memory){.size = sizeof *m, .activations = m->activations, .checkpoint = checkpoint};
    m->weights = flat + an_params_low_bytes(&p->sizes, p->low) + p->sizes.frozen_bytes + p->sizes.state_bytes;
    m->gradients = trains ? gradient : 0;
    const int64_t buffers = p->passes.scatters ? 0 : an_forest_depth(range, an_plan_together(p)) - !p->accumulates;
    m->leaves = trains ? buffers * gradient : 0;
    m->optimizer = trains ? an_kept_count(p->kept) * flat : 0;
    m->scratch = p->arena_bytes - m->activations;
    m->inputs = p->sizes.input_bytes + p->scalar_bytes + p->constant_bytes + p->sizes.program_state_bytes;
    m->tables = an_params_table_bytes(p->model) + an_program_table_bytes(p);
    m->peak = m->weights + m->gradients + m->leaves + m->optimizer + m->activations + m->scratch + m->inputs +
              m->tables + m->checkpoint;
}

void an_plan_divide(an_plan *plan, const an_params_pieces *pieces) {
    an_plan_memory *m = &plan->memory;
    const an_flat_sizes *sizes = &plan->sizes;
    const an_dtype dtype = sizes->trainable_dtype;
    m->peak -= m->weights + m->gradients + m->optimizer;
    m->weights =
        an_params_buffer_bytes(sizes, pieces, AN_FLAT_MASTERS, dtype) + sizes->frozen_bytes + sizes->state_bytes;
    if (plan->low != AN_DTYPE_NONE) m->weights += an_params_buffer_bytes(sizes, pieces, AN_FLAT_LOW, plan->low);
    if (m->gradients) m->gradients = an_params_buffer_bytes(sizes, pieces, AN_FLAT_GRADIENTS, dtype);
    if (m->optimizer)
        m->optimizer = an_kept_count(plan->kept) * an_params_buffer_bytes(sizes, pieces, AN_FLAT_MOMENTS, dtype);
    m->peak += m->weights + m->gradients + m->optimizer;
}

an_status an_plan_count_trainer(an_plan *plan, size_t bytes) {
    an_plan_memory *m = &plan->memory;
    int64_t peak;
    if (bytes > PTRDIFF_MAX || !an_add_i64(m->peak, (int64_t)bytes, &peak))
        return AN_ERROR(plan->ctx, AN_ERR_OVERFLOW, "the run needs more memory than can be addressed");
    m->peak = peak;
    m->trainer += (int64_t)bytes;
    return AN_OK;
}

an_status an_plan_count_messages(an_plan *plan, size_t waiting, size_t bytes) {
    an_plan_memory *m = &plan->memory;
    AN_TRY_RETURN(an_plan_count_trainer(plan, waiting));
    AN_TRY_RETURN(an_plan_count_trainer(plan, bytes));
    m->trainer -= (int64_t)waiting + (int64_t)bytes;
    m->gradients += (int64_t)waiting;
    m->messages += (int64_t)bytes;
    return AN_OK;
}

/* Slices with symbolic bounds must fit at the largest sizes: a sequence may not be longer than its table of
 * positions. */
static an_status check_views(an_graph *g) {
    for (const an_node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->output_count; i++) AN_TRY_RETURN(an_result_check_bounds(g, n, &n->outputs[i]));
    return AN_OK;
}

/* f32 and f64 are what the graph is written in; only a lower one is a choice. */
static an_status choose_precision(an_plan *p, an_dtype precision) {
    if (precision == AN_DTYPE_NONE || precision == AN_DTYPE_BF16 || precision == AN_DTYPE_F16) {
        p->passes.precision = precision;
        return AN_OK;
    }
    return AN_ERROR(p->ctx, AN_ERR_ARGUMENT, "a plan can only choose bf16 or f16, not %s: build the graph in that type",
                    an_dtype_name(precision));
}

static an_status bind_to(an_plan *p, const an_plan_options *options, const int64_t *maxima) {
    for (int i = 0; i < options->symbol_count; i++)
        AN_TRY_RETURN(an_graph_bind(p->model, options->symbols[i], maxima[i]));
    return AN_OK;
}

/* Forms that differ keep their own maxima; the model has the larger ones, and so have the inputs, which all forms
 * read. */
static an_status bind_apart(an_plan *p, const an_plan_options *options) {
    an_context *ctx = p->ctx;
    an_dimensions *d = &p->model->dimensions;
    for (int k = 0; k < 2; k++) {
        AN_TRY_RETURN(an_alloc(ctx, (void **)&p->maxima[k], d->symbol_count, sizeof *p->maxima[k]));
        AN_TRY_RETURN(bind_to(p, options, k ? options->evaluation_maxima : options->maxima));
        for (size_t i = 0; i < d->symbol_count; i++) p->maxima[k][i] = d->symbols[i].maximum;
    }
    for (size_t i = 0; i < d->symbol_count; i++)
        d->symbols[i].maximum = d->symbols[i].value = an_larger(p->maxima[0][i], p->maxima[1][i]);
    return AN_OK;
}

static an_status bind_symbols(an_plan *p, const an_plan_options *options) {
    an_context *ctx = p->ctx;
    an_dimensions *d = &p->model->dimensions;
    AN_TRY_RETURN(options->evaluation_maxima ? bind_apart(p, options) : bind_to(p, options, options->maxima));
    for (size_t i = 0; i < d->symbol_count; i++)
        if (d->symbols[i].maximum < 1)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "symbol '%s' of graph '%s' has no maximum: set it in the plan's options",
                            d->symbols[i].name, p->model->name);
    return AN_OK;
}

/* The name of the symbol is the model's own. */
static an_status find_samples(an_plan *p, const an_plan_options *options) {
    const an_dimensions *d = &p->model->dimensions;
    p->passes.leaves = options->run_leaves;
    for (size_t i = 0; i < d->symbol_count && options->samples && !p->passes.samples; i++)
        if (!strcmp(d->symbols[i].name, options->samples)) p->passes.samples = d->symbols[i].name;
    if (options->run_leaves < 2 || p->passes.samples) return AN_OK;
    return AN_ERROR(p->ctx, AN_ERR_UNKNOWN, "graph '%s' has no symbol '%s' for samples", p->model->name,
                    options->samples);
}

/* The leaves that the planned rank has. */
static an_status find_leaves(an_context *ctx, const an_plan_options *o, an_leaf_range *range) {
    const int64_t leaves = o->leaves ? o->leaves : 1;
    const int ranks = o->ranks ? o->ranks : 1;
    if (leaves < 0 || leaves > AN_MOST_LEAVES)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "leaves is %lld, but must be 1 to %d", (long long)leaves, AN_MOST_LEAVES);
    if (ranks < 0 || ranks > leaves || o->rank < 0 || o->rank >= ranks)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "rank %d of %d cannot be planned with %lld leaves: there must be a leaf for every rank",
                        o->rank, ranks, (long long)leaves);
    const an_borders borders = an_borders_choose(leaves, ranks);
    *range = an_borders_range(&borders, o->rank);
    return AN_OK;
}

an_status an_plan_create(an_plan **plan, an_context *ctx, const an_graph *graph, const an_plan_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, plan, graph);
    an_status status;
    an_plan *p = NULL;
    an_plan_options own;
    const an_plan_options *const options = &own;
    *plan = NULL;
    AN_TRY(an_plan_options_read(ctx, &own, given));
    AN_CHECK(ctx, graph->is_verified, AN_ERR_STATE,
             "graph '%s' is not verified: call an_graph_verify after the last change", graph->name);
    unsigned programs = options->programs;
    if (!programs) programs = graph->loss ? AN_PROGRAM_TRAINING | AN_PROGRAM_EVALUATION : AN_PROGRAM_PREDICTION;
    AN_CHECK(ctx, options->moments >= 0 && options->moments <= AN_MOST_MOMENTS, AN_ERR_ARGUMENT,
             "moments is %d; it must be from 0 to %d", options->moments, AN_MOST_MOMENTS);
    AN_CHECK(ctx, options->symbol_count == 0 || (options->symbol_count > 0 && options->symbols && options->maxima),
             AN_ERR_ARGUMENT, "symbol_count is %d, but symbols or maxima is NULL", options->symbol_count);
    AN_CHECK(ctx, (unsigned)options->shard < AN_SHARD_COUNT, AN_ERR_ARGUMENT, "shard is %d; it must be from 0 to %d",
             (int)options->shard, AN_SHARD_COUNT - 1);
    AN_CHECK(ctx, options->min_elements >= 0, AN_ERR_ARGUMENT, "min_elements is %lld, but must not be negative",
             (long long)options->min_elements);
    an_leaf_range range;
    AN_TRY(find_leaves(ctx, options, &range));
    AN_TRY(an_alloc(ctx, (void **)&p, 1, sizeof *p));
    p->ctx = ctx;
    p->kept = (an_kept){.moments = options->moments, .average = options->average};
    if (options->kernels) {
        p->kernel_bytes = strlen(options->kernels) + 1;
        AN_TRY(an_alloc(ctx, (void **)&p->kernels, p->kernel_bytes, 1));
        memcpy(p->kernels, options->kernels, p->kernel_bytes);
        p->passes.kernels = p->kernels;
    }
    p->passes.unfused = !options->fused;
    AN_TRY(choose_precision(p, options->precision));
    AN_CHECK(ctx, !options->f32_storage || options->precision == AN_DTYPE_BF16, AN_ERR_ARGUMENT,
             "f32_storage rounds the inputs of products to bf16, so it needs precision bf16: it is %s",
             an_dtype_name(options->precision));
    p->passes.f32_storage = options->f32_storage;
    AN_CHECK(ctx, options->recompute != AN_RECOMPUTE_AUTO, AN_ERR_ARGUMENT,
             "recompute is auto, which is what a trainer chooses by the memory of the machine: choose one for a plan");
    p->accumulates = options->accumulates && options->shard >= AN_SHARD_GRADIENTS;
    p->passes.scatters = options->shard >= AN_SHARD_GRADIENTS && !p->accumulates;
    p->passes.gathers = options->shard >= AN_SHARD_FULL;
    p->passes.exchanges = options->ranks > 1 && !p->passes.scatters;
    p->passes.extras = options->leaves > 1 && (options->ranks > 1 || options->run_leaves < options->leaves);
    AN_CHECK(ctx, options->run_leaves < 2 || (options->samples && options->run_leaves <= AN_MOST_LEAVES),
             AN_ERR_ARGUMENT, "run_leaves is %lld, but must be 0 to %d, and above 1 only if `samples` names a symbol",
             (long long)options->run_leaves, AN_MOST_LEAVES);
    AN_TRY(an_graph_clone(&p->model, graph));
    AN_TRY(find_samples(p, options));
    p->model->min_elements = options->min_elements;
    AN_TRY(bind_symbols(p, options));
    if (options->weighs_samples) AN_TRY(add_weights(p));
    if (options->mixes_targets) AN_TRY(add_mixed_targets(p, options->weighs_samples));
    AN_TRY(check_views(p->model));
    AN_TRY(an_graph_lay_out(p->model, true, &p->sizes));
    if (programs & AN_PROGRAM_EVALUATION) AN_TRY(compile(p, AN_FORM_EVALUATE));
    if (programs & AN_PROGRAM_PREDICTION) AN_TRY(compile(p, AN_FORM_PREDICT));
    AN_TRY(an_plan_choose_recompute(p, options, programs & AN_PROGRAM_TRAINING));
    if (programs & AN_PROGRAM_TRAINING) {
        AN_TRY(compile(p, AN_FORM_TRAIN_FIRST));
        take_extras(p);
        if (!p->passes.scatters) AN_TRY(compile(p, AN_FORM_TRAIN_NEXT));
    }
    an_plan_count_rank(p, &range, options->checkpoint);
    *plan = p;
    return AN_OK;

fail:
    an_plan_destroy(&p);
    return status;
}

void an_plan_destroy(an_plan **plan) {
    an_plan *p = plan ? *plan : NULL;
    if (!p) return;
    an_context *ctx = p->ctx;
    for (int i = 0; i < AN_FORMS; i++) an_graph_destroy(&p->forms[i]);
    for (int k = 0; k < 2; k++)
        an_release(ctx, (void **)&p->maxima[k], p->model ? p->model->dimensions.symbol_count : 0, sizeof *p->maxima[k]);
    an_graph_destroy(&p->model);
    an_release(ctx, (void **)&p->kernels, p->kernel_bytes, 1);
    an_release(ctx, (void **)plan, 1, sizeof *p);
}

/* ---- questions ---- */

const char *an_plan_one_leaf(const an_plan *plan) {
    AN_NEED_OR(NULL, plan);
    const an_graph *g = plan->forms[AN_FORM_TRAIN_FIRST];
    return g ? g->one_leaf : NULL;
}

an_status an_plan_memory_get(const an_plan *plan, an_plan_memory *memory) {
    AN_GUARD;
    AN_NEED(plan, memory);
    return an_plan_memory_write(plan->ctx, memory, &plan->memory);
}

void an_plan_count_traffic(an_plan *plan, const an_plan_traffic *traffic) {
    plan->traffic = *traffic;
}

an_status an_plan_traffic_get(const an_plan *plan, an_plan_traffic *traffic) {
    AN_GUARD;
    AN_NEED(plan, traffic);
    return an_plan_traffic_write(plan->ctx, traffic, &plan->traffic);
}

static const an_graph *form_of(const an_plan *plan, an_form form) {
    return (unsigned)form < AN_FORMS ? plan->forms[form] : NULL;
}

static an_status no_form(const an_plan *plan) {
    return AN_ERROR(plan->ctx, AN_ERR_ARGUMENT, "the plan does not have this form: add it to an_plan_options.programs");
}

an_status an_plan_cost_get(const an_plan *plan, an_form form, an_plan_cost *cost) {
    AN_GUARD;
    AN_NEED(plan, cost);
    an_context *ctx = plan->ctx;
    const an_graph *g = form_of(plan, form);
    AN_TRY_RETURN(an_plan_cost_check(ctx, cost));
    if (!g) return no_form(plan);
    an_plan_cost own = {.nodes = (int64_t)g->node_count, .recompute_ratio = 1};
    double again = 0;
    for (const an_node *n = g->first; n; n = n->next) {
        if (!an_node_runs(n)) continue;
        an_cost c = an_node_cost(g, n);
        double seconds = an_node_seconds(g, n);
        own.instructions++;
        own.flops += c.flops;
        own.bytes += c.bytes;
        own.seconds += seconds;
        again += n->is_copy ? seconds : 0;
    }
    if (again > 0) own.recompute_ratio = own.seconds / (own.seconds - again);
    return an_plan_cost_write(ctx, cost, &own);
}

int64_t an_plan_life_count(const an_plan *plan, an_form form) {
    AN_NEED_OR(0, plan);
    const an_graph *g = form_of(plan, form);
    return g ? (int64_t)g->memory->life_count : 0;
}

static bool is_in_block(const an_graph *g, const an_node *node) {
    int block = node->block;
    while (block > 0 && g->blocks[block].is_scope) block = g->blocks[block].parent;
    return block > 0;
}

/* The gradients of a unit lie in one root. Where the largest of them is in no block, its name says more than that. */
static const char *path_of(const an_graph *g, const an_node *node) {
    const an_parameter *largest = NULL;
    if (node->op != &an_op_collect_gradients) return an_plan_owner(node)->path;
    for (const an_node *n = g->first; n; n = n->next) {
        if (n->op != &an_op_unit_grad || an_node_input(n, 0)->node != node) continue;
        const an_parameter *p = &g->parameters[((const an_unit_grad_attributes *)n->attributes)->grad.parameter];
        if (!largest || p->elements > largest->elements) largest = p;
    }
    return largest && !is_in_block(g, largest->node) ? largest->name : node->path;
}

an_status an_plan_life_get(const an_plan *plan, an_form form, int64_t index, an_plan_life *life) {
    AN_GUARD;
    AN_NEED(plan, life);
    an_context *ctx = plan->ctx;
    const an_graph *g = form_of(plan, form);
    AN_TRY_RETURN(an_plan_life_check(ctx, life));
    if (!g) return no_form(plan);
    if (index < 0 || index >= (int64_t)g->memory->life_count)
        return AN_ERROR(plan->ctx, AN_ERR_ARGUMENT, "life %lld does not exist", (long long)index);
    const an_life *l = &g->memory->lives[index];
    const an_plan_life own = {.op = l->node->op->name,
                              .path = path_of(g, l->node),
                              .begin = l->begin,
                              .end = l->end,
                              .offset = l->offset,
                              .bytes = l->bytes,
                              .backward = l->node->phase == AN_PHASE_BACKWARD,
                              .scratch = l->scratch};
    return an_plan_life_write(ctx, life, &own);
}

#define AN_PASS(pass) " " #pass
static const char pass_names[] =
#include "pass/pass.def"
    ;
#undef AN_PASS

an_status an_plan_dump(const an_plan *plan, an_form form, const char *pass, char **text) {
    AN_GUARD;
    AN_NEED(plan, text);
    an_status status;
    an_context *ctx = plan->ctx;
    an_graph *g = NULL;
    an_text t;
    bool known = pass == NULL;
    *text = NULL;
    an_text_init(&t, ctx);
    for (const an_pass *p = an_pass_table; p->name; p++) known = known || !strcmp(p->name, pass);
    AN_CHECK(ctx, known, AN_ERR_UNKNOWN, "there is no pass '%s'; the passes are, in order:%s", pass, pass_names);
    AN_TRY(an_graph_clone(&g, plan->model)); /* passes are run again: a plan keeps only their last state */
    an_flat_sizes sizes;
    AN_TRY(an_graph_lay_out(g, true, &sizes));
    an_plan_bind(plan, g, form);
    AN_TRY(an_plan_run_passes(plan, g, form, NULL, pass));
    AN_TRY(an_graph_dump(g, &t));
    AN_TRY(t.status);
    AN_TRY(an_text_take(&t, text));
    status = AN_OK;
fail:
    an_text_destroy(&t);
    an_graph_destroy(&g);
    return status;
}
