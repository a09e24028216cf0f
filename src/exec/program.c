/* Creates programs and binds their sizes. The executor is in executor.c. */
#include "exec/program.h"

#include <string.h>

#include "base/convert.h"
#include "base/device.h"
#include "base/guard.h"
#include "exec/array.h"
#include "ops/ops.h"
#include "ops/source.h"
#include "pass/call.h"

int64_t an_program_table_bytes(const an_plan *plan) {
    size_t bytes = sizeof(an_program);
    if (an_plan_together(plan) > 1) bytes += (size_t)plan->passes.leaves * sizeof(int64_t);
    for (int f = 0; f < AN_FORMS; f++) {
        const an_form_tables *t = &plan->tables[f];
        bytes += t->instructions * sizeof(an_instruction) + t->tensors * sizeof(an_tensor) +
                 t->outputs * sizeof(an_program_output) + t->attribute_bytes;
        if (plan->forms[f]) bytes += plan->forms[f]->dimensions.symbol_count * sizeof(an_symbol);
    }
    return (int64_t)bytes;
}

/* Which units of weights an instruction must wait for. A product reads one or two, whatever is fused into it; one
 * that reads more waits for all. */
static void find_units(const an_program *p, an_instruction *instruction) {
    const an_node *n = instruction->node;
    const an_shards *shards = p->params->pieces.shards;
    int count = 0, *units = instruction->units;
    units[0] = units[1] = AN_NO_UNIT;
    for (int i = 0; shards && i < n->input_count; i++) {
        const an_result *r = an_node_input(n, i);
        if (!r || (r->root->storage != AN_STORAGE_MASTER && r->root->storage != AN_STORAGE_LOW)) continue;
        const int unit = an_shards_unit_of(shards, r->root->place / (int64_t)an_dtype_size(r->root->dtype) / AN_PAGE);
        if (unit == units[0] || unit == units[1] || units[0] == AN_ALL_UNITS) continue;
        if (count < 2) {
            units[count++] = unit;
        } else {
            units[0] = AN_ALL_UNITS; /* after which nothing is left to wait for */
            units[1] = AN_NO_UNIT;
        }
    }
}

static an_status make_form(an_program *p, an_form form) {
    an_context *ctx = p->ctx;
    an_program_form *f = &p->forms[form];
    size_t instruction = 0, tensor = 0, output = 0, attribute = 0;
    f->graph = p->plan->forms[form];
    f->tables = p->plan->tables[form];
    AN_TRY_RETURN(an_alloc(ctx, (void **)&f->instructions, f->tables.instructions, sizeof *f->instructions));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&f->tensors, f->tables.tensors, sizeof *f->tensors));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&f->outputs, f->tables.outputs, sizeof *f->outputs));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&f->attributes, f->tables.attribute_bytes, 1));
    an_dimensions *d = &f->sized.dimensions;
    f->sized = *f->graph;
    f->sized.ctx = ctx;
    d->symbols = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&d->symbols, d->symbol_count, sizeof *d->symbols));
    if (d->symbol_count) memcpy(d->symbols, f->graph->dimensions.symbols, d->symbol_count * sizeof *d->symbols);
    for (const an_node *n = f->graph->first; n; n = n->next) {
        if (n->op->flags & AN_OP_KEEPS_INPUTS)
            f->outputs[output++] = (an_program_output){
                *(const char **)an_node_attribute(n, "name", AN_ATTRIBUTE_STRING), n->inputs[0].result};
        if (!an_node_runs(n)) continue;
        an_instruction *i = &f->instructions[instruction++];
        i->node = n;
        find_units(p, i);
        i->call = (an_call){.ctx = ctx,
                            .attributes = n->op->attribute_bytes ? f->attributes + attribute : NULL,
                            .src_count = n->input_count,
                            .dst_count = n->output_count,
                            .src = f->tensors + tensor,
                            .dst = f->tensors + tensor + n->input_count,
                            .exchange = &p->exchange};
        if (n->scratch_bytes > 0) i->call.scratch = (char *)p->arena + n->scratch_place;
        tensor += (size_t)(n->input_count + n->output_count);
        attribute += an_round_up(n->op->attribute_bytes, sizeof(max_align_t));
    }
    return AN_OK;
}

