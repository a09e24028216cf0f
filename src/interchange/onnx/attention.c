/* Attention and rotary positions, which ONNX has to be told step by step. */
#include <math.h>

#include "base/elementary/elementary.h"

#include "interchange/model_nodes.h"
#include "interchange/onnx/nodes.h"

enum { Q, K, V, QUERY_OFFSET, DOCUMENTS, MASK }; /* inputs of attention */

typedef an_onnx_value value;

/* first, first + 1, …; first is a scalar or NONE, for 0. Count numbers, i64. */
static value places(an_onnx *o, an_dim count, value first) {
    value zero = an_onnx_integer(o, 0), one = an_onnx_integer(o, 1), size = an_onnx_size(o, count);
    value end = AN_ONNX(o, "Squeeze", size);
    value all = AN_ONNX(o, "Range", zero, end, one);
    if (first == AN_ONNX_NONE) return all;
    first = an_onnx_cast(o, first, AN_DTYPE_I64);
    return AN_ONNX(o, "Add", all, first);
}

static value unsqueeze(an_onnx *o, value v, size_t count, const int64_t *axes) {
    value list = an_onnx_integers(o, count, axes);
    return AN_ONNX(o, "Unsqueeze", v, list);
}

/* Each head of k or v serves several heads of q, one after the other. */
static value repeat_heads(an_onnx *o, value v, const an_result *kv, an_dim heads, an_dim group) {
    const an_dim apart[] = {kv->dims[0], kv->dims[1], group, kv->dims[2], kv->dims[3]};
    const an_dim together[] = {kv->dims[0], heads, kv->dims[2], kv->dims[3]};
    v = unsqueeze(o, v, 1, (int64_t[]){2});
    value shape = an_onnx_shape(o, 5, apart);
    v = AN_ONNX(o, "Expand", v, shape);
    shape = an_onnx_shape(o, 4, together);
    return AN_ONNX(o, "Reshape", v, shape);
}

static value both(an_onnx *o, value a, value b) {
    return a == AN_ONNX_NONE ? b : AN_ONNX(o, "And", a, b);
}

/* Which key a query sees; NONE: all of them. */
static value seen(an_onnx *o, const an_node *node) {
    const bool is_causal = an_node_flag(node, "causal");
    const int64_t window = an_node_integer(node, "window");
    const an_result *q = an_node_input(node, Q), *k = an_node_input(node, K);
    const value documents = an_onnx_input(o, node, DOCUMENTS);
    value sees = AN_ONNX_NONE;
    if (is_causal || window > 0) {
        value query = places(o, q->dims[2], an_onnx_input(o, node, QUERY_OFFSET));
        value key = places(o, k->dims[2], AN_ONNX_NONE);
        query = unsqueeze(o, query, 1, (int64_t[]){1});
        if (is_causal) sees = AN_ONNX(o, "LessOrEqual", key, query);
        if (window > 0) {
            value distance = an_onnx_integer(o, window);
            value before = AN_ONNX(o, "Sub", query, distance);
            value is_near = AN_ONNX(o, "Greater", key, before);
            sees = both(o, sees, is_near);
        }
    }
    if (documents != AN_ONNX_NONE) {
        value query = unsqueeze(o, documents, 2, (int64_t[]){1, 3}),
              key = unsqueeze(o, documents, 2, (int64_t[]){1, 2});
        value same = AN_ONNX(o, "Equal", query, key);
        sees = both(o, sees, same);
    }
    return sees;
}

value an_onnx_attention(an_onnx *o, const an_node *node) {
    const an_dtype dtype = node->outputs[0].dtype;
    const an_result *q = an_node_input(node, Q), *k = an_node_input(node, K);
    value keys = an_onnx_input(o, node, K), values = an_onnx_input(o, node, V);
    if (q->dims[1] != k->dims[1]) {
        an_dim group = 0;
        const an_status status =
            an_dimensions_divide(&o->graph->dimensions, &o->graph->arena, q->dims[1], k->dims[1], &group);
        if (status != AN_OK) o->status = status;
        keys = repeat_heads(o, keys, k, q->dims[1], group);
        values = repeat_heads(o, values, k, q->dims[1], group);
    }
    value scale = an_onnx_real(o, dtype, an_node_real(node, "scale"));
    value queries = AN_ONNX(o, "Mul", an_onnx_input(o, node, Q), scale);
    keys = an_onnx_transpose_last(o, keys, 4);
    value scores = AN_ONNX(o, "MatMul", queries, keys);
    const value sees = seen(o, node), mask = an_onnx_input(o, node, MASK);
    if (mask != AN_ONNX_NONE) scores = AN_ONNX(o, "Add", scores, mask);
    if (sees != AN_ONNX_NONE) {
        value never = an_onnx_real(o, dtype, -INFINITY);
        scores = AN_ONNX(o, "Where", sees, scores, never);
    }
    an_onnx_int(o, "axis", -1);
    scores = AN_ONNX(o, "Softmax", scores);
    return AN_ONNX(o, "MatMul", scores, values);
}

