/* Writing the text form. docs/ang-format.md has the grammar.
 *
 * Values are numbered as they appear, not by their handles, so that what is printed, read and printed again is the same
 * text also where passes removed or moved nodes. Attributes are written by their tables: nothing here knows an op.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "ir/scan.h"
#include "ir/text_form.h"

const char *const an_phase_names[] = {[AN_PHASE_FORWARD] = "forward", [AN_PHASE_BACKWARD] = "backward", NULL};

const char *const an_storage_names[] = {
    [AN_STORAGE_ARENA] = "arena",       [AN_STORAGE_MASTER] = "master",
    [AN_STORAGE_FROZEN] = "frozen",     [AN_STORAGE_LOW] = "low",
    [AN_STORAGE_PACKED] = "packed",     [AN_STORAGE_GRADIENT] = "gradient",
    [AN_STORAGE_STATE] = "state",       [AN_STORAGE_PROGRAM_STATE] = "program_state",
    [AN_STORAGE_INPUT] = "input",       [AN_STORAGE_SCALAR] = "scalar",
    [AN_STORAGE_CONSTANT] = "constant", [AN_STORAGE_COUNT] = NULL,
};

typedef struct printer {
    const an_graph *graph;
    an_text *text;
    bool dump;
    uint32_t *numbers; /* by result: how it is called in the text plus 1; 0: not yet */
    uint32_t next;
    size_t blocks; /* that are declared so far */
} printer;

/* ---- values ---- */