static an_status allocate(an_program *p, void **memory, int64_t bytes) {
    an_context *ctx = p->ctx;
    if (bytes == 0) return AN_OK;
    AN_TRY_RETURN(p->device->allocate(p->device, ctx, memory, (size_t)bytes));
    return AN_OK;
}

/* What adds the gradients of leaves where a kernel does not. */
static an_status make_leaves(an_program *p) {
    an_context *ctx = p->ctx;
    const an_pass_options *passes = &p->plan->passes;
    const an_dtype dtype = p->plan->sizes.trainable_dtype;
    an_tensor sums[2];
    p->leaves = (an_leaf_cut){.count = 1, .samples = 1};
    if (an_plan_together(p->plan) < 2) return AN_OK;
    for (int i = 0; i < 2; i++) sums[i] = (an_tensor){.dtype = dtype, .ndims = 1, .dims = {1}, .strides = {1}};
    const an_call call = {.ctx = ctx, .src_count = 2, .dst_count = 1, .src = sums, .dst = sums};
    AN_TRY_RETURN(an_alloc(ctx, (void **)&p->leaf_ends, (size_t)passes->leaves, sizeof *p->leaf_ends));
    return an_device_kernel(ctx, an_op_add.name, &call, &p->add);
}

an_status an_program_cut(an_program *p, int64_t count, const int64_t *ends) {
    const int64_t maximum = p->add ? p->plan->passes.leaves : 1;
    if (count < 1 || count > maximum || ends[count - 1] < 1)
        return AN_ERROR(p->ctx, AN_ERR_ARGUMENT,
                        "a run has %lld leaves and %lld samples, but the plan was made for 1 to %lld leaves",
                        (long long)count, count > 0 ? (long long)ends[count - 1] : 0LL, (long long)maximum);
    if (p->leaf_ends) memcpy(p->leaf_ends, ends, (size_t)count * sizeof *ends);
    p->leaves = (an_leaf_cut){.count = count, .samples = ends[count - 1], .ends = p->leaf_ends};
    return AN_OK;
}

/* What is no i64 can only be a floating number, so its integer does not matter. */
static int64_t integer_of(double value) {
    return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : 0;
}

/* A number of any type, for scalars and constants. */
static size_t encode(an_dtype dtype, double real, int64_t integer, void *bytes) {
    double f64 = real;
    int32_t i32 = (int32_t)integer;
    uint8_t u8 = (uint8_t)integer;
    const void *from = &integer;
    if (dtype == AN_DTYPE_I32) from = &i32;
    if (dtype == AN_DTYPE_U8) from = &u8;
    if (an_dtype_is_float(dtype)) {
        an_convert_from_f64(dtype, 1, &f64);
        from = &f64;
    }
    memcpy(bytes, from, an_dtype_size(dtype));
    return an_dtype_size(dtype);
}

static an_status copy_constants(an_program *p, const an_graph *g) {
    an_context *ctx = p->ctx;
    for (const an_node *n = g ? g->first : NULL; n; n = n->next) {
        if (n->op != &an_op_constant) continue;
        const an_constant_attributes *a = n->attributes;
        char number[AN_SLOT_BYTES];
        size_t size = encode(a->dtype, a->value, integer_of(a->value), number);
        AN_TRY_RETURN(p->device->copy(p->device, ctx, (char *)p->constants + n->outputs[0].place, number, size,
                                      AN_COPY_TO_DEVICE));
    }
    return AN_OK;
}

