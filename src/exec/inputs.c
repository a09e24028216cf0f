/* Describes the inputs of a program, for programs that serve any model. */
#include "exec/program.h"

#include "exec/structs.h"

static const an_result *find(const an_program *p, int64_t index) {
    const an_graph *g = an_program_any_form(p);
    for (size_t i = 0; i < g->source_count; i++)
        if (g->sources[i]->outputs[0].storage == AN_STORAGE_INPUT && index-- == 0) return &g->sources[i]->outputs[0];
    return NULL;
}

static an_role role_of(const an_node *node, int slot) {
    return slot < node->op->role_count ? node->op->roles[slot] : AN_ROLE_NONE;
}

/* How many things the integers of operand `slot` can name: rows of a table, classes; 0: it does not say. */
static an_dim named(const an_node *node, int slot) {
    const an_result *logits = an_node_input(node, 0);
    if (role_of(node, slot) == AN_ROLE_TARGETS && slot > 0 && logits->ndims > 0) return logits->dims[logits->ndims - 1];
    for (int i = 0; i < node->input_count; i++)
        if (i != slot && role_of(node, i) == AN_ROLE_EMBEDDING) return an_node_input(node, i)->dims[0];
    return 0;
}

/* The smallest number that its uses in the model have. */
static int64_t limit_of(const an_graph *model, const an_result *input) {
    int64_t limit = 0;
    if (!input || !an_dtype_is_index(input->dtype)) return 0;
    for (const an_use *u = input->first_use; u; u = u->next) {
        int64_t count = 0;
        const an_dim dim = named(u->node, u->slot);
        if (dim == 0 || !an_dimensions_value(&model->dimensions, dim, &count)) continue;
        if (limit == 0 || count < limit) limit = count;
    }
    return limit;
}

int64_t an_program_input_count(const an_program *program) {
    AN_NEED_OR(0, program);
    int64_t count = 0;
    while (find(program, count)) count++;
    return count;
}

an_status an_program_input(const an_program *program, int64_t index, an_input_info *info) {
    AN_NEED(program, info);
    an_context *ctx = program->ctx;
    const an_graph *g = an_program_any_form(program), *model = program->plan->model;
    const an_result *r = index < 0 ? NULL : find(program, index);
    an_tensor t;
    AN_TRY_RETURN(an_input_info_check(ctx, info));
    if (!r) return AN_ERROR(program->ctx, AN_ERR_ARGUMENT, "input %lld does not exist", (long long)index);
    const char *name = *(const char **)an_node_attribute(r->node, "name", AN_ATTRIBUTE_STRING);
    if (!an_result_tensor(g, r, &t))
        return AN_ERROR(program->ctx, AN_ERR_SHAPE, "the sizes of input '%s' are not bound yet", name);
    an_input_info own = {.name = name,
                         .dtype = t.dtype,
                         .ndims = t.ndims,
                         .limit = limit_of(model, an_graph_result(model, an_graph_value(g, r)))};
    for (int i = 0; i < t.ndims; i++) own.dims[i] = t.dims[i];
    return an_input_info_write(ctx, info, &own);
}
