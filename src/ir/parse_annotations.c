/* Annotations: what is written in { } after a node of the text form. */
#include <stdlib.h>
#include <string.h>

#include "ir/kernel_name.h"
#include "ir/parser.h"
#include "ir/registry.h"

enum {
    AT,
    BLOCK,
    BYTES,
    COPY,
    DTYPE,
    ELIDED,
    KERNEL,
    OFFSET,
    ORDER,
    ORIGIN,
    PATH,
    PHASE,
    SCRATCH,
    SCRATCH_OFFSET,
    STORAGE,
    ANNOTATIONS
};
_Static_assert((int)ANNOTATIONS <= (int)AN_MAX_ANNOTATIONS, "an_annotations has room for all");

static const char *const annotation_names[] = {
    [AT] = "at",           [BLOCK] = "block",
    [BYTES] = "bytes",     [COPY] = "copy",
    [DTYPE] = "dtype",     [ELIDED] = "elided",
    [KERNEL] = "kernel",   [OFFSET] = "offset",
    [ORDER] = "order",     [ORIGIN] = "origin",
    [PATH] = "path",       [PHASE] = "phase",
    [SCRATCH] = "scratch", [SCRATCH_OFFSET] = "scratch_offset",
    [STORAGE] = "storage", [ANNOTATIONS] = NULL,
};

/* The current token as one of some names, stepped over; *number is its place among them. */
static an_status parse_choice(an_parser *p, const char *what, const char *const *names, int *number) {
    const an_token *t = &p->scan.token;
    an_nearest nearest;
    if (t->kind != AN_TOKEN_NAME) return an_scan_unexpected(&p->scan, what);
    for (int i = 0; names[i]; i++) {
        if (!an_token_is(t, names[i])) continue;
        *number = i;
        return an_scan_next(&p->scan);
    }
    an_nearest_init(&nearest, t->start, t->length);
    for (int i = 0; names[i]; i++) an_nearest_consider(&nearest, names[i], strlen(names[i]));
    return an_scan_error(&p->scan, t, "'%.*s' is not %s%s", (int)t->length, t->start, what, AN_NEAREST(&nearest));
}

static an_status parse_at_least(an_parser *p, int64_t minimum, int64_t *number) {
    const an_token at = p->scan.token;
    AN_TRY_RETURN(an_scan_int(&p->scan, number));
    if (*number >= minimum) return AN_OK;
    return an_scan_error(&p->scan, &at, "expected at least %d, not %lld", (int)minimum, (long long)*number);
}

static an_status parse_kernel(an_parser *p, const an_op *op, const an_kernel **kernel) {
    an_context *ctx = p->scan.ctx;
    const an_token at = p->scan.token;
    const char *name = NULL;
    an_nearest nearest;
    an_choices choices = an_op_choices(ctx, op), again = choices;
    AN_TRY_RETURN(an_scan_string(&p->scan, &p->graph->arena, &name));
    for (const an_kernel *k; (k = an_choices_next(&choices, NULL));) {
        if (!an_kernel_has_name(k->name, name, strlen(name))) continue;
        *kernel = k;
        return AN_OK;
    }
    an_nearest_init(&nearest, name, strlen(name));
    for (const an_kernel *k; (k = an_choices_next(&again, NULL));)
        an_nearest_consider(&nearest, k->name, strlen(k->name));
    return an_scan_error(&p->scan, &at, "%s has no kernel '%.40s' in this build%s", op->name, name,
                         AN_NEAREST(&nearest));
}

/* "file.c:12" */
static an_status parse_place(an_parser *p, an_place *place) {
    const an_token at = p->scan.token;
    const char *text = NULL;
    AN_TRY_RETURN(an_scan_string(&p->scan, &p->graph->arena, &text));
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    long line = colon && colon[1] >= '0' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : -1;
    if (line < 0 || line > INT32_MAX || *end || colon == text)
        return an_scan_error(&p->scan, &at, "expected a place such as \"model.c:12\"");
    AN_TRY_RETURN(an_arena_string(&p->graph->arena, &place->file, text, (size_t)(colon - text)));
    place->line = (int)line;
    return AN_OK;
}

static an_status parse_origin(an_parser *p, const an_node **origin) {
    an_value value = 0;
    AN_TRY_RETURN(an_parse_value(p, &value));
    *origin = an_graph_result(p->graph, value)->node;
    return AN_OK;
}

static an_status parse_block(an_parser *p, int *block) {
    const an_token at = p->scan.token;
    int64_t number = 0;
    AN_TRY_RETURN(parse_at_least(p, 0, &number));
    if ((uint64_t)number >= p->graph->block_count)
        return an_scan_error(&p->scan, &at, "block %lld is not declared above this line", (long long)number);
    *block = (int)number;
    return AN_OK;
}

