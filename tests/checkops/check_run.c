/* A run: one random case of one op in one dtype, its shapes and its tensors. */
#include "checkops/checkops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "support/ops.h"

enum {
    CONTEXT_THREADS = 2,
    CANDIDATES = 200, /* among which large cases are looked for */
    FLOPS = 64        /* that make a case as large as one element does: products are large by their work */
};

/* Times the sizes of ordinary cases, for large ones by turns. */
static const int64_t enlarge[] = {4, 12, 32, 96};

static an_dtype input_dtype(const check_input *input, an_dtype tested) {
    if (input->dtype != AN_DTYPE_NONE) return input->dtype;
    if (input->compute_dtype && tested != AN_DTYPE_F64) return AN_DTYPE_F32;
    return tested;
}

/* ---- making a run ---- */

static void operand_shape(check_operand *operand, const an_tensor *tensor) {
    operand->tensor = *tensor;
    memcpy(operand->dense, tensor->strides, sizeof operand->dense);
    operand->array.ndims = tensor->ndims;
    operand->array.count = 1;
    for (int i = 0; i < tensor->ndims; i++) operand->array.count *= operand->array.dims[i] = tensor->dims[i];
}

/* Adds the op to a graph, on inputs of the case's shapes; 0 if the op refuses them. */
static an_value add_to_graph(check_run *run) {
    an_value values[AN_MAX_INPUTS];
    an_graph *g = run->graph;
    for (int i = 0; i < run->c.input_count; i++) {
        const check_input *input = &run->c.inputs[i];
        char name[32]; /* any int fits */
        snprintf(name, sizeof name, "input%d", i);
        values[i] = AN_NONE;
        if (input->is_state)
            values[i] = an_program_state(g, name, input_dtype(input, run->dtype), input->ndims, input->dims);
        else if (input->fill != CHECK_ABSENT)
            values[i] = an_input(g, name, input_dtype(input, run->dtype), input->ndims, input->dims);
    }
    if (run->op->flags & AN_OP_BINDS_GRADIENT) { /* parameter 0, whose gradient it is */
        const check_input *last = &run->c.inputs[run->c.input_count - 1];
        an_param(g, "parameter", run->dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32, AN_INITIALIZER_CONSTANT, 0,
                 last->ndims, last->dims);
    }
    return an_graph_add_outputs(g, run->op, run->c.input_count, values, run->c.attributes,
                                run->c.output_count ? run->c.output_count : run->op->outputs);
}

static bool infer_shapes(check_run *run) {
    an_value value = add_to_graph(run);
    const an_result *result = an_graph_result(run->graph, value);
    if (run->graph->status != AN_OK || !result) return false;
    run->node = result->node;
    run->src_count = run->node->input_count;
    run->dst_count = run->node->output_count;
    for (int i = 0; i < run->src_count + run->dst_count; i++) {
        bool is_src = i < run->src_count;
        const an_result *r = is_src ? an_node_input(run->node, i) : &run->node->outputs[i - run->src_count];
        an_tensor tensor;
        if (!r) continue; /* absent: a tensor of dtype NONE */
        if (!an_result_tensor(run->graph, r, &tensor)) return false;
        operand_shape(is_src ? &run->src[i] : &run->dst[i - run->src_count], &tensor);
    }
    return true;
}

static void make_case(check_run *run, const check_options *options, const check_family *family, an_dtype dtype,
                      int64_t number) {
    check_random r = check_random_of(options->seed, family->op, number, CHECK_STREAM_SHAPES);
    memset(run, 0, sizeof *run);
    run->options = options;
    run->family = family;
    run->op = find_builtin(family->op);
    run->dtype = dtype;
    run->number = number;
    if (number >= CHECK_FIRST_LARGE) r.enlarge = enlarge[number % (int64_t)(sizeof enlarge / sizeof enlarge[0])];
    family->make(&r, &run->c);
}