/* Parameters must be laid out as the plan expects: the same model, frozen alike. */
static an_status check_params(const an_plan *plan, const an_params *params) {
    const an_flat_sizes *a = &plan->sizes, *b = &params->sizes;
    bool same = a->trainable_elements == b->trainable_elements && a->trainable_dtype == b->trainable_dtype &&
                a->frozen_bytes == b->frozen_bytes && a->state_bytes == b->state_bytes &&
                plan->model->parameter_count == params->parameter_count;
    for (size_t i = 0; i < params->parameter_count && same; i++)
        same = !strcmp(plan->model->parameters[i].name, params->entries[i].name) &&
               plan->model->parameters[i].node->outputs[0].place == params->entries[i].offset;
    if (!same)
        return AN_ERROR(plan->ctx, AN_ERR_ARGUMENT,
                        "the parameters do not belong to graph '%s': create plan and parameters from the same graph",
                        plan->model->name);
    if (plan->forms[AN_FORM_TRAIN_FIRST] && !params->has_gradients)
        return AN_ERROR(plan->ctx, AN_ERR_ARGUMENT,
                        "the plan trains, but the parameters were created without gradients (an_params_options)");
    return AN_OK;
}

an_status an_program_create(an_program **program, an_plan *plan, an_params *params) {
    AN_GUARD;
    AN_NEED(plan, program, params);
    return an_program_create_in(program, plan->ctx, plan, params);
}

/* `other`: whose states it has; NULL: it has its own. */
static an_status create(an_program **program, an_context *ctx, an_plan *plan, an_params *params,
                        const an_program *other) {
    an_status status;
    an_program *p = NULL;
    *program = NULL;
    AN_CHECK(ctx, params->ctx == plan->ctx, AN_ERR_ARGUMENT,
             "the plan and the parameters belong to different contexts");
    AN_TRY(check_params(plan, params));
    if (params->pieces.shards) AN_TRY(an_params_pieces_check(ctx, &params->pieces, plan));
    AN_TRY(an_alloc(ctx, (void **)&p, 1, sizeof *p));
    p->ctx = ctx;
    p->device = ctx->device;
    p->plan = plan;
    p->params = params;
    AN_TRY(an_params_need_low(params, plan->low));
    AN_TRY(allocate(p, &p->arena, plan->arena_bytes));
    AN_TRY(allocate(p, &p->inputs, plan->sizes.input_bytes));
    AN_TRY(allocate(p, &p->scalars, plan->scalar_bytes));
    AN_TRY(allocate(p, &p->constants, plan->constant_bytes));
    if (!other) AN_TRY(allocate(p, &p->program_states, plan->sizes.program_state_bytes));
    if (p->inputs) AN_TRY(p->device->fill(p->device, ctx, p->inputs, 0, (size_t)plan->sizes.input_bytes));
    if (p->scalars) AN_TRY(p->device->fill(p->device, ctx, p->scalars, 0, (size_t)plan->scalar_bytes));
    if (p->program_states)
        AN_TRY(p->device->fill(p->device, ctx, p->program_states, 0, (size_t)plan->sizes.program_state_bytes));
    for (int f = 0; f < AN_FORMS; f++) AN_TRY(copy_constants(p, plan->forms[f]));
    p->base[AN_STORAGE_ARENA] = p->arena;
    p->base[AN_STORAGE_INPUT] = p->inputs;
    p->base[AN_STORAGE_SCALAR] = p->scalars;
    p->base[AN_STORAGE_CONSTANT] = p->constants;
    p->base[AN_STORAGE_PROGRAM_STATE] = other ? other->program_states : p->program_states;
    p->base[AN_STORAGE_MASTER] = params->masters;
    p->base[AN_STORAGE_LOW] = params->low;
    p->base[AN_STORAGE_FROZEN] = params->frozen;
    p->base[AN_STORAGE_STATE] = params->states;
    if (plan->forms[AN_FORM_TRAIN_FIRST]) AN_TRY(an_params_need_extras(params, &plan->sizes));
    p->base[AN_STORAGE_GRADIENT] = params->gradients;
    for (int f = 0; f < AN_FORMS; f++)
        if (plan->forms[f]) AN_TRY(make_form(p, (an_form)f));
    AN_TRY(make_leaves(p));
    for (int i = 0; i < plan->scalar_count; i++)
        if (!strcmp(plan->scalars[i], "loss_gradient")) AN_TRY(an_program_set_scalar(p, "loss_gradient", 1));
    *program = p;
    return AN_OK;

fail:
    an_program_destroy(&p);
    return status;
}

