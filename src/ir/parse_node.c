/* Nodes of the text form: %y = product(%x, %w, transpose_b=true) : f32[batch,64] {block=1}
 *
 * Nodes are added as builders add them, so inference and its messages are the same.
 */
#include <string.h>

#include "ir/parser.h"
#include "ir/registry.h"

typedef struct type {
    an_dtype dtype;
    an_dim_list dims;
} type;

/* One node, as its line has it. */
typedef struct node_line {
    int output_count;
    an_token outputs[AN_MAX_OUTPUTS];
    const an_op *op;
    an_token op_token;
    int input_count;
    an_value inputs[AN_MAX_INPUTS];
    uint64_t attributes; /* mask over the op's: those that were given */
    int type_count;      /* 0 or as many as outputs */
    type types[AN_MAX_OUTPUTS];
    an_token type_tokens[AN_MAX_OUTPUTS];
    an_annotations annotations;
} node_line;

/* ---- parts of a node ---- */

/* %a, _, %b = */
static an_status parse_outputs(an_parser *p, node_line *line) {
    for (;;) {
        const an_token *t = &p->scan.token;
        if (t->kind != AN_TOKEN_VALUE && !an_token_is(t, "_"))
            return an_scan_unexpected(&p->scan, "a value such as %x, or _");
        if (line->output_count == AN_MAX_OUTPUTS)
            return an_scan_error(&p->scan, t, "a node has at most %d outputs", AN_MAX_OUTPUTS);
        line->outputs[line->output_count++] = *t;
        AN_TRY_RETURN(an_scan_next(&p->scan));
        if (!an_scan_is(&p->scan, ',')) return an_scan_expect(&p->scan, '=', "after the outputs");
        AN_TRY_RETURN(an_scan_next(&p->scan));
    }
}

static an_status unknown_op(const an_parser *p) {
    const an_token *t = &p->scan.token;
    an_nearest nearest;
    if (t->kind != AN_TOKEN_NAME) return an_scan_unexpected(&p->scan, "the name of an op");
    an_nearest_init(&nearest, t->start, t->length);
    const an_op *op;
    for (size_t i = 0; (op = an_op_at(p->scan.ctx, i)); i++) an_nearest_consider(&nearest, op->name, strlen(op->name));
    const an_nearest_text near = an_nearest_describe(&nearest);
    return an_scan_error(&p->scan, t, "there is no op '%.*s'%s", (int)t->length, t->start,
                         *near.text ? near.text
                                    : "; an op that a program added (an_context_add_op) is known to that program only");
}

static an_status parse_op(an_parser *p, node_line *line) {
    const an_token t = p->scan.token;
    line->op_token = t;
    line->op = t.kind == AN_TOKEN_NAME ? an_op_find_written(p->scan.ctx, t.start, t.length) : NULL;
    if (!line->op) {
        unknown_op(p);
        return AN_ERR_PARSE;
    }
    int outputs = line->op->outputs;
    if (outputs == AN_OUTPUTS_ANY ? line->output_count == 0 : line->output_count != outputs)
        return an_scan_error(
            &p->scan, &t, "%s has %s%d output%s, but the line names %d; use _ for an output that is not read",
            line->op->name, outputs == AN_OUTPUTS_ANY ? "at least " : "", outputs == AN_OUTPUTS_ANY ? 1 : outputs,
            outputs == 0 || outputs > 1 ? "s" : "", line->output_count);
    memset(p->attributes, 0, p->attribute_bytes);
    return an_scan_next(&p->scan);
}

/* name=value */
static an_status parse_attribute(an_parser *p, node_line *line) {
    const an_token t = p->scan.token;
    for (const an_attribute *a = line->op->attributes; a && a->name; a++) {
        uint64_t bit = (uint64_t)1 << (a - line->op->attributes);
        if (!an_token_is(&t, a->name)) continue;
        if (line->attributes & bit) return an_scan_error(&p->scan, &t, "'%s' is given twice", a->name);
        if (a->noted && !p->dump) return an_parser_only_dump(p, &t);
        line->attributes |= bit;
        AN_TRY_RETURN(an_scan_next(&p->scan));
        AN_TRY_RETURN(an_scan_expect(&p->scan, '=', "after the attribute's name"));
        return an_parse_attribute(p, a);
    }
    an_nearest nearest;
    an_nearest_init(&nearest, t.start, t.length);
    for (const an_attribute *a = line->op->attributes; a && a->name; a++)
        an_nearest_consider(&nearest, a->name, strlen(a->name));
    return an_scan_error(&p->scan, &t, "%s has no attribute '%.*s'%s", line->op->name, (int)t.length, t.start,
                         AN_NEAREST(&nearest));
}

static an_status parse_input(an_parser *p, node_line *line) {
    if (line->attributes) return an_scan_error(&p->scan, &p->scan.token, "inputs come before attributes");
    if (line->input_count == AN_MAX_INPUTS)
        return an_scan_error(&p->scan, &p->scan.token, "a node has at most %d inputs", AN_MAX_INPUTS);
    an_value *input = &line->inputs[line->input_count++];
    if (p->scan.token.kind == AN_TOKEN_VALUE) return an_parse_value(p, input);
    *input = AN_NONE;
    return an_scan_next(&p->scan);
}

