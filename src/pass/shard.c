/* shard: adds an `exchange` after the last gradient of each unit, so that ranks exchange it while the rest of backward still computes. Replaces the hooks, buckets and
 * no_sync() of hand-written data parallelism.
 *
 * It runs after recompute, because an exchange is never run twice. The order pass keeps sinks in their order, so an exchange runs as soon as its unit is complete. Units are
 * exchanged in the same order in every form, as one rank may end its step in the form FIRST while another ends it in NEXT: a unit with a parameter that no gradient
 * reaches, whose zeros are written by the form FIRST alone, is exchanged at the end. */
#include "base/device.h"
#include "ops/sink.h"
#include "pass/pass.h"
#include "pass/units.h"

typedef struct {
    an_graph *g;
    an_unit *units;
    int *unit_of; /* by parameter */
    int unit_count;
    bool *reached;  /* by parameter: a gradient reaches it */
    bool *late;     /* by unit: one of its parameters is not reached */
    an_node **last; /* by unit: its last gradient */
} sharding;

static int64_t parameter_of(const an_node *node) {
    return *(const int64_t *)an_node_attribute(node, "parameter", AN_ATTRIBUTE_INT);
}

/* The zeros of a parameter that no gradient reaches come from a constant. */
static bool is_zeros(const an_node *grad) {
    const an_node *from = an_node_input(grad, 0)->node;
    return from->op->flags & AN_OP_SOURCE && from->outputs[0].storage == AN_STORAGE_CONSTANT;
}

/* After select: it gets its kernel here. */
static an_status add_exchange(an_graph *g, int64_t unit, an_node *after) {
    an_context *ctx = g->ctx;
    const an_call call = {.ctx = ctx};
    an_node *next = after ? after->next : NULL;
    g->insert_before = next;
    g->origin = after ? after->origin ? after->origin : after : NULL;
    g->phase = AN_PHASE_BACKWARD;
    an_graph_add(g, &an_op_exchange, 0, NULL, &(an_exchange_attributes){.unit = unit});
    g->phase = AN_PHASE_FORWARD;
    g->origin = NULL;
    g->insert_before = NULL;
    if (g->status != AN_OK) return AN_ERROR(ctx, g->status, "%s", g->message);
    return an_device_kernel(ctx, an_op_exchange.name, &call, &(next ? next->previous : g->last)->kernel);
}

static an_status add_exchanges(const sharding *s) {
    an_context *ctx = s->g->ctx;
    for (an_node *n = s->g->first; n; n = n->next) {
        if (!(n->op->flags & AN_OP_BINDS_GRADIENT)) continue;
        const int64_t parameter = parameter_of(n);
        s->reached[parameter] = s->reached[parameter] || !is_zeros(n);
        s->last[s->unit_of[parameter]] = n;
    }
    for (size_t i = 0; i < s->g->parameter_count; i++)
        if (s->unit_of[i] >= 0 && !s->reached[i]) s->late[s->unit_of[i]] = true;
    for (int unit = 0; unit < s->unit_count; unit++)
        if (!s->late[unit]) AN_TRY_RETURN(add_exchange(s->g, unit, s->last[unit]));
    for (int unit = 0; unit < s->unit_count; unit++)
        if (s->late[unit]) AN_TRY_RETURN(add_exchange(s->g, unit, NULL));
    return AN_OK;
}

an_status an_pass_shard(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    const size_t parameters = g->parameter_count;
    sharding s = {.g = g};
    if (!an_form_trains(options->form) || !options->exchanges) return AN_OK;
    AN_TRY(an_alloc(ctx, (void **)&s.units, parameters, sizeof *s.units));
    AN_TRY(an_alloc(ctx, (void **)&s.unit_of, parameters, sizeof *s.unit_of));
    AN_TRY(an_alloc(ctx, (void **)&s.reached, parameters, sizeof *s.reached));
    AN_TRY(an_alloc(ctx, (void **)&s.late, parameters, sizeof *s.late));
    AN_TRY(an_alloc(ctx, (void **)&s.last, parameters, sizeof *s.last));
    s.unit_count = an_units_find(g, s.units, s.unit_of);
    status = add_exchanges(&s);
fail:
    an_release(ctx, (void **)&s.last, parameters, sizeof *s.last);
    an_release(ctx, (void **)&s.late, parameters, sizeof *s.late);
    an_release(ctx, (void **)&s.reached, parameters, sizeof *s.reached);
    an_release(ctx, (void **)&s.unit_of, parameters, sizeof *s.unit_of);
    an_release(ctx, (void **)&s.units, parameters, sizeof *s.units);
    return status;
}