an_status an_program_create_in(an_program **program, an_context *ctx, an_plan *plan, an_params *params) {
    return create(program, ctx, plan, params, NULL);
}

an_status an_program_create_beside(an_program **program, an_plan *plan, an_params *params, const an_program *other) {
    if (plan->sizes.program_state_bytes != other->plan->sizes.program_state_bytes)
        return AN_ERROR(plan->ctx, AN_ERR_ARGUMENT,
                        "the plans of two programs that share their states are of different graphs");
    return create(program, plan->ctx, plan, params, other);
}

void an_program_destroy(an_program **program) {
    an_program *p = program ? *program : NULL;
    if (!p) return;
    an_context *ctx = p->ctx;
    for (int i = 0; i < AN_FORMS; i++) {
        an_program_form *f = &p->forms[i];
        an_release(ctx, (void **)&f->sized.dimensions.symbols, f->sized.dimensions.symbol_count, sizeof(an_symbol));
        an_release(ctx, (void **)&f->instructions, f->tables.instructions, sizeof *f->instructions);
        an_release(ctx, (void **)&f->tensors, f->tables.tensors, sizeof *f->tensors);
        an_release(ctx, (void **)&f->outputs, f->tables.outputs, sizeof *f->outputs);
        an_release(ctx, (void **)&f->attributes, f->tables.attribute_bytes, 1);
    }
    an_release(ctx, (void **)&p->leaf_ends, (size_t)p->plan->passes.leaves, sizeof *p->leaf_ends);
    p->device->release(p->device, ctx, &p->kept, (size_t)p->kept_bytes);
    p->device->release(p->device, ctx, &p->program_states, (size_t)p->plan->sizes.program_state_bytes);
    p->device->release(p->device, ctx, &p->constants, (size_t)p->plan->constant_bytes);
    p->device->release(p->device, ctx, &p->scalars, (size_t)p->plan->scalar_bytes);
    p->device->release(p->device, ctx, &p->inputs, (size_t)p->plan->sizes.input_bytes);
    p->device->release(p->device, ctx, &p->arena, (size_t)p->plan->arena_bytes);
    an_release(ctx, (void **)program, 1, sizeof *p);
}

/* ---- sizes ---- */

/* The largest of all forms; 0: there is no such symbol. */
static int64_t find_maximum(const an_plan *plan, const char *symbol) {
    const an_dimensions *d = &plan->model->dimensions;
    for (size_t i = 0; i < d->symbol_count; i++)
        if (!strcmp(d->symbols[i].name, symbol)) return d->symbols[i].maximum;
    return 0;
}

static an_status too_large(const an_program *p, const char *symbol, int64_t value, int64_t maximum) {
    return AN_ERROR(p->ctx, AN_ERR_ARGUMENT, "'%s' is %lld, but the plan was made for 1 to %lld", symbol,
                    (long long)value, (long long)maximum);
}

an_status an_program_bind(an_program *program, const char *symbol, int64_t value) {
    AN_GUARD;
    AN_NEED(program, symbol);
    const int64_t maximum = find_maximum(program->plan, symbol);
    if (maximum == 0) return AN_ERROR(program->ctx, AN_ERR_UNKNOWN, "the graph has no symbol '%s'", symbol);
    if (value < 1 || value > maximum) return too_large(program, symbol, value, maximum);
    for (int f = 0; f < AN_FORMS; f++) {
        an_dimensions *d = &program->forms[f].sized.dimensions;
        for (size_t i = 0; i < d->symbol_count; i++) {
            an_symbol *s = &d->symbols[i];
            if (s->value == value || strcmp(s->name, symbol)) continue;
            s->value = value;
            program->forms[f].is_bound = false;
        }
    }
    return AN_OK;
}

/* A size may be for another form than this one, whose maximum is smaller. */
static an_status check_sizes(const an_program *p, const an_dimensions *d) {
    for (size_t i = 0; i < d->symbol_count; i++)
        if (d->symbols[i].value > d->symbols[i].maximum)
            return too_large(p, d->symbols[i].name, d->symbols[i].value, d->symbols[i].maximum);
    return AN_OK;
}

