#include "interchange/onnx/nodes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/word.h"
#include "interchange/model_nodes.h"

typedef an_onnx_value value;

#define SRC an_onnx_input(o, node, 0)
#define OTHER an_onnx_input(o, node, 1)

/* ---- attributes of a node ---- */

static const an_int_list *integers(const an_node *node, const char *name) {
    return an_node_attribute(node, name, AN_ATTRIBUTE_INTS);
}

static value size(an_onnx *o, const an_node *node, const char *name) {
    return an_onnx_size(o, *(const an_dim *)an_node_attribute(node, name, AN_ATTRIBUTE_DIM));
}

static void pass_list(an_onnx *o, const an_node *node, const char *name, const char *onnx) {
    const an_int_list *list = integers(node, name);
    an_onnx_ints(o, onnx, (size_t)list->count, list->values);
}

static an_dtype dtype(const an_node *node) {
    return node->outputs[0].dtype;
}

static value as_output(an_onnx *o, const an_node *node, value v) {
    return dtype(node) == an_node_input(node, 0)->dtype ? v : an_onnx_cast(o, v, dtype(node));
}

/* ---- element by element ---- */

static value write_gelu(an_onnx *o, const an_node *node) {
    value root = an_onnx_real(o, dtype(node), sqrt(2)), one = an_onnx_real(o, dtype(node), 1);
    value half = an_onnx_real(o, dtype(node), 0.5);
    value x = AN_ONNX(o, "Div", SRC, root);
    x = AN_ONNX(o, "Erf", x);
    x = AN_ONNX(o, "Add", x, one);
    x = AN_ONNX(o, "Mul", x, SRC);
    return AN_ONNX(o, "Mul", x, half);
}

/* ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) */
static value write_gelu_tanh(an_onnx *o, const an_node *node) {
    const double pi = 3.14159265358979323846;
    value cubic = an_onnx_real(o, dtype(node), 0.044715), factor = an_onnx_real(o, dtype(node), sqrt(2 / pi));
    value one = an_onnx_real(o, dtype(node), 1), half = an_onnx_real(o, dtype(node), 0.5);
    value x = AN_ONNX(o, "Mul", SRC, SRC);
    x = AN_ONNX(o, "Mul", x, cubic);
    x = AN_ONNX(o, "Add", x, one);
    x = AN_ONNX(o, "Mul", x, SRC);
    x = AN_ONNX(o, "Mul", x, factor);
    x = AN_ONNX(o, "Tanh", x);
    x = AN_ONNX(o, "Add", x, one);
    x = AN_ONNX(o, "Mul", x, SRC);
    return AN_ONNX(o, "Mul", x, half);
}

static value write_cast(an_onnx *o, const an_node *node) {
    return an_onnx_cast(o, SRC, dtype(node));
}

static value write_bias(an_onnx *o, const an_node *node) {
    const int64_t behind = an_node_input(node, 0)->ndims - 1 - an_node_integer(node, "axis");
    value bias = OTHER;
    if (behind > 0) {
        int64_t dims[AN_MAX_DIMS] = {-1};
        for (int64_t i = 1; i <= behind; i++) dims[i] = 1;
        value shape = an_onnx_integers(o, (size_t)behind + 1, dims);
        bias = AN_ONNX(o, "Reshape", bias, shape);
    }
    return AN_ONNX(o, "Add", SRC, bias);
}

/* Evaluation and prediction have no dropout. */
static value write_nothing(an_onnx *o, const an_node *node) {
    return SRC;
}

/* ---- products and pictures ---- */

static value write_matmul(an_onnx *o, const an_node *node) {
    value a = SRC, b = OTHER;
    if (an_node_flag(node, "transpose_a")) a = an_onnx_transpose_last(o, a, an_node_input(node, 0)->ndims);
    if (an_node_flag(node, "transpose_b")) b = an_onnx_transpose_last(o, b, an_node_input(node, 1)->ndims);
    return as_output(o, node, AN_ONNX(o, "MatMul", a, b));
}

static value write_matmul_sum(an_onnx *o, const an_node *node) {
    value sum = {0};
    for (int i = 0; i < node->input_count; i += 2) {
        value b = an_onnx_input(o, node, i + 1);
        if (an_node_flag(node, "transpose_b")) b = an_onnx_transpose_last(o, b, 2);
        const value product = AN_ONNX(o, "MatMul", an_onnx_input(o, node, i), b);
        sum = i == 0 ? product : AN_ONNX(o, "Add", sum, product);
    }
    return as_output(o, node, sum);
}

/* The same padding at both ends. */
static void pass_window(an_onnx *o, const an_node *node) {
    const an_int_list *padding = integers(node, "padding");
    const int64_t pads[] = {padding->values[0], padding->values[1], padding->values[0], padding->values[1]};
    pass_list(o, node, "stride", "strides");
    an_onnx_ints(o, "pads", 4, pads);
}

static value write_convolution(an_onnx *o, const an_node *node) {
    pass_window(o, node);
    pass_list(o, node, "dilation", "dilations");
    an_onnx_int(o, "group", an_node_integer(node, "groups"));
    return AN_ONNX(o, "Conv", SRC, OTHER);
}