static void print_string(printer *p, const char *string) {
    an_text *t = p->text;
    size_t length = strlen(string);
    if (length > AN_LONGEST_STRING && t->status == AN_OK)
        t->status = AN_ERROR(t->ctx, AN_ERR_OVERFLOW,
                             "a string of %zu bytes cannot be written: at most %d bytes can be read back", length,
                             AN_LONGEST_STRING);
    an_text_add(t, "\"");
    for (; *string; string++) {
        unsigned char c = (unsigned char)*string;
        if (c == '"' || c == '\\')
            an_text_add(t, "\\%c", c);
        else if (c >= ' ' && c <= '~')
            an_text_bytes(t, string, 1);
        else if (c == '\n' || c == '\t' || c == '\r')
            an_text_add(t, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
        else
            an_text_add(t, "\\x%02x", c);
    }
    an_text_add(t, "\"");
}

static void print_number(printer *p, double number) {
    enum { ENOUGH = 32 };
    char buffer[ENOUGH];
    an_text_number(buffer, sizeof buffer, number);
    an_text_add(p->text, "%s", buffer);
}

static void print_dims(printer *p, int count, const an_dim *dims) {
    an_text_add(p->text, "[");
    for (int i = 0; i < count; i++) {
        if (i > 0) an_text_add(p->text, ",");
        an_dimensions_print(&p->graph->dimensions, dims[i], p->text);
    }
    an_text_add(p->text, "]");
}

static void print_value(printer *p, const an_result *result) {
    if (result)
        an_text_add(p->text, "%%%" PRIu32, p->numbers[result->number] - 1);
    else
        an_text_add(p->text, "_");
}

/* ---- attributes ---- */

/* What the parser takes an attribute to be unless it is given. */
static bool is_default(const an_attribute *attribute, const void *value) {
    double number;
    switch (attribute->type) {
    case AN_ATTRIBUTE_INT:
    case AN_ATTRIBUTE_DIM: return *(const int64_t *)value == 0;
    case AN_ATTRIBUTE_BOOL: return !*(const bool *)value;
    case AN_ATTRIBUTE_FLOAT: number = *(const double *)value; return number == 0 && !signbit(number); /* -0 is not 0 */
    case AN_ATTRIBUTE_STRING: return !*(const char *const *)value;
    case AN_ATTRIBUTE_DTYPE: return *(const an_dtype *)value == AN_DTYPE_NONE;
    case AN_ATTRIBUTE_DIMS: return ((const an_dim_list *)value)->count == 0;
    case AN_ATTRIBUTE_INTS: return ((const an_int_list *)value)->count == 0;
    }
    return false;
}

/* A source's dtype and dims are what its type says, unless they are given. */
static bool is_implied(const an_node *node, const an_attribute *attribute, const void *value) {
    const an_result *r = node->op->flags & AN_OP_SOURCE ? &node->outputs[0] : NULL;
    const an_dim_list *dims = value;
    if (r && attribute->type == AN_ATTRIBUTE_DTYPE && !strcmp(attribute->name, "dtype"))
        return *(const an_dtype *)value == r->dtype;
    if (r && attribute->type == AN_ATTRIBUTE_DIMS && !strcmp(attribute->name, "dims"))
        return dims->count == r->ndims && !memcmp(dims->values, r->dims, (size_t)r->ndims * sizeof *r->dims);
    return is_default(attribute, value);
}

static void print_ints(printer *p, const an_int_list *ints) {
    an_text_add(p->text, "[");
    for (int i = 0; i < ints->count; i++) an_text_add(p->text, "%s%" PRId64, i ? "," : "", ints->values[i]);
    an_text_add(p->text, "]");
}

static void print_attribute(printer *p, const an_attribute *attribute, const void *value) {
    an_text *t = p->text;
    const an_dim_list *dims = value;
    an_text_add(t, "%s=", attribute->name);
    switch (attribute->type) {
    case AN_ATTRIBUTE_INT: an_text_add(t, "%" PRId64, *(const int64_t *)value); break;
    case AN_ATTRIBUTE_BOOL: an_text_add(t, *(const bool *)value ? "true" : "false"); break;
    case AN_ATTRIBUTE_FLOAT: print_number(p, *(const double *)value); break;
    case AN_ATTRIBUTE_STRING: print_string(p, *(const char *const *)value); break;
    case AN_ATTRIBUTE_DTYPE: an_text_add(t, "%s", an_dtype_name(*(const an_dtype *)value)); break;
    case AN_ATTRIBUTE_DIM: an_dimensions_print(&p->graph->dimensions, *(const an_dim *)value, t); break;
    case AN_ATTRIBUTE_DIMS: print_dims(p, dims->count, dims->values); break;
    case AN_ATTRIBUTE_INTS: print_ints(p, value); break;
    }
}

/* ---- annotations ---- */

/* Begins an annotation. */
static void note(printer *p, bool *any, const char *name) {
    an_text_add(p->text, "%s%s=", *any ? ", " : " {", name);
    *any = true;
}

static void print_result_dtype(printer *p, const an_result *r) {
    an_text_add(p->text, "%s", an_dtype_name(r->dtype));
}

static void print_result_order(printer *p, const an_result *r) {
    an_int_list order = {.count = r->ndims};
    for (int i = 0; i < r->ndims; i++) order.values[i] = r->order[i];
    print_ints(p, &order);
}

static void print_result_storage(printer *p, const an_result *r) {
    an_text_add(p->text, "%s", an_storage_names[r->storage]);
}

static void print_result_place(printer *p, const an_result *r) {
    an_text_add(p->text, "%" PRId64, r->place);
}

static void print_result_bytes(printer *p, const an_result *r) {
    an_text_add(p->text, "%" PRId64, r->bytes);
}

/* One value for a node with one output, a list for any other. */
static void note_outputs(printer *p, bool *any, const char *name, const an_node *node,
                         void (*print)(printer *p, const an_result *r)) {
    bool list = node->output_count != 1;
    note(p, any, name);
    if (list) an_text_add(p->text, "[");
    for (int i = 0; i < node->output_count; i++) {
        if (i > 0) an_text_add(p->text, ",");
        print(p, &node->outputs[i]);
    }
    if (list) an_text_add(p->text, "]");
}

static bool is_low(const an_result *r) {
    return r && (r->dtype == AN_DTYPE_BF16 || r->dtype == AN_DTYPE_F16);
}

/* Autocast changes types where low ones are near; anywhere else they are what inference gives. */
static bool touches_low(const an_node *node) {
    if (node->output_count == 0 || node->op->flags & AN_OP_SOURCE) return false;
    for (int i = 0; i < node->input_count; i++)
        if (is_low(node->inputs[i].result)) return true;
    for (int i = 0; i < node->output_count; i++)
        if (is_low(&node->outputs[i])) return true;
    return false;
}

static void print_outputs_annotations(printer *p, bool *any, const an_node *node) {
    bool order = false, storage = false, place = false, bytes = false;
    for (int i = 0; i < node->output_count; i++) {
        const an_result *r = &node->outputs[i];
        for (int d = 0; d < r->ndims; d++) order |= r->order[d] != d;
        storage |= r->storage != node->op->storage;
        place |= r->place != -1;
        bytes |= r->bytes != 0;
    }
    if (touches_low(node)) note_outputs(p, any, "dtype", node, print_result_dtype);
    if (order) note_outputs(p, any, "order", node, print_result_order);
    if (storage) note_outputs(p, any, "storage", node, print_result_storage);
    if (place) note_outputs(p, any, "offset", node, print_result_place);
    if (bytes) note_outputs(p, any, "bytes", node, print_result_bytes);
}

/* An origin that was pruned, or has no output to be named by, is not in the text. */
static bool can_name(const printer *p, const an_node *origin) {
    return origin && origin->output_count > 0 && p->graph->results[origin->outputs[0].number] == &origin->outputs[0] &&
           p->numbers[origin->outputs[0].number] > 0;
}

static void print_place(printer *p, bool *any, const an_place *place) {
    char text[1024]; /* a path; longer ones are cut, as only messages show them */
    if (!place->file || !strcmp(place->file, AN_TEXT_FILE)) return;
    snprintf(text, sizeof text, "%.1000s:%d", place->file, place->line);
    note(p, any, "at");
    print_string(p, text);
}

static void print_annotations(printer *p, const an_node *node) {
    bool any = false;
    if (node->block > 0) {
        note(p, &any, "block");
        an_text_add(p->text, "%d", node->block);
    }
    if (p->dump) {
        if (*node->path) {
            note(p, &any, "path");
            print_string(p, node->path);
        }
        if (node->phase != AN_PHASE_FORWARD) {
            note(p, &any, "phase");
            an_text_add(p->text, "%s", an_phase_names[node->phase]);
        }
        if (can_name(p, node->origin)) {
            note(p, &any, "origin");
            print_value(p, &node->origin->outputs[0]);
        }
        if (node->is_copy) {
            note(p, &any, "copy");
            an_text_add(p->text, "true");
        }
        print_place(p, &any, &node->place);
        if (node->kernel) {
            note(p, &any, "kernel");
            print_string(p, node->kernel->name);
        }
        print_outputs_annotations(p, &any, node);
        if (node->scratch_bytes) {
            note(p, &any, "scratch");
            an_text_add(p->text, "%" PRId64, node->scratch_bytes);
        }
        if (node->scratch_place) {
            note(p, &any, "scratch_offset");
            an_text_add(p->text, "%" PRId64, node->scratch_place);
        }
        if (node->elided) {
            note(p, &any, "elided");
            an_text_add(p->text, "true");
        }
    }
    if (any) an_text_add(p->text, "}");
}

/* ---- statements ---- */

static void print_symbols(printer *p) {
    const an_dimensions *d = &p->graph->dimensions;
    for (size_t i = 0; i < d->symbol_count; i++) {
        const an_symbol *s = &d->symbols[i];
        an_text_add(p->text, "symbol %s", s->name);
        if (p->dump && s->maximum) an_text_add(p->text, " maximum=%" PRId64, s->maximum);
        if (p->dump && s->value != s->maximum) an_text_add(p->text, " value=%" PRId64, s->value);
        an_text_add(p->text, "\n");
    }
}

/* Declares the blocks and scopes up to `last` that are not yet. */
static void print_blocks(printer *p, int last) {
    for (; p->blocks <= (size_t)last; p->blocks++) {
        const an_block *b = &p->graph->blocks[p->blocks];
        an_text_add(p->text, "%s %zu ", b->is_scope ? "scope" : "block", p->blocks);
        print_string(p, b->name);
        if (b->depth) an_text_add(p->text, " depth=%d", b->depth);
        if (b->parent > 0) an_text_add(p->text, " parent=%d", b->parent);
        an_text_add(p->text, "\n");
    }
}

static void print_node(printer *p, const an_node *node) {
    const an_op *op = node->op;
    const char *separator = "";
    print_blocks(p, node->block);
    for (int i = 0; i < node->output_count; i++) {
        p->numbers[node->outputs[i].number] = ++p->next;
        if (i > 0) an_text_add(p->text, ", ");
        print_value(p, &node->outputs[i]);
    }
    an_text_add(p->text, "%s%s(", node->output_count ? " = " : "", op->name);
    for (int i = 0; i < node->input_count; i++, separator = ", ") {
        an_text_add(p->text, "%s", separator);
        print_value(p, node->inputs[i].result);
    }
    for (const an_attribute *a = op->attributes; a && a->name; a++) {
        const void *value = (const char *)node->attributes + a->offset;
        if (is_implied(node, a, value) || (a->noted && !p->dump)) continue;
        an_text_add(p->text, "%s", separator);
        print_attribute(p, a, value);
        separator = ", ";
    }
    an_text_add(p->text, ")");
    for (int i = 0; i < node->output_count; i++) {
        const an_result *r = &node->outputs[i];
        an_text_add(p->text, "%s%s", i ? ", " : " : ", an_dtype_name(r->dtype));
        print_dims(p, r->ndims, r->dims);
    }
    print_annotations(p, node);
    an_text_add(p->text, "\n");
}

static void print_loss(printer *p) {
    const an_graph *g = p->graph;
    const an_result *loss = an_graph_result(g, g->loss), *targets = an_graph_result(g, g->targets);
    if (!loss) return;
    an_text_add(p->text, "loss ");
    print_value(p, loss);
    if (targets) {
        an_text_add(p->text, " targets ");
        print_value(p, targets);
    }
    an_text_add(p->text, "\n");
}

/* Appends to the text; the first error sticks to it and is returned. Parameters are numbered as they are read, so a
 * dump begins with them in that order, also with those that a pass moved or pruned. */
static an_status print_graph(const an_graph *g, an_text *text, bool dump) {
    an_context *ctx = g->ctx;
    printer p = {.graph = g, .text = text, .dump = dump, .blocks = 1};
    AN_TRY_RETURN(an_alloc(ctx, (void **)&p.numbers, g->result_count, sizeof *p.numbers));
    an_text_add(text, "ang %d%s\ngraph ", AN_TEXT_VERSION, dump ? " dump" : "");
    print_string(&p, g->name);
    an_text_add(text, "\n");
    print_symbols(&p);
    for (size_t i = 0; dump && i < g->parameter_count; i++) print_node(&p, g->parameters[i].node);
    for (const an_node *node = g->first; node && text->status == AN_OK; node = node->next)
        if (node->output_count == 0 || p.numbers[node->outputs[0].number] == 0) print_node(&p, node);
    print_blocks(&p, (int)g->block_count - 1);
    print_loss(&p);
    an_release(ctx, (void **)&p.numbers, g->result_count, sizeof *p.numbers);
    return text->status;
}

an_status an_graph_dump(const an_graph *g, an_text *text) {
    return print_graph(g, text, true);
}

an_status an_graph_print(const an_graph *graph, char **text) {
    AN_GUARD;
    AN_NEED(graph, text);
    an_status status;
    an_context *ctx = graph->ctx;
    an_text t;
    *text = NULL;
    an_text_init(&t, ctx);
    AN_CHECK(ctx, graph->status == AN_OK, graph->status, "%s", graph->message);
    AN_TRY(print_graph(graph, &t, false));
    AN_TRY(an_text_take(&t, text));
fail:
    an_text_destroy(&t);
    return status;
}