static an_status bind_operand(const an_program *p, const an_graph *g, const an_node *node, const an_result *r,
                              an_tensor *t) {
    an_context *ctx = p->ctx;
    int64_t offset = 0;
    *t = (an_tensor){0};
    if (!r) return AN_OK;
    if (!an_result_tensor(g, r, t) || !an_dimensions_value(&g->dimensions, r->offset, &offset))
        return AN_ERROR(ctx, AN_ERR_SHAPE, "%s at '%s': %s has a size below 1 at these sizes", node->op->name,
                        node->path, AN_DESCRIBE(g, r));
    t->data = (char *)p->base[r->root->storage] + r->root->place + offset * (int64_t)an_dtype_size(r->dtype);
    return AN_OK;
}

an_status an_program_bind_instruction(const an_program *p, const an_program_form *f, const an_instruction *i) {
    const an_node *n = i->node;
    an_tensor *t = f->tensors + (i->call.src - f->tensors);
    for (int k = 0; k < n->input_count; k++) AN_TRY_RETURN(bind_operand(p, &f->sized, n, n->inputs[k].result, t++));
    for (int k = 0; k < n->output_count; k++) AN_TRY_RETURN(bind_operand(p, &f->sized, n, &n->outputs[k], t++));
    return an_node_resolve_attributes(&f->sized, n, (void *)(uintptr_t)i->call.attributes);
}

an_status an_program_bind_form(an_program *p, an_form form) {
    an_context *ctx = p->ctx;
    an_program_form *f = &p->forms[form];
    AN_TRY_RETURN(check_sizes(p, &f->sized.dimensions));
    for (const an_node *n = f->graph->first; n; n = n->next)
        for (int i = 0; i < n->output_count; i++) AN_TRY_RETURN(an_result_check_bounds(&f->sized, n, &n->outputs[i]));
    for (size_t i = 0; i < f->tables.instructions; i++) {
        const an_instruction *instruction = &f->instructions[i];
        const an_node *n = instruction->node;
        AN_TRY_RETURN(an_program_bind_instruction(p, f, instruction));
        const an_leaf_cut maximum = {.count = p->plan->passes.leaves, .samples = p->leaves.samples};
        an_call call = instruction->call;
        call.leaves = n->leaf_sum && n->kernel->by_leaves ? &maximum : NULL;
        const size_t scratch = n->kernel->scratch ? n->kernel->scratch(&call) : 0;
        if (scratch == AN_SCRATCH_FAILED) return ctx->error.status;
        if (scratch > (size_t)n->scratch_bytes)
            return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                            "%s at '%s' needs more scratch at these sizes than at the plan's largest sizes",
                            n->op->name, n->path);
    }
    f->is_bound = true;
    return AN_OK;
}

void an_program_bind_gradients(an_program *p, void *gradients) {
    p->gradients = gradients;
}

an_status an_program_find_gradients(an_program *p) {
    an_context *ctx = p->ctx;
    void *gradients = p->gradients ? p->gradients : p->params->gradients;
    if (p->base[AN_STORAGE_GRADIENT] == gradients) return AN_OK;
    if (!gradients)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "the parameters have no gradients, because memory ran out when a stepper was created");
    p->base[AN_STORAGE_GRADIENT] = gradients;
    p->forms[AN_FORM_TRAIN_FIRST].is_bound = p->forms[AN_FORM_TRAIN_NEXT].is_bound = false;
    return AN_OK;
}

/* ---- what kernels keep ---- */

static bool is_weight(const an_node *node, int input) {
    const an_result *r = input < node->input_count ? node->inputs[input].result : NULL;
    const an_storage storage = r ? r->root->storage : AN_STORAGE_ARENA;
    return storage == AN_STORAGE_MASTER || storage == AN_STORAGE_FROZEN || storage == AN_STORAGE_LOW;
}