/* ---- rotary positions ---- */

/* The angle that each pair turns by from one token to the next. */
static double frequency(const an_node *node, int64_t pair) {
    const double pi = 3.14159265358979323846, rotated = (double)an_node_integer(node, "rotated");
    const double f = an_pow_f64(an_node_real(node, "base"), -2.0 * (double)pair / rotated);
    const double factor = an_node_real(node, "factor"), low = an_node_real(node, "low_factor");
    const double high = an_node_real(node, "high_factor"), context = (double)an_node_integer(node, "original_context");
    if (factor == 0) return f;
    const double length = 2 * pi / f;
    if (length < context / high) return f;
    if (length > context / low) return f / factor;
    const double share = (context / length - low) / (high - low);
    return (1 - share) * f / factor + share * f;
}

static value part(an_onnx *o, value v, int64_t begin, int64_t end) {
    const int64_t last = 3;
    value from = an_onnx_integers(o, 1, &begin), to = an_onnx_integers(o, 1, &end),
          axis = an_onnx_integers(o, 1, &last);
    return AN_ONNX(o, "Slice", v, from, to, axis);
}

/* Angles are computed in f64 and reduced to one turn before they are rounded: in f32, those of far tokens would be
 * wrong by more than the result may be. */
value an_onnx_rotary(an_onnx *o, const an_node *node) {
    const an_result *src = an_node_input(node, 0);
    const an_dtype dtype = src->dtype;
    const int64_t rotated = an_node_integer(node, "rotated"), half = rotated / 2;
    const double sign = an_node_flag(node, "inverse") ? -1 : 1;
    an_text table;
    an_text_init(&table, o->graph->ctx);
    for (int64_t i = 0; i < half; i++) {
        const double f = sign * frequency(node, i);
        an_text_bytes(&table, (const char *)&f, sizeof f);
    }
    value frequencies = AN_ONNX_NONE;
    if (table.status == AN_OK) frequencies = an_onnx_reals(o, (size_t)half, (const double *)(const void *)table.bytes);
    if (table.status != AN_OK) o->status = table.status;
    an_text_destroy(&table);

    value place = places(o, src->dims[2], an_onnx_input(o, node, 1));
    place = an_onnx_cast(o, place, AN_DTYPE_F64);
    place = unsqueeze(o, place, 1, (int64_t[]){1});
    value angle = AN_ONNX(o, "Mul", place, frequencies), turn = an_onnx_real(o, AN_DTYPE_F64, 6.283185307179586);
    an_onnx_int(o, "fmod", 1);
    angle = AN_ONNX(o, "Mod", angle, turn);
    angle = an_onnx_cast(o, angle, AN_DTYPE_F32);
    value cosine = AN_ONNX(o, "Cos", angle), sine = AN_ONNX(o, "Sin", angle);
    if (dtype != AN_DTYPE_F32) {
        cosine = an_onnx_cast(o, cosine, dtype);
        sine = an_onnx_cast(o, sine, dtype);
    }
    const value x = an_onnx_input(o, node, 0);
    value first = part(o, x, 0, half), second = part(o, x, half, rotated);
    value one = AN_ONNX(o, "Mul", first, cosine), other = AN_ONNX(o, "Mul", second, sine);
    value left = AN_ONNX(o, "Sub", one, other);
    one = AN_ONNX(o, "Mul", second, cosine);
    other = AN_ONNX(o, "Mul", first, sine);
    value right = AN_ONNX(o, "Add", one, other);
    an_onnx_int(o, "axis", 3);
    if (rotated == src->dims[3]) return AN_ONNX(o, "Concat", left, right);
    value joined = AN_ONNX(o, "Concat", left, right), rest = part(o, x, rotated, src->dims[3]);
    an_onnx_int(o, "axis", 3);
    return AN_ONNX(o, "Concat", joined, rest);
}
