#include "step/leaves.h"

#include <string.h>

#include "comm/add.h"
#include "comm/comm.h"
#include "ops/ops.h"

/* ---- gradients ---- */

/* Buffer i ← buffer i + buffer i + 1, of elements begin … end - 1. It points into itself, so it stays where it is. */
typedef struct {
    an_tensor src[2];
    an_call call;
} sum_call;

static void make_sum_call(const an_leaves *l, int64_t i, int64_t begin, int64_t end, sum_call *c) {
    const an_dtype dtype = l->params->sizes.trainable_dtype;
    for (int k = 0; k < 2; k++)
        c->src[k] = (an_tensor){.data = (char *)l->buffers[i + k] + (size_t)begin * an_dtype_size(dtype),
                                .dtype = dtype,
                                .ndims = 1,
                                .dims = {end - begin},
                                .strides = {1}};
    c->call = (an_call){.ctx = l->ctx, .src_count = 2, .dst_count = 1, .src = c->src, .dst = c->src};
}

static an_status add_buffers(an_leaves *l, int64_t i, int64_t begin, int64_t end) {
    const an_device *device = l->program->device;
    sum_call sum;
    if (!l->add) return AN_OK;
    make_sum_call(l, i, begin, end, &sum);
    return device->launch(device, l->add, &sum.call);
}

/* Elements begin … end - 1 of the leaf under way. */
static void round_leaf(const an_leaves *l, int64_t begin, int64_t end) {
    if (l->is_bf16) an_round_to_bf16(l->ctx, (float *)l->buffers[l->forest->count] + begin, end - begin);
}

/* Adds the last two nodes. Gradients that were exchanged were added before, unit by unit. */
static an_status join(an_leaves *l) {
    if (l->started == 0) AN_TRY_RETURN(add_buffers(l, l->forest->count - 2, 0, l->params->sizes.gradient_elements));
    an_forest_join(l->forest);
    return AN_OK;
}

static an_status join_until(an_leaves *l, int64_t next) {
    while (an_forest_must_add(l->forest, next)) AN_TRY_RETURN(join(l));
    return AN_OK;
}

/* ---- exchange ---- */

/* How many nodes are left when `parts` nodes are there and no more leaves come. The last leaf may still be under
 * way. */
static int64_t count_left(const an_leaves *l, int64_t parts) {
    an_forest *f = l->forest;
    const int64_t count = f->count;
    int64_t left = parts;
    if (parts > count) f->parts[count] = l->leaf;
    for (f->count = (int32_t)parts; an_forest_must_add(f, INT64_MAX); f->count--) left--;
    f->count = (int32_t)count;
    return left;
}

/* The op `exchange`: the gradients of a unit are complete, in the buffers of the nodes. */
static an_status send_unit(void *user, int unit, void *root, an_status failed) {
    an_leaves *l = user;
    an_context *ctx = l->ctx;
    (void)root;
    if (unit >= l->unit_count) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "unit %d does not exist", unit);
    const int64_t begin = l->sent[unit].pages.begin * AN_PAGE, end = l->sent[unit].pages.end * AN_PAGE;
    const bool has_nodes = failed == AN_OK && (l->leaf >= 0 || l->forest->count > 0);
    an_status status = AN_OK;
    if (l->leaf >= 0 && failed == AN_OK) { /* it was not added to its neighbours yet */
        round_leaf(l, begin, end);
        const int64_t parts = l->forest->count + 1, left = count_left(l, parts);
        for (int64_t i = parts; i > left && status == AN_OK; i--) status = add_buffers(l, i - 2, begin, end);
    }
    l->started++; /* whatever happened here: other ranks wait for it */
    const an_status started = l->send(l->send_user, unit, has_nodes ? l->nodes : NULL);
    return status == AN_OK ? started : status;
}

/* Every node has a buffer, whatever is in it: the sum of a step that fails is not used. */
static an_status send_to_reduction(void *user, int unit, void *const *nodes) {
    const an_leaves *l = user;
    (void)nodes;
    return an_reduction_start(l->reduction, unit, l->nodes, l->params->gradients);
}

static void join_ranks(an_leaves *l) {
    l->program->exchange.gradients = (an_gradient_exchange){.user = l, .send_unit = send_unit};
}