static size_t kept_bytes(const an_instruction *i, bool packs) {
    const bool is_of_weights = i->node->op->flags & AN_OP_OF_WEIGHTS;
    bool all = true; /* the text of a graph may give it other values */
    if (!i->node->kernel->kept || !is_weight(i->node, 1)) return 0;
    for (int k = 0; k < i->node->input_count; k++) all = all && is_weight(i->node, k);
    if (is_of_weights ? !all : !packs) return 0;
    return an_round_up(i->node->kernel->kept(&i->call), AN_ALIGNMENT);
}

an_status an_program_keep(an_program *p, an_form form, bool packs) {
    an_program_form *f = &p->forms[form];
    int64_t offset = 0;
    if (!f->is_bound) AN_TRY_RETURN(an_program_bind_form(p, form));
    for (size_t i = 0; i < f->tables.instructions; i++)
        p->kept_bytes += (int64_t)kept_bytes(&f->instructions[i], packs);
    AN_TRY_RETURN(allocate(p, &p->kept, p->kept_bytes));
    for (size_t i = 0; i < f->tables.instructions; i++) {
        const int64_t bytes = (int64_t)kept_bytes(&f->instructions[i], packs);
        if (bytes) f->instructions[i].call.kept = (char *)p->kept + offset;
        offset += bytes;
    }
    return an_program_keep_again(p, form);
}

an_status an_program_keep_again(an_program *p, an_form form) {
    an_context *ctx = p->ctx;
    const an_program_form *f = &p->forms[form];
    AN_TRY_RETURN(an_context_check_threads(ctx));
    an_status status = an_params_refresh(p->params);
    for (size_t i = 0; i < f->tables.instructions && status == AN_OK; i++) {
        const an_instruction *instruction = &f->instructions[i];
        const an_kernel keep = {.name = "keep", .run = instruction->node->kernel->keep};
        if (instruction->call.kept) status = p->device->launch(p->device, &keep, &instruction->call);
    }
    if (status != AN_OK) an_error_frame(__func__, __FILE__, __LINE__);
    return status;
}

void an_program_keep_of(an_program *p, an_form form, const an_program *other) {
    for (size_t i = 0; i < p->forms[form].tables.instructions; i++)
        p->forms[form].instructions[i].call.kept = other->forms[form].instructions[i].call.kept;
}

/* ---- inputs and outputs ---- */

const an_graph *an_program_any_form(const an_program *p) {
    for (int f = 0; f < AN_FORMS; f++)
        if (p->forms[f].graph) return &p->forms[f].sized;
    return p->plan->model;
}

an_status an_program_set_input(an_program *program, const char *name, const an_array *array) {
    AN_GUARD;
    AN_NEED(program, name, array);
    an_context *ctx = program->ctx;
    const an_graph *g = an_program_any_form(program);
    for (size_t i = 0; i < g->source_count; i++) {
        const an_result *r = &g->sources[i]->outputs[0];
        an_tensor t;
        if (r->storage != AN_STORAGE_INPUT ||
            strcmp(*(const char **)an_node_attribute(r->node, "name", AN_ATTRIBUTE_STRING), name))
            continue;
        if (!an_result_tensor(g, r, &t))
            return AN_ERROR(ctx, AN_ERR_SHAPE, "the sizes of input '%s' are not bound yet", name);
        AN_TRY_RETURN(an_array_check(ctx, array, name, t.dtype, t.ndims, t.dims));
        return an_array_copy_in(ctx, program->device, (char *)program->inputs + r->place, array);
    }
    return AN_ERROR(ctx, AN_ERR_UNKNOWN, "graph '%s' has no input '%s'", g->name, name);
}

static an_status set_scalar(an_program *p, const char *name, double real, int64_t integer) {
    for (int i = 0; i < p->plan->scalar_count; i++) {
        char number[AN_SLOT_BYTES];
        if (strcmp(p->plan->scalars[i], name)) continue;
        size_t size = encode(p->plan->scalar_dtypes[i], real, integer, number);
        return p->device->copy(p->device, p->ctx, (char *)p->scalars + i * AN_SLOT_BYTES, number, size,
                               AN_COPY_TO_DEVICE);
    }
    return AN_ERROR(p->ctx, AN_ERR_UNKNOWN, "no form of graph '%s' reads a scalar '%s'", p->plan->model->name, name);
}

