/* Values in the text form: results of nodes, types, dimensions, attributes. */
#include <string.h>

#include "ir/parser.h"

/* Deeper than windows may nest (dimension.c bounds what they weigh by 64), so that all that is printed can be read.
 * Each level takes some 400 bytes of stack. */
enum { MOST_NESTING = 72 };

an_status an_parse_value(an_parser *p, an_value *value) {
    const an_token *t = &p->scan.token;
    if (t->kind != AN_TOKEN_VALUE) return an_scan_unexpected(&p->scan, "a value such as %x");
    const an_name *name = an_names_find(&p->values, t->start, t->length);
    if (!name) {
        an_nearest nearest;
        an_nearest_init(&nearest, t->start, t->length);
        an_names_consider(&p->values, &nearest);
        return an_scan_error(&p->scan, t,
                             "%%%.*s is not defined above this line, and values must be defined before they are used%s",
                             (int)t->length, t->start, AN_NEAREST(&nearest));
    }
    *value = name->meaning;
    return an_scan_next(&p->scan);
}

an_status an_parse_dtype(an_parser *p, an_dtype *dtype) {
    const an_token *t = &p->scan.token;
    if (t->kind != AN_TOKEN_NAME) return an_scan_unexpected(&p->scan, "a type such as f32");
    for (an_dtype d = AN_DTYPE_F32; d <= AN_DTYPE_Q8_0; d++) {
        if (!an_token_is(t, an_dtype_name(d))) continue;
        *dtype = d;
        return an_scan_next(&p->scan);
    }
    return an_scan_error(&p->scan, t,
                         "there is no type '%.*s'; the types are f32, f64, bf16, f16, i32, i64, u8 and q8_0",
                         (int)t->length, t->start);
}

/* ---- dimensions ---- expression = [-] term { (+ | -) term }; term = factor { * factor } */

static an_status parse_expression(an_parser *p, int nesting, an_dim *dim);

static an_status parse_symbol(an_parser *p, an_dim *dim) {
    const an_token *t = &p->scan.token;
    const an_name *name = an_names_find(&p->symbols, t->start, t->length);
    if (!name) {
        an_nearest nearest;
        an_nearest_init(&nearest, t->start, t->length);
        an_names_consider(&p->symbols, &nearest);
        return an_scan_error(&p->scan, t,
                             "there is no symbol '%.*s'; declare it with a line 'symbol %.*s' above this one%s",
                             (int)t->length, t->start, (int)t->length, t->start, AN_NEAREST(&nearest));
    }
    *dim = (an_dim)name->meaning;
    return an_scan_next(&p->scan);
}

/* window(a,k,s), the ( being the current token. */
static an_status parse_window(an_parser *p, const an_token *at, int nesting, an_dim *dim) {
    an_context *ctx = p->scan.ctx;
    an_dim source = 0;
    int64_t size = 0, stride = 0;
    AN_TRY_RETURN(an_scan_expect(&p->scan, '(', "after window"));
    AN_TRY_RETURN(parse_expression(p, nesting + 1, &source));
    AN_TRY_RETURN(an_scan_expect(&p->scan, ',', "in window(dimension, size, stride)"));
    AN_TRY_RETURN(an_scan_int(&p->scan, &size));
    AN_TRY_RETURN(an_scan_expect(&p->scan, ',', "in window(dimension, size, stride)"));
    AN_TRY_RETURN(an_scan_int(&p->scan, &stride));
    AN_TRY_RETURN(an_scan_expect(&p->scan, ')', "after window(dimension, size, stride"));
    an_status status = an_dimensions_window(&p->graph->dimensions, &p->graph->arena, source, size, stride, dim);
    return status == AN_OK ? AN_OK : an_scan_locate(&p->scan, at, status, ctx->error.message);
}

static an_status parse_factor(an_parser *p, int nesting, an_dim *dim) {
    const an_token first = p->scan.token;
    if (nesting > MOST_NESTING)
        return an_scan_error(&p->scan, &first, "a dimension has more than %d nested parentheses", MOST_NESTING);
    if (first.kind == AN_TOKEN_NUMBER) return an_scan_int(&p->scan, dim);
    if (an_scan_is(&p->scan, '(')) {
        AN_TRY_RETURN(an_scan_next(&p->scan));
        AN_TRY_RETURN(parse_expression(p, nesting + 1, dim));
        return an_scan_expect(&p->scan, ')', "in a dimension");
    }
    if (first.kind != AN_TOKEN_NAME) return an_scan_unexpected(&p->scan, "a dimension");
    if (!an_token_is(&first, "window")) return parse_symbol(p, dim);
    /* A symbol may be called window too: only a ( makes it the function. */
    const an_scanner before = p->scan;
    AN_TRY_RETURN(an_scan_next(&p->scan));
    if (an_scan_is(&p->scan, '(')) return parse_window(p, &first, nesting, dim);
    p->scan = before;
    return parse_symbol(p, dim);
}

