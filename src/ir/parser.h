/* What the parts of the parser share: statements (parse.c), nodes (parse_node.c), their annotations
 * (parse_annotations.c), values of attributes and dimensions (parse_values.c). */
#ifndef AN_IR_PARSER_H
#define AN_IR_PARSER_H

#include "ir/names.h"
#include "ir/scan.h"
#include "ir/text_form.h"

typedef struct an_parser {
    an_scanner scan;
    an_graph *graph;
    bool reads_dumps; /* the caller trusts the text */
    bool dump;        /* and it is a dump: it may have what passes noted */
    an_names values, symbols;
    void *attributes; /* of the node that is being read: room for the largest struct of any op */
    size_t attribute_bytes;
} an_parser;

/* Finds what the current token names, steps over it; a mistake says what a value and the nearest name is. */
an_status an_parse_value(an_parser *p, an_value *value);
an_status an_parse_dtype(an_parser *p, an_dtype *dtype);

an_status an_parse_dim(an_parser *p, an_dim *dim);
an_status an_parse_dims(an_parser *p, an_dim_list *dims); /* [batch,64] */
an_status an_parse_ints(an_parser *p, an_int_list *ints); /* [1,1] */

/* The value of an attribute, into the parser's attributes. */
an_status an_parse_attribute(an_parser *p, const an_attribute *attribute);

enum { AN_MAX_ANNOTATIONS = 16 };

/* What stands in { } after a node. */
typedef struct an_annotations {
    uint32_t given;                  /* mask over annotations */
    an_token at[AN_MAX_ANNOTATIONS]; /* where their values stand, for messages */
    int block;
    const char *path; /* NULL: not given */
    an_place place;
    an_phase phase;
    const an_node *origin;
    const an_kernel *kernel;
    bool is_copy, elided;
    int64_t scratch_bytes, scratch_place;
    an_dtype dtypes[AN_MAX_OUTPUTS];
    an_storage storages[AN_MAX_OUTPUTS];
    int64_t places[AN_MAX_OUTPUTS], bytes[AN_MAX_OUTPUTS];
    an_int_list orders[AN_MAX_OUTPUTS];
} an_annotations;

an_status an_parse_annotations(an_parser *p, const an_op *op, int outputs, an_annotations *a);
/* Notes them on the node that was added; the physical order is not noted but compared with what inference gave. */
an_status an_annotations_apply(an_parser *p, const an_annotations *a, an_node *node);

an_status an_parse_node(an_parser *p);

/* Goes into a block: what is added next belongs to it. Statements begin and end in block 0. */
void an_parser_enter(an_graph *g, int block);
/* A mistake: what stands at `t` is noted by passes, and this is a model. */
an_status an_parser_only_dump(const an_parser *p, const an_token *t);
/* Gives a name its meaning, once. */
an_status an_parser_define(an_parser *p, an_names *names, const an_token *t, const char *prefix, uint64_t meaning);
/* The graph's first mistake, with its place in the text in front. */
an_status an_parser_mistake(an_parser *p, const an_token *at);

#endif