an_status an_program_set_scalar(an_program *program, const char *name, double value) {
    AN_GUARD;
    AN_NEED(program, name);
    return set_scalar(program, name, value, integer_of(value));
}

an_status an_program_set_scalar_i64(an_program *program, const char *name, int64_t value) {
    AN_GUARD;
    AN_NEED(program, name);
    return set_scalar(program, name, (double)value, value);
}

an_status an_program_count_targets(const an_program *program, const an_array *targets, int64_t *count) {
    AN_GUARD;
    AN_NEED(program, targets, count);
    const an_graph *g = program->plan->model;
    const an_result *loss = an_graph_result(g, g->loss);
    *count = 0;
    if (!loss || !loss->node->op->count_targets)
        return AN_ERROR(program->ctx, AN_ERR_UNSUPPORTED,
                        "the loss of graph '%s' does not come from a loss op: count its targets in your program",
                        g->name);
    if (!targets->data || targets->ndims < 0 || targets->ndims > AN_MAX_DIMS)
        return AN_ERROR(program->ctx, AN_ERR_ARGUMENT, "the array of targets has no data, or %d dimensions",
                        targets->ndims);
    const an_result *expected = an_node_input(loss->node, 1);
    if (targets->dtype != expected->dtype)
        return AN_ERROR(program->ctx, AN_ERR_DTYPE, "the array of targets is %s, but %s reads %s",
                        an_dtype_name(targets->dtype), loss->node->op->name, an_dtype_name(expected->dtype));
    *count = loss->node->op->count_targets(loss->node, targets);
    return AN_OK;
}

static an_status find_output(const an_program *p, const char *name, const an_result **result) {
    const an_program_form *f = &p->forms[p->last];
    if (!p->has_run || !f->is_bound)
        return AN_ERROR(p->ctx, AN_ERR_ORDER, "the program has not run yet at these sizes, so there is no output '%s'",
                        name);
    for (size_t i = 0; i < f->tables.outputs; i++) {
        if (strcmp(f->outputs[i].name, name)) continue;
        *result = f->outputs[i].result;
        return AN_OK;
    }
    return AN_ERROR(p->ctx, AN_ERR_UNKNOWN, "the form that ran last has no output '%s'", name);
}

an_status an_program_get_output(const an_program *program, const char *name, an_array *array) {
    AN_GUARD;
    AN_NEED(program, name, array);
    an_context *ctx = program->ctx;
    const an_result *r = NULL;
    an_tensor t;
    AN_TRY_RETURN(find_output(program, name, &r));
    AN_TRY_RETURN(bind_operand(program, &program->forms[program->last].sized, r->node, r, &t));
    if (array->dtype == AN_DTYPE_NONE) {
        array->dtype = t.dtype;
        array->ndims = t.ndims;
        memcpy(array->dims, t.dims, sizeof array->dims);
        memset(array->strides, 0, sizeof array->strides);
    }
    AN_TRY_RETURN(an_array_check(ctx, array, name, t.dtype, t.ndims, t.dims));
    return an_tensor_copy_out(ctx, program->device, array, &t);
}

an_status an_program_loss(const an_program *program, double *loss) {
    AN_GUARD;
    AN_NEED(program, loss);
    const an_result *r = NULL;
    AN_TRY_RETURN(find_output(program, "loss", &r));
    an_array array = {0};
    float f32 = 0;
    array.data = r->dtype == AN_DTYPE_F64 ? (void *)loss : (void *)&f32;
    array.dtype = r->dtype;
    AN_TRY_RETURN(an_program_get_output(program, "loss", &array));
    if (r->dtype != AN_DTYPE_F64) *loss = (double)f32;
    return AN_OK;
}

void an_program_set_hook(an_program *program, an_status (*hook)(void *user, int64_t instruction), void *user) {
    AN_NEED_OR(, program);
    program->hook = hook;
    program->hook_user = user;
}