static value write_max_pool(an_onnx *o, const an_node *node) {
    pass_window(o, node);
    pass_list(o, node, "window", "kernel_shape");
    return AN_ONNX(o, "MaxPool", SRC);
}

static value write_average_pool(an_onnx *o, const an_node *node) {
    pass_window(o, node);
    pass_list(o, node, "window", "kernel_shape");
    an_onnx_int(o, "count_include_pad", !an_node_flag(node, "exclude_padding"));
    return AN_ONNX(o, "AveragePool", SRC);
}

/* ---- sums and norms ---- */

static value write_reduce_sum(an_onnx *o, const an_node *node) {
    const an_int_list *axes = integers(node, "axes");
    value list = an_onnx_integers(o, (size_t)axes->count, axes->values);
    an_onnx_int(o, "keepdims", an_node_flag(node, "keep"));
    an_onnx_int(o, "noop_with_empty_axes", 1); /* no axes: nothing is added */
    return as_output(o, node, AN_ONNX(o, "ReduceSum", SRC, list));
}

static value write_reduce(an_onnx *o, const an_node *node, const char *op) {
    if (integers(node, "axes")->count == 0) return AN_ONNX(o, "Identity", SRC);
    pass_list(o, node, "axes", "axes");
    an_onnx_int(o, "keepdims", an_node_flag(node, "keep"));
    return AN_ONNX(o, op, SRC);
}

static value write_reduce_mean(an_onnx *o, const an_node *node) {
    return write_reduce(o, node, "ReduceMean");
}

static value write_reduce_max(an_onnx *o, const an_node *node) {
    return write_reduce(o, node, "ReduceMax");
}

static value write_softmax(an_onnx *o, const an_node *node) {
    an_onnx_int(o, "axis", an_node_integer(node, "axis"));
    return AN_ONNX(o, "Softmax", SRC);
}

static value write_log_softmax(an_onnx *o, const an_node *node) {
    an_onnx_int(o, "axis", an_node_integer(node, "axis"));
    return AN_ONNX(o, "LogSoftmax", SRC);
}

static int64_t first_normalized(const an_node *node) {
    return an_node_input(node, 0)->ndims - an_node_input(node, 1)->ndims;
}

static value write_layer_norm(an_onnx *o, const an_node *node) {
    an_onnx_int(o, "axis", first_normalized(node));
    an_onnx_float(o, "epsilon", an_node_real(node, "epsilon"));
    return AN_ONNX(o, "LayerNormalization", SRC, OTHER, an_onnx_input(o, node, 2));
}

static value write_rms_norm(an_onnx *o, const an_node *node) {
    int64_t axes[AN_MAX_DIMS];
    const int64_t first = first_normalized(node), count = an_node_input(node, 1)->ndims;
    for (int64_t i = 0; i < count; i++) axes[i] = first + i;
    value epsilon = an_onnx_real(o, dtype(node), an_node_real(node, "epsilon"));
    value x = AN_ONNX(o, "Mul", SRC, SRC);
    an_onnx_ints(o, "axes", (size_t)count, axes);
    x = AN_ONNX(o, "ReduceMean", x);
    x = AN_ONNX(o, "Add", x, epsilon);
    x = AN_ONNX(o, "Sqrt", x);
    x = AN_ONNX(o, "Div", SRC, x);
    return AN_ONNX(o, "Mul", x, OTHER);
}

static value write_batch_norm(an_onnx *o, const an_node *node) {
    an_onnx_float(o, "epsilon", an_node_real(node, "epsilon"));
    return AN_ONNX(o, "BatchNormalization", SRC, OTHER, an_onnx_input(o, node, 2), an_onnx_input(o, node, 3),
                   an_onnx_input(o, node, 4));
}

/* ---- shapes and places ---- */

static value write_reshape(an_onnx *o, const an_node *node) {
    value shape = an_onnx_shape(o, node->outputs[0].ndims, node->outputs[0].dims);
    return AN_ONNX(o, "Reshape", SRC, shape);
}

static value write_expand(an_onnx *o, const an_node *node) {
    value shape = an_onnx_shape(o, node->outputs[0].ndims, node->outputs[0].dims);
    return AN_ONNX(o, "Expand", SRC, shape);
}

static value write_transpose(an_onnx *o, const an_node *node) {
    pass_list(o, node, "axes", "perm");
    return AN_ONNX(o, "Transpose", SRC);
}

static value write_slice(an_onnx *o, const an_node *node) {
    const int64_t axis = an_node_integer(node, "axis");
    value begin = size(o, node, "begin"), end = size(o, node, "end"), axes = an_onnx_integers(o, 1, &axis);
    return AN_ONNX(o, "Slice", SRC, begin, end, axes);
}

static value write_split(an_onnx *o, const an_node *node) {
    value src = SRC;
    an_onnx_int(o, "axis", an_node_integer(node, "axis"));
    return an_onnx_add(o, "Split", node->output_count, 1, &src);
}