static void open_exchange(const an_leaves *l, bool open) {
    l->program->exchange.gradients.is_open = open;
}

/* Only if all nodes are there: the gradients of absent ones are made after the run, where there is room for them. */
static void expect_last(an_leaves *l) {
    if (!l->send || count_left(l, l->forest->count + (l->leaf >= 0)) != l->node_count) return;
    for (int i = 0; i < l->node_count; i++) l->nodes[i] = l->buffers[i];
    open_exchange(l, true);
}

void an_leaves_send_next(an_leaves *l, bool on) {
    l->nodes[0] = l->buffers[0];
    open_exchange(l, on);
}

static void fill_negative_zero(const an_leaves *l, void *buffer) {
    const int64_t elements = l->params->sizes.gradient_elements;
    for (int64_t i = 0; i < elements; i++) {
        if (l->params->sizes.trainable_dtype == AN_DTYPE_F64)
            ((double *)buffer)[i] = -0.0;
        else
            ((float *)buffer)[i] = -0.0F;
    }
}

/* Where the gradients of every node are. Those of a node without samples are -0.0, which changes no sum
 * (comm/forest.h), in a buffer that is free. */
static void find_nodes(an_leaves *l) {
    an_tree_node nodes[AN_FOREST_MOST];
    an_forest_nodes(&l->range, nodes);
    int64_t present = l->forest->count - 1, vacant = l->forest->count;
    for (int i = l->node_count - 1; i >= 0; i--) {
        const bool is_absent = present < 0 || l->forest->parts[present] < nodes[i].first;
        l->nodes[i] = l->buffers[is_absent ? vacant++ : present--];
        if (is_absent) fill_negative_zero(l, l->nodes[i]);
    }
}

/* What was not exchanged during the last backward is exchanged now, in the same order. */
static an_status exchange_rest(an_leaves *l, an_status status) {
    an_context *ctx = l->ctx;
    open_exchange(l, false);
    if (l->started == 0) {
        if (status == AN_OK)
            find_nodes(l);
        else
            for (int i = 0; i < l->node_count; i++) l->nodes[i] = l->buffers[i]; /* nobody will use them */
        open_exchange(l, true);
        an_program_communicate(l->program, AN_FORM_TRAIN_FIRST, status);
        open_exchange(l, false);
    }
    if (l->started < l->unit_count)
        return AN_ERROR(ctx, AN_ERR_STATE, "the gradients of %d units of %d were exchanged", l->started, l->unit_count);
    return an_reduction_finish(l->reduction);
}

/* ---- making them ---- */

/* Places for gradient buffers: most of them are NULL where micro-batches have several leaves. */
static size_t room_for_buffers(const an_leaf_range *range) {
    return (size_t)an_forest_depth(range, 1);
}

/* The units of a graph, for the reduction; both arrays have room for an_units_most. */
static an_reduction_options find_units(const an_graph *g, const an_borders *borders, an_unit *units,
                                       an_reduction_unit *exchanged) {
    const int count = an_units_find(g, units, NULL, NULL);
    an_reduction_options o = {.borders = *borders, .units = exchanged, .unit_count = count};
    for (int i = 0; i < count; i++)
        exchanged[i] = (an_reduction_unit){.pages = {units[i].begin / AN_PAGE, units[i].end / AN_PAGE},
                                           .name = *units[i].name ? units[i].name : "the rest of the model",
                                           .turn = units[i].turn};
    if (count > 0) o.pages = exchanged[count - 1].pages.end;
    return o;
}

/* Gradients are the reduction's own where ranks of a host share memory. */
static void share_gradients(an_reduction_options *o, int64_t together, int rank, int host_ranks) {
    const an_leaf_range range = an_borders_range(&o->borders, rank);
    if (an_reduction_shares(o, host_ranks) == 1) return;
    o->buffers = an_forest_depth(&range, together);
    o->uses_window = true;
}