/* What one output has. */
static an_status parse_of_output(an_parser *p, int annotation, an_annotations *a, int output) {
    int number = 0;
    switch (annotation) {
    case BYTES: return parse_at_least(p, 0, &a->bytes[output]);
    case DTYPE: return an_parse_dtype(p, &a->dtypes[output]);
    case OFFSET: return parse_at_least(p, -1, &a->places[output]);
    case ORDER: return an_parse_ints(p, &a->orders[output]);
    default: break;
    }
    AN_TRY_RETURN(parse_choice(p, "a storage", an_storage_names, &number));
    a->storages[output] = (an_storage)number;
    return AN_OK;
}

/* One value for a node with one output, a list in [ ] for any other. */
static an_status parse_of_outputs(an_parser *p, int annotation, an_annotations *a, int outputs) {
    if (outputs == 1) return parse_of_output(p, annotation, a, 0);
    AN_TRY_RETURN(an_scan_expect(&p->scan, '[', "and a value for each output"));
    for (int i = 0; i < outputs; i++) {
        if (i > 0) AN_TRY_RETURN(an_scan_expect(&p->scan, ',', "and a value for each output"));
        AN_TRY_RETURN(parse_of_output(p, annotation, a, i));
    }
    return an_scan_expect(&p->scan, ']', "after a value for each output");
}

static an_status parse_annotation(an_parser *p, int annotation, const an_op *op, int outputs, an_annotations *a) {
    int number = 0;
    switch (annotation) {
    case AT: return parse_place(p, &a->place);
    case BLOCK: return parse_block(p, &a->block);
    case COPY: return an_scan_bool(&p->scan, &a->is_copy);
    case ELIDED: return an_scan_bool(&p->scan, &a->elided);
    case KERNEL: return parse_kernel(p, op, &a->kernel);
    case ORIGIN: return parse_origin(p, &a->origin);
    case SCRATCH: return parse_at_least(p, 0, &a->scratch_bytes);
    case SCRATCH_OFFSET: return parse_at_least(p, -1, &a->scratch_place);
    case PATH: return an_scan_string(&p->scan, &p->graph->arena, &a->path);
    case PHASE:
        AN_TRY_RETURN(parse_choice(p, "a phase", an_phase_names, &number));
        a->phase = (an_phase)number;
        return AN_OK;
    default: return parse_of_outputs(p, annotation, a, outputs);
    }
}

an_status an_parse_annotations(an_parser *p, const an_op *op, int outputs, an_annotations *a) {
    AN_TRY_RETURN(an_scan_expect(&p->scan, '{', "before annotations"));
    while (!an_scan_is(&p->scan, '}')) {
        const an_token name = p->scan.token;
        int annotation = 0;
        AN_TRY_RETURN(parse_choice(p, "an annotation", annotation_names, &annotation));
        if (a->given >> annotation & 1)
            return an_scan_error(&p->scan, &name, "'%s' is given twice", annotation_names[annotation]);
        if (annotation != BLOCK && annotation != PATH && !p->dump) return an_parser_only_dump(p, &name);
        a->given |= 1u << annotation;
        AN_TRY_RETURN(an_scan_expect(&p->scan, '=', "after the annotation's name"));
        a->at[annotation] = p->scan.token;
        AN_TRY_RETURN(parse_annotation(p, annotation, op, outputs, a));
        if (!an_scan_is(&p->scan, ',')) break;
        AN_TRY_RETURN(an_scan_next(&p->scan));
    }
    AN_TRY_RETURN(an_scan_expect(&p->scan, '}', "after the annotations"));
    const char *path = p->graph->blocks[a->block].path; /* follows from the block, so it is only compared */
    if (a->path && strcmp(a->path, path) != 0)
        return an_scan_error(&p->scan, &a->at[PATH], "the path of block %d is \"%s\", not \"%.80s\"", a->block, path,
                             a->path);
    return AN_OK;
}

static an_status check_order(an_parser *p, const an_annotations *a, const an_result *r) {
    const an_int_list *order = &a->orders[r->output];
    bool same = order->count == r->ndims;
    for (int i = 0; same && i < r->ndims; i++) same = order->values[i] == r->order[i];
    if (same) return AN_OK;
    return an_scan_error(&p->scan, &a->at[ORDER], "the physical order of output %d does not match %s", r->output,
                         r->node->op->name);
}

an_status an_annotations_apply(an_parser *p, const an_annotations *a, an_node *node) {
    uint32_t given = a->given;
    node->phase = a->phase;
    node->origin = a->origin;
    node->is_copy = a->is_copy;
    node->kernel = a->kernel;
    node->elided = a->elided;
    node->scratch_bytes = a->scratch_bytes;
    node->scratch_place = a->scratch_place;
    for (int i = 0; i < node->output_count; i++) {
        an_result *r = &node->outputs[i];
        if (given >> DTYPE & 1) r->dtype = a->dtypes[i];
        if (given >> STORAGE & 1) r->storage = a->storages[i];
        if (given >> OFFSET & 1) r->place = a->places[i];
        if (given >> BYTES & 1) r->bytes = a->bytes[i];
        if (given >> ORDER & 1) AN_TRY_RETURN(check_order(p, a, r));
    }
    return AN_OK;
}