static value write_concat(an_onnx *o, const an_node *node) {
    value joined = SRC; /* two at a time: a node may have any number of inputs */
    for (int i = 1; i < node->input_count; i++) {
        an_onnx_int(o, "axis", an_node_integer(node, "axis"));
        joined = AN_ONNX(o, "Concat", joined, an_onnx_input(o, node, i));
    }
    return joined;
}

/* As two concatenations with zeros would be; ONNX takes one list for both ends of all axes. */
static value write_pad(an_onnx *o, const an_node *node) {
    const int ndims = an_node_input(node, 0)->ndims;
    const int64_t axis = an_node_integer(node, "axis");
    an_dim ends[2 * AN_MAX_DIMS] = {0};
    value parts[2 * AN_MAX_DIMS];
    ends[axis] = *(const an_dim *)an_node_attribute(node, "before", AN_ATTRIBUTE_DIM);
    ends[ndims + axis] = *(const an_dim *)an_node_attribute(node, "after", AN_ATTRIBUTE_DIM);
    for (int i = 0; i < 2 * ndims; i++) parts[i] = an_onnx_size(o, ends[i]);
    an_onnx_int(o, "axis", 0);
    value pads = an_onnx_add(o, "Concat", 1, 2 * ndims, parts);
    return AN_ONNX(o, "Pad", SRC, pads);
}

static value write_gather(an_onnx *o, const an_node *node) {
    an_onnx_int(o, "axis", an_node_integer(node, "axis"));
    return AN_ONNX(o, "GatherElements", SRC, OTHER);
}

static value write_constant(an_onnx *o, const an_node *node) {
    return dtype(node) == AN_DTYPE_I64 ? an_onnx_integer(o, (int64_t)an_node_real(node, "value"))
                                       : an_onnx_real(o, dtype(node), an_node_real(node, "value"));
}

/* ---- the table ---- */

/* {0} or {factor}; `text` is moved behind it. */
static value write_operand(an_onnx *o, const an_node *node, const char **text) {
    char name[AN_ONNX_NAME];
    const size_t length = strcspn(*text, "}");
    snprintf(name, sizeof name, "%.*s", (int)length - 1, *text + 1);
    *text += length + 1;
    return an_is_digit(*name) ? an_onnx_input(o, node, *name - '0')
                              : an_onnx_real(o, dtype(node), an_node_real(node, name));
}

/* Mul(Sigmoid({0}), {0}); `text` is moved behind it. */
static value write_part(an_onnx *o, const an_node *node, const char **text) {
    enum { OPERANDS = 3 };
    value operands[OPERANDS];
    char op[AN_ONNX_NAME];
    int count = 0;
    if (**text == '{') return write_operand(o, node, text);
    const size_t length = strcspn(*text, "(");
    snprintf(op, sizeof op, "%.*s", (int)length, *text);
    for (*text += length; **text != ')' && count < OPERANDS;) {
        *text += strspn(*text, "(, ");
        operands[count++] = write_part(o, node, text);
    }
    ++*text;
    return an_onnx_add(o, op, 1, count, operands);
}

static value write_text(an_onnx *o, const an_node *node) {
    const char *text = node->op->onnx;
    if (strchr(text, '(')) return write_part(o, node, &text);
    return node->input_count > 1 ? AN_ONNX(o, text, SRC, OTHER) : AN_ONNX(o, text, SRC);
}

#define WRITTEN(op) \
    { .name = #op, .write = write_##op }
/* Ops that no text says (an_op.onnx). */
static const an_onnx_form rows[] = {
    WRITTEN(gelu),
    WRITTEN(gelu_tanh),
    WRITTEN(cast),
    WRITTEN(bias),
    WRITTEN(matmul),
    WRITTEN(matmul_sum),
    WRITTEN(convolution),
    WRITTEN(max_pool),
    WRITTEN(average_pool),
    WRITTEN(reduce_sum),
    WRITTEN(reduce_mean),
    WRITTEN(reduce_max),
    WRITTEN(softmax),
    WRITTEN(log_softmax),
    WRITTEN(layer_norm),
    WRITTEN(rms_norm),
    WRITTEN(batch_norm),
    {.name = "batch_norm_fixed", .write = write_batch_norm},
    WRITTEN(reshape),
    WRITTEN(expand),
    WRITTEN(transpose),
    WRITTEN(slice),
    {.name = "split", .write = write_split, .many = true},
    WRITTEN(concat),
    WRITTEN(pad),
    WRITTEN(gather),
    WRITTEN(constant),
    {.name = "dropout", .write = write_nothing, .inputs = 1},
    {.name = "attention", .write = an_onnx_attention, .inputs = 6},
    {.name = "rotary", .write = an_onnx_rotary},
};

an_onnx_form an_onnx_form_of(const an_op *op) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, op->name)) return rows[i];
    return (an_onnx_form){.name = op->name, .write = op->onnx ? write_text : NULL};
}

value an_onnx_node(an_onnx *o, const an_node *node) {
    return an_onnx_form_of(node->op).write(o, node);
}