static bool open_run(check_run *run) {
    an_context_options context;
    an_context_options_init(&context, sizeof context);
    context.threads = CONTEXT_THREADS;
    context.isa = run->options->isa;
    return an_context_create(&run->ctx, &context) == AN_OK && an_graph_create(&run->graph, run->ctx, "case") == AN_OK &&
           infer_shapes(run);
}

bool check_run_create(check_run *run, const check_options *options, const check_family *family, an_dtype dtype,
                      int64_t number, unsigned flags, const char **why) {
    static char message[AN_MESSAGE_BYTES];
    make_case(run, options, family, dtype, number);
    if (!open_run(run)) {
        snprintf(message, sizeof message, "%s", run->graph ? run->graph->message : an_last_error(run->ctx));
        *why = message;
        return false;
    }
    if (!(flags & CHECK_SHAPES_ONLY)) check_run_fill(run, flags);
    return true;
}

/* Inputs of the family's mask that have as many samples as the first of them (others are broadcast, or have none), and
 * the shape of the result where that is an attribute. False if the case works along its samples, or has none. */
static bool set_rows(check_run *run, int64_t rows) {
    int64_t own = 0;
    for (const an_attribute *a = run->op->attributes; a && a->name; a++)
        if (a->type == AN_ATTRIBUTE_INT && !strcmp(a->name, "axis") &&
            *(const int64_t *)(const void *)(run->c.attributes + a->offset) == 0)
            return false;
    for (int i = 0; i < run->c.input_count; i++) {
        check_input *input = &run->c.inputs[i];
        if (!(run->family->rows >> i & 1) || input->fill == CHECK_ABSENT) continue;
        if (input->ndims == 0) return false;
        if (!own) own = input->dims[0];
        if (input->dims[0] == own) input->dims[0] = rows;
    }
    for (const an_attribute *a = run->op->attributes; a && a->name; a++) {
        an_dim_list *list = (an_dim_list *)(void *)(run->c.attributes + a->offset);
        if (a->type != AN_ATTRIBUTE_DIMS || list->count == 0) continue;
        if (list->values[0] != own) return false;
        list->values[0] = rows;
    }
    return own > 1; /* of 1, nobody knows whether it is broadcast */
}

bool check_run_create_rows(check_run *run, const check_options *options, const check_family *family, an_dtype dtype,
                           int64_t number, int64_t rows) {
    make_case(run, options, family, dtype, number);
    return set_rows(run, rows) && open_run(run);
}

void check_run_destroy(check_run *run) {
    for (int i = 0; i < AN_MAX_INPUTS + AN_MAX_OUTPUTS; i++) {
        check_operand *operand = i < AN_MAX_INPUTS ? &run->src[i] : &run->dst[i - AN_MAX_INPUTS];
        check_release(operand);
        free(operand->array.data);
        free(operand->initial);
    }
    an_graph_destroy(&run->graph);
    an_context_destroy(&run->ctx);
}

void check_run_place(check_run *run, check_layout layout, bool mixed) {
    check_random r = check_random_of(run->options->seed, run->family->op, run->number, CHECK_STREAM_LAYOUTS);
    for (int i = 0; i < run->src_count; i++) {
        const check_input *input = &run->c.inputs[i];
        check_layout drawn = mixed ? (check_layout)check_between(&r, 0, CHECK_LAYOUTS - 1) : layout;
        if (!run->src[i].array.data) continue;
        /* equal numbers would be ties for those who must not have any */
        if (input->only_dense || (drawn == CHECK_BROADCAST && input->fill == CHECK_APART)) drawn = CHECK_DENSE;
        check_release(&run->src[i]);
        check_place(&run->src[i], drawn, &r, true);
        check_remember(&run->src[i]);
    }
    for (int i = 0; i < run->dst_count; i++) {
        check_layout drawn = mixed ? (check_layout)check_between(&r, 0, CHECK_GAPS) : layout;
        check_release(&run->dst[i]);
        check_place(&run->dst[i], drawn == CHECK_BROADCAST ? CHECK_DENSE : drawn, &r, false);
        check_remember(&run->dst[i]);
    }
}