static an_status parse_term(an_parser *p, int nesting, an_dim *dim) {
    an_context *ctx = p->scan.ctx;
    AN_TRY_RETURN(parse_factor(p, nesting, dim));
    while (an_scan_is(&p->scan, '*')) {
        const an_token at = p->scan.token;
        an_dim factor = 0;
        AN_TRY_RETURN(an_scan_next(&p->scan));
        AN_TRY_RETURN(parse_factor(p, nesting, &factor));
        an_status status = an_dimensions_multiply(&p->graph->dimensions, &p->graph->arena, *dim, factor, dim);
        if (status != AN_OK) return an_scan_locate(&p->scan, &at, status, ctx->error.message);
    }
    return AN_OK;
}

/* What is added and what is taken away are summed apart: a dimension may not be negative on the way (1-2+batch). */
static an_status parse_expression(an_parser *p, int nesting, an_dim *dim) {
    an_context *ctx = p->scan.ctx;
    const an_token first = p->scan.token;
    an_dimensions *d = &p->graph->dimensions;
    an_arena *arena = &p->graph->arena;
    an_dim sums[2] = {0, 0};
    bool minus = an_scan_is(&p->scan, '-');
    if (minus) AN_TRY_RETURN(an_scan_next(&p->scan));
    for (;;) {
        an_dim term = 0;
        AN_TRY_RETURN(parse_term(p, nesting, &term));
        an_status status = an_dimensions_add(d, arena, sums[minus], term, &sums[minus]);
        if (status != AN_OK) return an_scan_locate(&p->scan, &first, status, ctx->error.message);
        minus = an_scan_is(&p->scan, '-');
        if (!minus && !an_scan_is(&p->scan, '+')) break;
        AN_TRY_RETURN(an_scan_next(&p->scan));
    }
    an_status status = an_dimensions_subtract(d, arena, sums[0], sums[1], dim);
    return status == AN_OK ? AN_OK : an_scan_locate(&p->scan, &first, status, ctx->error.message);
}

an_status an_parse_dim(an_parser *p, an_dim *dim) {
    return parse_expression(p, 0, dim);
}

/* ---- lists ---- */

/* Steps over the comma or the ] after an element; `*more` says which it was. */
static an_status after_element(an_parser *p, bool *more) {
    *more = an_scan_is(&p->scan, ',');
    return *more ? an_scan_next(&p->scan) : an_scan_expect(&p->scan, ']', "after the list");
}

/* Steps over the [ and says whether there is a first element. */
static an_status before_elements(an_parser *p, bool *more) {
    AN_TRY_RETURN(an_scan_expect(&p->scan, '[', "before the list"));
    *more = !an_scan_is(&p->scan, ']');
    return *more ? AN_OK : an_scan_next(&p->scan);
}

static an_status too_many(const an_parser *p) {
    return an_scan_error(&p->scan, &p->scan.token, "a list has at most %d elements", AN_MAX_DIMS);
}

an_status an_parse_dims(an_parser *p, an_dim_list *dims) {
    bool more;
    *dims = (an_dim_list){0};
    AN_TRY_RETURN(before_elements(p, &more));
    while (more) {
        if (dims->count == AN_MAX_DIMS) return too_many(p);
        AN_TRY_RETURN(an_parse_dim(p, &dims->values[dims->count++]));
        AN_TRY_RETURN(after_element(p, &more));
    }
    return AN_OK;
}

an_status an_parse_ints(an_parser *p, an_int_list *ints) {
    bool more;
    *ints = (an_int_list){0};
    AN_TRY_RETURN(before_elements(p, &more));
    while (more) {
        if (ints->count == AN_MAX_DIMS) return too_many(p);
        AN_TRY_RETURN(an_scan_int(&p->scan, &ints->values[ints->count++]));
        AN_TRY_RETURN(after_element(p, &more));
    }
    return AN_OK;
}

an_status an_parse_attribute(an_parser *p, const an_attribute *attribute) {
    void *to = (char *)p->attributes + attribute->offset;
    switch (attribute->type) {
    case AN_ATTRIBUTE_INT: return an_scan_int(&p->scan, to);
    case AN_ATTRIBUTE_BOOL: return an_scan_bool(&p->scan, to);
    case AN_ATTRIBUTE_FLOAT: return an_scan_float(&p->scan, to);
    case AN_ATTRIBUTE_STRING: return an_scan_string(&p->scan, &p->graph->arena, to);
    case AN_ATTRIBUTE_DTYPE: return an_parse_dtype(p, to);
    case AN_ATTRIBUTE_DIM: return an_parse_dim(p, to);
    case AN_ATTRIBUTE_DIMS: return an_parse_dims(p, to);
    case AN_ATTRIBUTE_INTS: return an_parse_ints(p, to);
    }
    return an_scan_error(&p->scan, &p->scan.token, "'%s' cannot be set in a text", attribute->name);
}
