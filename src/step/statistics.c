#include "step/statistics.h"

#include <string.h>

#include "base/convert.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/ops.h"
#include "ops/sink.h"

static bool is_state(const an_node *node) {
    return node->op == &an_op_output && ((const an_output_attributes *)node->attributes)->state;
}

/* How many there are, and the elements of all and of the largest. */
static void count_states(const an_graph *model, int *states, int64_t *elements, int64_t *maximum) {
    *states = 0;
    *elements = *maximum = 0;
    for (const an_node *n = model->first; n; n = n->next) {
        if (!is_state(n)) continue;
        const an_result *r = an_node_input(n, 0);
        int64_t each = 1;
        for (int d = 0; d < r->ndims; d++) each *= r->dims[d]; /* those of a run state: laid out, so they fit */
        ++*states;
        *elements += each;
        if (each > *maximum) *maximum = each;
    }
}

int64_t an_leaf_width(const an_graph *model) {
    int states;
    int64_t elements, maximum;
    count_states(model, &states, &elements, &maximum);
    return AN_LEAF_STATES + elements;
}

int an_leaf_narrow(const an_graph *model) {
    const an_result *loss = an_graph_result(model, model->loss);
    return loss && loss->dtype != AN_DTYPE_F64;
}

bool an_statistics_bytes(const an_graph *model, size_t *bytes) {
    const an_statistics *s = NULL; /* for its members' sizes */
    int states;
    int64_t elements, maximum;
    count_states(model, &states, &elements, &maximum);
    return an_add_elements(bytes, (size_t)states, sizeof *s->states) &&
           an_add_elements(bytes, (size_t)maximum, sizeof *s->staging);
}

an_status an_statistics_make(an_statistics *s, an_program *program) {
    an_status status;
    an_context *ctx = program->ctx;
    const an_graph *form = program->forms[AN_FORM_TRAIN_FIRST].graph;
    const an_params *p = program->params;
    int count;
    int64_t elements, first = AN_LEAF_STATES;
    *s = (an_statistics){.ctx = ctx, .program = program};
    count_states(form, &count, &elements, &s->staging_elements);
    AN_TRY(an_alloc(ctx, (void **)&s->states, (size_t)count, sizeof *s->states));
    s->count = count;
    count = 0;
    for (const an_node *n = form->first; n; n = n->next) {
        const an_output_attributes *a = n->attributes;
        if (!is_state(n)) continue;
        const double *momentum = an_node_attribute(an_node_input(n, 0)->node, "momentum", AN_ATTRIBUTE_FLOAT);
        an_statistic *state = &s->states[count++];
        AN_CHECK(ctx, momentum, AN_ERR_UNSUPPORTED, "the op that computes the statistic '%s' has no momentum", a->name);
        state->momentum = *momentum;
        state->first = first;
        for (size_t i = p->parameter_count; i < p->entry_count; i++)
            if (!strcmp(p->entries[i].name, a->name)) state->stored = &p->entries[i];
        AN_CHECK(ctx, state->stored, AN_ERR_UNKNOWN, "the parameters have no run state '%s'", a->name);
        state->name = state->stored->name;
        first += state->stored->elements;
    }
    AN_TRY(an_alloc(ctx, (void **)&s->staging, (size_t)s->staging_elements, sizeof *s->staging));
    return AN_OK;
fail:
    an_statistics_destroy(s);
    return status;
}

void an_statistics_destroy(an_statistics *s) {
    an_context *ctx = s->ctx;
    if (!ctx) return;
    an_release(ctx, (void **)&s->staging, (size_t)s->staging_elements, sizeof *s->staging);
    an_release(ctx, (void **)&s->states, (size_t)s->count, sizeof *s->states);
    s->ctx = NULL;
}

an_status an_statistics_add(an_statistics *s, int64_t samples, double *sums) {
    for (int i = 0; i < s->count; i++) {
        const an_statistic *state = &s->states[i];
        const int64_t elements = state->stored->elements;
        an_array array = {0};
        array.data = s->staging;
        AN_TRY_RETURN(an_program_get_output(s->program, state->name, &array));
        an_convert_to_f64(state->stored->dtype, elements, s->staging);
        for (int64_t k = 0; k < elements; k++) sums[state->first + k] += s->staging[k] * (double)samples;
    }
    return AN_OK;
}

an_status an_statistics_update(an_statistics *s, const double *sums) {
    an_params *params = s->program->params;
    for (int i = 0; i < s->count; i++) {
        const an_statistic *state = &s->states[i];
        const an_stored *e = state->stored;
        an_array array = {0};
        array.data = s->staging;
        array.dtype = e->dtype;
        array.ndims = e->ndims;
        memcpy(array.dims, e->dims, sizeof array.dims);
        AN_TRY_RETURN(an_params_get(params, state->name, AN_PART_WEIGHT, &array));
        an_convert_to_f64(e->dtype, e->elements, s->staging);
        for (int64_t k = 0; k < e->elements; k++)
            s->staging[k] += state->momentum * (sums[state->first + k] / sums[AN_LEAF_SAMPLES] - s->staging[k]);
        an_convert_from_f64(e->dtype, e->elements, s->staging);
        AN_TRY_RETURN(an_params_set(params, state->name, AN_PART_WEIGHT, &array));
    }
    return AN_OK;
}