/* (%a, _, axis=1) */
static an_status parse_operands(an_parser *p, node_line *line) {
    AN_TRY_RETURN(an_scan_expect(&p->scan, '(', "after the op"));
    while (!an_scan_is(&p->scan, ')')) {
        const an_token *t = &p->scan.token;
        if (t->kind == AN_TOKEN_VALUE || an_token_is(t, "_"))
            AN_TRY_RETURN(parse_input(p, line));
        else if (t->kind == AN_TOKEN_NAME)
            AN_TRY_RETURN(parse_attribute(p, line));
        else
            return an_scan_unexpected(&p->scan, "an input such as %x or _, or attribute=value");
        if (!an_scan_is(&p->scan, ',')) break;
        AN_TRY_RETURN(an_scan_next(&p->scan));
    }
    return an_scan_expect(&p->scan, ')', "after inputs and attributes");
}

/* : f32[batch,64], f32[batch] */
static an_status parse_types(an_parser *p, node_line *line) {
    do {
        AN_TRY_RETURN(an_scan_next(&p->scan));
        if (line->type_count == line->output_count)
            return an_scan_error(&p->scan, &p->scan.token, "there are more types than outputs");
        int i = line->type_count++;
        line->type_tokens[i] = p->scan.token;
        AN_TRY_RETURN(an_parse_dtype(p, &line->types[i].dtype));
        AN_TRY_RETURN(an_parse_dims(p, &line->types[i].dims));
    } while (an_scan_is(&p->scan, ','));
    if (line->type_count < line->output_count)
        return an_scan_error(&p->scan, &p->scan.token, "%d of %d outputs have a type: give all or none",
                             line->type_count, line->output_count);
    return AN_OK;
}

/* ---- the node as a whole ---- */

/* A source's type is its attributes dtype and dims, unless they are given on their own. */
static void take_type(an_parser *p, const node_line *line) {
    if (!(line->op->flags & AN_OP_SOURCE) || line->type_count == 0) return;
    for (const an_attribute *a = line->op->attributes; a && a->name; a++) {
        void *to = (char *)p->attributes + a->offset;
        if (line->attributes >> (a - line->op->attributes) & 1) continue;
        if (a->type == AN_ATTRIBUTE_DTYPE && !strcmp(a->name, "dtype"))
            memcpy(to, &line->types[0].dtype, sizeof(an_dtype));
        if (a->type == AN_ATTRIBUTE_DIMS && !strcmp(a->name, "dims"))
            memcpy(to, &line->types[0].dims, sizeof(an_dim_list));
    }
}

static an_status check_types(an_parser *p, const node_line *line, const an_node *node) {
    for (int i = 0; i < line->type_count; i++) {
        const an_result *r = &node->outputs[i];
        const an_dim_list *dims = &line->types[i].dims;
        if (line->types[i].dtype == r->dtype && dims->count == r->ndims &&
            !memcmp(dims->values, r->dims, (size_t)r->ndims * sizeof *r->dims))
            continue;
        an_result written = {.dtype = line->types[i].dtype, .ndims = dims->count};
        memcpy(written.dims, dims->values, sizeof written.dims);
        return an_scan_error(&p->scan, &line->type_tokens[i], "%s gives %s here, not %s", node->op->name,
                             AN_DESCRIBE(p->graph, r), AN_DESCRIBE(p->graph, &written));
    }
    return AN_OK;
}

static an_status add_node(an_parser *p, const node_line *line) {
    an_graph *g = p->graph;
    const an_annotations *a = &line->annotations;
    take_type(p, line);
    an_parser_enter(g, a->block);
    an_graph_at(g, a->place.file ? a->place.file : AN_TEXT_FILE, a->place.file ? a->place.line : line->op_token.line);
    an_graph_add_outputs(g, line->op, line->input_count, line->inputs, p->attributes, line->output_count);
    an_parser_enter(g, 0);
    if (g->status != AN_OK) return an_parser_mistake(p, &line->op_token);
    AN_TRY_RETURN(an_annotations_apply(p, a, g->last));
    AN_TRY_RETURN(check_types(p, line, g->last));
    for (int i = 0; i < line->output_count; i++) {
        const an_token *t = &line->outputs[i];
        if (t->kind == AN_TOKEN_VALUE)
            AN_TRY_RETURN(an_parser_define(p, &p->values, t, "%", an_node_output_value(g, g->last, i)));
    }
    return AN_OK;
}

an_status an_parse_node(an_parser *p) {
    node_line line = {0};
    if (p->scan.token.kind == AN_TOKEN_VALUE || an_token_is(&p->scan.token, "_"))
        AN_TRY_RETURN(parse_outputs(p, &line));
    AN_TRY_RETURN(parse_op(p, &line));
    AN_TRY_RETURN(parse_operands(p, &line));
    if (an_scan_is(&p->scan, ':')) AN_TRY_RETURN(parse_types(p, &line));
    if (an_scan_is(&p->scan, '{'))
        AN_TRY_RETURN(an_parse_annotations(p, line.op, line.output_count, &line.annotations));
    AN_TRY_RETURN(an_scan_expect_line(&p->scan));
    return add_node(p, &line);
}