static an_status predict_reduction(const an_plan *plan, const an_borders *borders, bool scatters, int rank,
                                   int host_ranks, an_reduction_cost *cost) {
    an_status status;
    const an_graph *model = plan->model;
    an_context *ctx = model->ctx;
    an_unit *units = NULL;
    an_reduction_unit *exchanged = NULL;
    const size_t maximum = an_units_most(model);
    AN_TRY(an_alloc(ctx, (void **)&units, maximum, sizeof *units));
    AN_TRY(an_alloc(ctx, (void **)&exchanged, maximum, sizeof *exchanged));
    an_reduction_options options = find_units(model, borders, units, exchanged);
    options.scatters = scatters;
    options.dtype = AN_DTYPE_F32;
    for (size_t i = 0; i < model->parameter_count; i++)
        if (model->parameters[i].node->outputs[0].storage == AN_STORAGE_MASTER)
            options.dtype = model->parameters[i].node->outputs[0].dtype;
    share_gradients(&options, an_plan_together(plan), rank, host_ranks);
    *cost = an_reduction_predict(&options, rank, host_ranks);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&exchanged, maximum, sizeof *exchanged);
    an_release(ctx, (void **)&units, maximum, sizeof *units);
    return status;
}

an_status an_leaves_predict(const an_plan *plan, const an_borders *borders, bool scatters, int rank, int host_ranks,
                            size_t *bytes, an_reduction_cost *cost) {
    const an_leaves *l = NULL; /* for its members' sizes */
    const an_graph *model = plan->model;
    an_context *ctx = model->ctx;
    const an_leaf_range range = an_borders_range(borders, rank);
    *cost = (an_reduction_cost){0};
    bool fits = an_add_elements(bytes, room_for_buffers(&range), sizeof *l->buffers);
    if (borders->ranks > 1) {
        AN_TRY_RETURN(predict_reduction(plan, borders, scatters, rank, host_ranks, cost));
        const size_t head = cost->window_bytes ? cost->window_bytes - cost->buffer_bytes : 0;
        fits = fits && an_add_elements(bytes, cost->bytes, 1) && an_add_elements(bytes, head, 1) &&
               an_add_elements(bytes, an_units_most(model), sizeof *l->units + sizeof *l->exchanged);
    }
    return fits ? AN_OK : AN_ERROR(ctx, AN_ERR_OVERFLOW, "the leaves of a step do not fit in memory");
}

static void take_back(void *user) {
    an_reduction *reduction = user;
    an_reduction_destroy(&reduction);
}

/* Of the gradients of all units, of all ranks. */
static an_status make_reduction(an_leaves *l, const an_borders *borders) {
    an_context *ctx = l->ctx;
    const an_graph *form = l->program->forms[AN_FORM_TRAIN_FIRST].graph;
    an_tree_node nodes[AN_FOREST_MOST];
    if (borders->ranks == 1) return AN_OK;
    l->node_count = an_forest_nodes(&l->range, nodes);
    l->unit_capacity = (int)an_units_most(form);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&l->units, (size_t)l->unit_capacity, sizeof *l->units));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&l->exchanged, (size_t)l->unit_capacity, sizeof *l->exchanged));
    an_reduction_options options = find_units(form, borders, l->units, l->exchanged);
    options.dtype = l->params->sizes.trainable_dtype;
    options.scatters = l->params->pieces.shards != NULL; /* each rank updates its own pieces */
    l->unit_count = options.unit_count;
    l->sent = l->exchanged;
    l->send = send_to_reduction;
    l->send_user = l;
    join_ranks(l);
    share_gradients(&options, an_plan_together(l->program->plan), an_axis_rank(ctx, AN_AXIS_DATA), an_host_ranks(ctx));
    if (!options.uses_window) return an_reduction_create(&l->reduction, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &options);
    if (l->params->lender.is_busy)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "these parameters have a stepper, whose gradients the ranks of this host share: destroy it "
                        "before another one is created");
    /* First room is made for them. */
    an_params_drop_gradients(l->params);
    AN_TRY_RETURN(an_reduction_create(&l->reduction, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &options));
    l->borrows = true;
    an_params_borrow_gradients(l->params, an_reduction_buffer(l->reduction, 0),
                               &(an_lender){.take_back = take_back, .user = l->reduction, .is_busy = true});
    return AN_OK;
}

/* The buffers of nodes: the first is the parameters', unless it is of a group. All are the
 * reduction's where ranks share them. */
