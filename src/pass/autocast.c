/* autocast: which values are of low precision, by each op's own policy. Replaces autocast().
 *
 * It runs before autodiff, on the forward graph, so that training, evaluation and prediction have the same forward bits
 * and gradients follow from the types that values have. The type of an output is changed where the op can write it (its
 * kernels compute in f32 and round once); casts are nodes where a value is read in another type than it has, one for
 * all its readers. A parameter is not cast: its reader gets a `param` node of the low type, the store's copy.
 */
#include "ops/common.h"
#include "ops/source.h"
#include "pass/pass.h"

typedef struct {
    an_graph *g;
    an_dtype low;
    bool f32_storage;
    an_result **casts; /* by result number of the graph as it came: the same value in the other type; NULL: none yet */
    size_t count;
} lowering;

/* Whether an output of a KEEP op may be of another type than its inputs. The others move elements as they are. */
static bool converts(const an_op *op) {
    return op->autocast == AN_AUTOCAST_KEEP && op->low_out != 0;
}

/* An op that has another form in evaluation (dropout) is looked through, or both forms would round differently; so
 * is the end of another op. */
static bool passes_on(const an_op *op) {
    return op->flags & (AN_OP_VIEW | AN_OP_FOLLOWS) ||
           (op->autocast == AN_AUTOCAST_KEEP && (op->evaluate || !op->low_out));
}

static bool reads_f32(const an_op *op) {
    return op->flags & AN_OP_SINK || op->autocast == AN_AUTOCAST_F32;
}

/* The mark of a node, made of its readers', which come later in the graph: it is walked from its end. */
enum {
    ALL_WANT_LOW = 1, /* every reader of its output 0 (of a view: of all its outputs) wants it low */
    ANY_READS_F32 = 2 /* a reader of any output is an F32 op, or passes it on to one */
};

static bool wants_low(const an_use *u) {
    const an_op *op = u->node->op;
    if (reads_f32(op)) return false;
    return op->autocast == AN_AUTOCAST_LOW ? op->low_in >> u->slot & 1 : (u->node->mark & ALL_WANT_LOW) != 0;
}

static bool has_f32_reader(const an_result *r) {
    for (const an_use *u = r->first_use; u; u = u->next)
        if (reads_f32(u->node->op) || (passes_on(u->node->op) && u->node->mark & ANY_READS_F32)) return true;
    return false;
}

static bool all_want_low(const an_result *r) {
    for (const an_use *u = r->first_use; u; u = u->next)
        if (!wants_low(u)) return false;
    return true;
}

static void mark_node(an_node *n) {
    const int judged = n->op->flags & AN_OP_VIEW ? n->output_count : n->output_count > 0;
    bool read = false, low = true;
    n->mark = 0;
    for (int i = 0; i < judged; i++) {
        read = read || n->outputs[i].first_use;
        low = low && all_want_low(&n->outputs[i]);
    }
    if (read && low) n->mark |= ALL_WANT_LOW;
    for (int i = 0; i < n->output_count; i++)
        if (has_f32_reader(&n->outputs[i])) n->mark |= ANY_READS_F32;
}

/* What a value was cast from, if that is of the low type: a frozen parameter that is stored so
 * (pass/lora.c). NULL: it was not. */
static an_result *low_source(const lowering *l, const an_result *r) {
    if (!(r->node->op->flags & AN_OP_CONVERTS)) return NULL;
    an_result *source = an_node_input(r->node, 0);
    return source->storage == AN_STORAGE_FROZEN && source->dtype == l->low ? source : NULL;
}

/* The value in another type, for a reader: made once, in front of its first reader. */
static an_status cast_input(lowering *l, an_node *reader, int slot, an_dtype dtype) {
    an_graph *g = l->g;
    an_result *r = reader->inputs[slot].result, *cast = r->number < l->count ? l->casts[r->number] : NULL;
    if (!cast && dtype == l->low) cast = low_source(l, r);
    if (!cast) {
        const bool is_master = r->node->op->flags & AN_OP_SOURCE && r->storage == AN_STORAGE_MASTER;
        g->added.before = reader;
        g->added.origin = reader;
        cast =
            an_graph_result(g, is_master ? an_param_copy(g, r->node, dtype) : an_cast(g, an_graph_value(g, r), dtype));
        g->added.before = NULL;
        g->added.origin = NULL;
        if (!cast) return g->status;
        if (r->number < l->count) l->casts[r->number] = cast;
    }
    an_node_set_input(reader, slot, cast);
    return AN_OK;
}

