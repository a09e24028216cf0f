/* Dimensions: constants, named symbols, and interned expressions of them.
 *
 * An an_dim ≥ 0 is a constant; a negative one is the handle of an expression in its graph's table. Expressions are
 * kept in one normal form (a sum of products of atoms, sorted), so that equal expressions have equal handles and
 * strides can be compared symbolically. An atom is a symbol or a window ⌊(a−k)/s⌋+1 that did not fold.
 */
#ifndef AN_IR_DIMENSION_H
#define AN_IR_DIMENSION_H

#include "anneal/graph.h"
#include "base/memory.h"
#include "base/text/text.h"

typedef struct an_symbol {
    const char *name;
    int64_t maximum; /* 0 until a plan fixes it */
    int64_t value;   /* ≤ maximum, bound before a run */
} an_symbol;

typedef struct an_atom {
    int symbol;           /* ≥ 0, or -1 for a window */
    an_dim source;        /* window: a */
    int64_t size, stride; /* window: k, s */
    int weight;           /* atoms it is made of, itself included: bounds recursion and printed length */
} an_atom;

typedef struct an_expression {
    const int64_t *words; /* for each term: coefficient, number of atoms, the atoms in order */
    int count;            /* of words */
    uint64_t hash;
} an_expression;

typedef struct an_dimensions {
    an_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    an_atom *atoms;
    size_t atom_count, atom_capacity;
    an_expression *expressions;
    size_t expression_count, expression_capacity;
    int32_t *slots; /* open addressing over expressions; -1 is empty */
    size_t slot_count;
} an_dimensions;

void an_dimensions_destroy(an_dimensions *d, an_context *ctx);
an_status an_dimensions_clone(an_dimensions *copy, const an_dimensions *d, an_arena *arena);

/* The symbol of this name, made if it is new. */
an_status an_dimensions_symbol(an_dimensions *d, an_arena *arena, const char *name, size_t length, an_dim *dim);

/* Arithmetic in normal form. Errors: a constant overflows, or the expression grows past what anybody writes. */
an_status an_dimensions_add(an_dimensions *d, an_arena *arena, an_dim a, an_dim b, an_dim *sum);
an_status an_dimensions_subtract(an_dimensions *d, an_arena *arena, an_dim a, an_dim b, an_dim *difference);
an_status an_dimensions_multiply(an_dimensions *d, an_arena *arena, an_dim a, an_dim b, an_dim *product);
an_status an_dimensions_window(an_dimensions *d, an_arena *arena, an_dim a, int64_t size, int64_t stride, an_dim *dim);

/* a ÷ b where that is exact in the normal form (b a constant or a single term); *quotient 0 where it is not. */
an_status an_dimensions_divide(an_dimensions *d, an_arena *arena, an_dim a, an_dim b, an_dim *quotient);

/* The value at the symbols' bound values, or an upper bound of it at their maxima. False on overflow. */
bool an_dimensions_value(const an_dimensions *d, an_dim dim, int64_t *value);
bool an_dimensions_maximum(const an_dimensions *d, an_dim dim, int64_t *value);

/* Whether any symbol that occurs in `a` occurs in `b` too. */
bool an_dimensions_share_symbol(const an_dimensions *d, an_dim a, an_dim b);

/* `2*batch*tokens+1`, `window(height,3,2)`. */
void an_dimensions_print(const an_dimensions *d, an_dim dim, an_text *text);

#endif