static an_status make_buffers(an_leaves *l) {
    an_context *ctx = l->ctx;
    const an_device *device = l->program->device;
    const size_t bytes = (size_t)an_params_gradient_bytes(&l->params->sizes);
    l->buffer_count = an_forest_depth(&l->range, an_plan_together(l->program->plan));
    l->buffer_room = room_for_buffers(&l->range);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&l->buffers, l->buffer_room, sizeof *l->buffers));
    if (l->first_own > 0) l->buffers[0] = l->params->gradients;
    if (l->borrows) l->first_own = l->buffer_count;
    for (int i = 1; i < l->first_own && bytes; i++) l->buffers[i] = an_reduction_buffer(l->reduction, i);
    for (int i = l->first_own; i < l->buffer_count && bytes; i++)
        AN_TRY_RETURN(device->allocate(device, ctx, &l->buffers[i], bytes));
    for (int i = l->borrows ? 0 : l->first_own; i < l->buffer_count && bytes; i++)
        AN_TRY_RETURN(device->fill(device, ctx, l->buffers[i], 0, bytes));
    if (l->buffer_count == 1 || !bytes) return AN_OK;
    sum_call sum;
    make_sum_call(l, 0, 0, l->params->sizes.gradient_elements, &sum);
    return an_device_kernel(ctx, an_op_add.name, &sum.call, &l->add);
}

an_status an_leaves_make(an_leaves *l, an_program *program, const an_borders *borders, bool is_bf16,
                         an_forest *forest) {
    an_status status;
    an_context *ctx = program->ctx;
    *l = (an_leaves){.ctx = ctx,
                     .program = program,
                     .params = program->params,
                     .range = an_borders_range(borders, an_axis_rank(ctx, AN_AXIS_DATA)),
                     .forest = forest,
                     .width = an_leaf_width(program->plan->model),
                     .narrow = an_leaf_narrow(program->plan->model),
                     .leaf = -1,
                     .is_bf16 = is_bf16,
                     .first_own = 1};
    AN_TRY(make_reduction(l, borders));
    AN_TRY(make_buffers(l));
    return AN_OK;
fail:
    if (!l->params->gradients) (void)an_params_make_gradients(l->params); /* if there is no memory, they have none */
    an_leaves_destroy(l);
    return status;
}

size_t an_leaves_group_bytes(int64_t leaves) {
    const an_leaves *l = NULL; /* for its members' sizes */
    return room_for_buffers(&(an_leaf_range){0, leaves, leaves}) * sizeof *l->buffers;
}

an_status an_leaves_make_group(an_leaves *l, an_program *program, const an_leaf_group *group) {
    *l = (an_leaves){.ctx = program->ctx,
                     .program = program,
                     .params = program->params,
                     .range = group->range,
                     .width = an_leaf_width(program->plan->model),
                     .narrow = an_leaf_narrow(program->plan->model),
                     .leaf = -1,
                     .send = group->send,
                     .send_user = group->send_user,
                     .sent = group->units,
                     .unit_count = group->unit_count,
                     .node_count = 1};
    join_ranks(l);
    const an_status status = make_buffers(l);
    if (status != AN_OK) an_leaves_destroy(l);
    return status;
}

void an_leaves_regroup(an_leaves *l, const an_leaf_range *range, an_forest *forest) {
    l->range = *range;
    l->forest = forest;
    an_leaves_start(l);
}

void an_leaves_destroy(an_leaves *l) {
    an_context *ctx = l->ctx;
    if (!ctx) return;
    const an_device *device = l->program->device;
    const size_t bytes = (size_t)an_params_gradient_bytes(&l->params->sizes);
    an_leaves_cancel(l); /* the parameters get their own buffer back */
    if (l->send) l->program->exchange.gradients = (an_gradient_exchange){0};
    if (l->borrows)
        l->params->lender.is_busy = false; /* they stay where they are */
    else
        an_reduction_destroy(&l->reduction);
    an_release(ctx, (void **)&l->exchanged, (size_t)l->unit_capacity, sizeof *l->exchanged);
    an_release(ctx, (void **)&l->units, (size_t)l->unit_capacity, sizeof *l->units);
    for (int i = l->first_own; l->buffers && i < l->buffer_count; i++)
        if (l->buffers[i]) device->release(device, ctx, &l->buffers[i], bytes);
    an_release(ctx, (void **)&l->buffers, l->buffer_room, sizeof *l->buffers);
    l->ctx = NULL;
}

/* ---- a step ---- */