int64_t check_run_elements(const check_run *run) {
    int64_t maximum = 0;
    for (int i = 0; i < run->src_count; i++)
        if (run->src[i].array.count > maximum) maximum = run->src[i].array.count;
    for (int i = 0; i < run->dst_count; i++)
        if (run->dst[i].array.count > maximum) maximum = run->dst[i].array.count;
    return maximum;
}

an_cost check_run_cost(const check_run *run) {
    an_cost cost = {0};
    if (run->op->cost) return run->op->cost(run->graph, run->node);
    for (int i = 0; i < run->src_count; i++)
        cost.bytes += (double)run->src[i].array.count * (double)an_dtype_size(run->src[i].tensor.dtype);
    for (int i = 0; i < run->dst_count; i++) {
        cost.bytes += (double)run->dst[i].array.count * (double)an_dtype_size(run->dst[i].tensor.dtype);
        cost.flops += (double)run->dst[i].array.count;
    }
    return cost;
}

int check_find_large(const check_options *options, const check_family *family, int64_t minimum, int64_t maximum,
                     double flops, int wanted, int64_t *numbers) {
    check_run *run = check_allocate(1, sizeof *run);
    int64_t *sizes = check_allocate((size_t)wanted + 1, sizeof *sizes); /* in descending order, as are their numbers */
    int count = 0;
    for (int64_t n = CHECK_FIRST_LARGE; n < CHECK_FIRST_LARGE + CANDIDATES; n++) {
        const char *why; /* a size that has a real bound may have grown past it: such a case is passed over */
        bool fits = check_run_create(run, options, family, AN_DTYPE_F32, n, CHECK_SHAPES_ONLY, &why);
        int64_t size = fits ? check_run_elements(run) : 0;
        double work = fits ? check_run_cost(run).flops : 0;
        fits = fits && size <= maximum && work <= flops;
        if (fits && work > FLOPS * (double)size) size = (int64_t)(work / FLOPS);
        check_run_destroy(run);
        if (size > minimum) size = minimum; /* enough is enough: the first of these stay */
        int at = count;
        while (at > 0 && sizes[at - 1] < size) at--;
        if (!fits || at == wanted) continue;
        if (count < wanted) count++;
        memmove(sizes + at + 1, sizes + at, (size_t)(count - 1 - at) * sizeof *sizes);
        memmove(numbers + at + 1, numbers + at, (size_t)(count - 1 - at) * sizeof *numbers);
        sizes[at] = size;
        numbers[at] = n;
    }
    free(sizes);
    free(run);
    return count;
}

static size_t describe(const check_operand *operands, int count, char *text, size_t capacity, size_t length) {
    static const char *const layouts[CHECK_LAYOUTS] = {"", " permuted", " gaps", " broadcast"};
    for (int i = 0; i < count && length < capacity; i++) {
        const an_tensor *t = &operands[i].tensor;
        char dims[AN_MAX_DIMS * 21 + 1] = ""; /* a number has at most 20 digits, and its comma */
        size_t used = 0;
        for (int d = 0; d < t->ndims; d++)
            used += (size_t)snprintf(dims + used, sizeof dims - used, "%s%lld", d ? "," : "", (long long)t->dims[d]);
        length += (size_t)snprintf(text + length, capacity - length, "%s%s[%s]%s", i ? ", " : "",
                                   an_dtype_name(t->dtype), dims, layouts[operands[i].layout]);
    }
    return length;
}

void check_run_describe(const check_run *run, char *text, size_t capacity) {
    size_t length = describe(run->src, run->src_count, text, capacity, 0);
    if (length < capacity) length += (size_t)snprintf(text + length, capacity - length, " -> ");
    describe(run->dst, run->dst_count, text, capacity, length);
}