/* Inputs that move together (concat) must be of one type. */
static bool has_mixed_inputs(const lowering *l, const an_node *n) {
    bool low = false, f32 = false;
    for (int i = 0; i < n->input_count; i++) {
        const an_result *r = n->inputs[i].result;
        low = low || (r && r->dtype == l->low);
        f32 = f32 || (r && r->dtype == AN_DTYPE_F32);
    }
    return low && f32;
}

static an_status lower_node(lowering *l, an_node *n) {
    an_graph *g = l->g;
    const an_op *op = n->op;
    if (op->flags & AN_OP_SOURCE) return AN_OK;
    const bool wants_f32 = reads_f32(op) || (!converts(op) && has_mixed_inputs(l, n));
    for (int i = 0; i < n->input_count; i++) {
        const an_result *r = n->inputs[i].result;
        if (!r) continue;
        if (op->autocast == AN_AUTOCAST_LOW) {
            if (op->low_in >> i & 1 && r->dtype == AN_DTYPE_F32) AN_TRY_RETURN(cast_input(l, n, i, l->low));
        } else if (wants_f32 && r->dtype == l->low) {
            AN_TRY_RETURN(cast_input(l, n, i, AN_DTYPE_F32));
        } else if (converts(op) && low_source(l, r)) { /* it reads any type and computes in f32 */
            an_node_set_input(n, i, low_source(l, r));
        }
    }
    AN_TRY_RETURN(an_node_infer(g, n));
    for (int i = 0; i < n->output_count; i++) {
        an_result *r = &n->outputs[i];
        if (!(op->low_out >> i & 1) || (r->dtype != AN_DTYPE_F32 && r->dtype != l->low)) continue;
        if (op->autocast == AN_AUTOCAST_LOW) r->dtype = has_f32_reader(r) ? AN_DTYPE_F32 : l->low;
        if (op->autocast == AN_AUTOCAST_KEEP) r->dtype = n->mark & ALL_WANT_LOW ? l->low : AN_DTYPE_F32;
    }
    return AN_OK;
}

/* Products and convolutions, whose outputs can be asked for in f32, read low copies; nothing else knows of them. */
static an_status lower_inputs(lowering *l, an_node *n) {
    an_dtype *dtype = an_node_attribute(n, "dtype", AN_ATTRIBUTE_DTYPE);
    if (n->op->autocast != AN_AUTOCAST_LOW || !dtype) return AN_OK;
    for (int i = 0; i < n->input_count; i++)
        if (n->op->low_in >> i & 1 && n->inputs[i].result->dtype == AN_DTYPE_F32)
            AN_TRY_RETURN(cast_input(l, n, i, l->low));
    *dtype = n->outputs[0].dtype;
    return an_node_infer(l->g, n);
}

static an_status check_masters(an_graph *g, an_dtype low) {
    for (size_t i = 0; i < g->parameter_count; i++) {
        const an_result *r = &g->parameters[i].node->outputs[0];
        if (r->storage == AN_STORAGE_MASTER && r->dtype != AN_DTYPE_F32)
            return AN_ERROR(g->ctx, AN_ERR_DTYPE, "'%s' is %s, but precision %s needs a model whose parameters are f32",
                            g->parameters[i].name, an_dtype_name(r->dtype), an_dtype_name(low));
    }
    return AN_OK;
}

an_status an_pass_autocast(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    lowering l = {.g = g, .low = options->precision, .f32_storage = options->f32_storage, .count = g->result_count};
    if (l.low == AN_DTYPE_NONE || l.low == AN_DTYPE_F32 || l.low == AN_DTYPE_F64) return AN_OK;
    AN_TRY_RETURN(check_masters(g, l.low));
    AN_TRY(an_alloc(ctx, (void **)&l.casts, l.count, sizeof *l.casts));
    for (an_node *n = g->last; n; n = n->previous) mark_node(n);
    for (an_node *n = g->first; n; n = n->next) AN_TRY((l.f32_storage ? lower_inputs : lower_node)(&l, n));
    status = AN_OK;
fail:
    g->added.before = NULL;
    g->added.origin = NULL;
    an_release(ctx, (void **)&l.casts, l.count, sizeof *l.casts);
    return status;
}