void an_leaves_start(an_leaves *l) {
    an_forest_begin(l->forest, &l->range, l->width);
    l->forest->narrow = l->narrow;
    l->leaf = -1;
    l->started = 0;
}

/* What was exchanged during its backward was rounded before, unit by unit. */
static void leave(an_leaves *l) {
    if (l->leaf < 0) return;
    if (l->started == 0) round_leaf(l, 0, l->params->sizes.gradient_elements);
    an_forest_push(l->forest, l->leaf);
    l->leaf = -1;
}

/* Room for another node: this rank has more of the caller's samples than what was planned for. It is never one of those
 * that are left in the end, so it need not lie in memory that ranks share. */
static an_status add_buffer(an_leaves *l) {
    an_context *ctx = l->ctx;
    const an_device *device = l->program->device;
    const size_t bytes = (size_t)an_params_gradient_bytes(&l->params->sizes);
    sum_call sum;
    if (bytes) AN_TRY_RETURN(device->allocate(device, ctx, &l->buffers[l->buffer_count], bytes));
    void *added = l->buffers[l->buffer_count++];
    if (bytes) AN_TRY_RETURN(device->fill(device, ctx, added, 0, bytes)); /* padding stays zero */
    make_sum_call(l, 0, 0, l->params->sizes.gradient_elements, &sum);
    return l->add || !bytes ? AN_OK : an_device_kernel(ctx, an_op_add.name, &sum.call, &l->add);
}

/* Whether so many leaves are a block of the tree that this rank makes. */
static bool is_node(const an_leaves *l, int64_t leaf, int64_t count) {
    int64_t block = 1;
    while (block < count) block *= 2;
    return count >= 1 && an_forest_block(&l->range, leaf, block) == count;
}

/* Makes the node of these leaves the one under way, if it is not. */
static an_status enter_node(an_leaves *l, int64_t leaf, int64_t count, bool *first) {
    an_context *ctx = l->ctx;
    const int64_t last = l->leaf >= 0 ? l->leaf : l->forest->count ? l->forest->parts[l->forest->count - 1] : -1;
    if (leaf < l->range.begin || leaf < last || leaf >= l->range.end)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "leaf %lld comes after leaf %lld of %lld, but leaves must come in increasing order",
                        (long long)leaf, (long long)last, (long long)l->range.end);
    *first = leaf != l->leaf;
    if (!is_node(l, leaf, count) || (l->leaf >= 0 && *first && leaf < l->end) ||
        (!*first && (count > 1 || l->end > leaf + 1)))
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "a micro-batch cannot have the %lld leaves from leaf %lld on: several leaves are one whole node of "
            "the tree, in one micro-batch",
            (long long)count, (long long)leaf);
    if (!*first) return AN_OK;
    leave(l);
    AN_TRY_RETURN(join_until(l, leaf));
    if (l->forest->count >= l->buffer_count) AN_TRY_RETURN(add_buffer(l));
    an_program_bind_gradients(l->program, l->buffers[l->forest->count]);
    l->leaf = leaf;
    l->end = leaf + count;
    return AN_OK;
}

an_status an_leaves_enter(an_leaves *l, int64_t leaf, int64_t count, bool is_last, an_leaf_entry *entry) {
    AN_TRY_RETURN(enter_node(l, leaf, count, &entry->first));
    if (is_last) expect_last(l);
    entry->sums = an_forest_values(l->forest, l->forest->count);
    return AN_OK;
}

an_status an_leaves_complete(an_leaves *l) {
    leave(l);
    return join_until(l, INT64_MAX);
}

an_status an_leaves_reduce(an_leaves *l, an_status status) {
    if (status == AN_OK)
        status = an_leaves_complete(l);
    else
        leave(l);
    if (!l->reduction) return status;
    const an_status exchanged = exchange_rest(l, status);
    an_program_bind_gradients(l->program, NULL);
    return status == AN_OK ? exchanged : status;
}

void an_leaves_cancel(an_leaves *l) {
    if (l->send) open_exchange(l, false);
    if (l->reduction) an_reduction_cancel(l->reduction);
    if (l->program) an_program_bind_gradients(l->program, NULL);
    if (l->forest) l->forest->count = 0;
    l->leaf = -1;
    l->started = 0;
}
