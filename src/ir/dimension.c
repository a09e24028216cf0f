#include "ir/dimension.h"

#include <string.h>

/* Nobody writes shapes near these; they bound what hostile text can make. A polynomial on its way is words on the
 * stack: coefficient, number of atoms, atoms. */
enum {
    MOST_TERMS = 16,
    MOST_ATOMS = 12,
    MOST_WORDS = MOST_TERMS * (2 + MOST_ATOMS),
    MOST_SYMBOLS = 4096,
    MOST_WEIGHT = 64 /* windows that shrink a dimension: one of 2^63 elements has shrunk to 1 by then */
};

typedef struct {
    int64_t coefficient;
    int count;
    int64_t atoms[MOST_ATOMS]; /* sorted */
} term;

typedef struct {
    int count;
    term terms[MOST_TERMS]; /* sorted by compare_terms, coefficients not 0 */
} polynomial;

static an_status too_complex(an_context *ctx) {
    return AN_ERROR(ctx, AN_ERR_OVERFLOW,
                    "a dimension has more than %d terms, or more than %d factors in a term: use a symbol for it",
                    MOST_TERMS, MOST_ATOMS);
}

static an_status too_large(an_context *ctx) {
    return AN_ERROR(ctx, AN_ERR_OVERFLOW, "a dimension does not fit in 64 bits: check the sizes that are multiplied");
}

static int compare_expressions(const an_dimensions *d, an_dim a, an_dim b);

/* Atoms are ordered by what they are and not by when they were made: symbols by number, then windows by what they look
 * at. So a graph that is printed and read back has the same expressions, term by term. */
static int compare_atoms(const an_dimensions *d, int64_t a, int64_t b) {
    const an_atom *x = &d->atoms[a], *y = &d->atoms[b];
    if (a == b) return 0;
    if (x->symbol != y->symbol)
        return (unsigned)x->symbol < (unsigned)y->symbol ? -1 : 1; /* -1, a window, comes last */
    if (x->source != y->source) return compare_expressions(d, x->source, y->source);
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->stride < y->stride ? -1 : 1;
}

/* Two different sources of windows. Goes into one pair of atoms at most, so it costs no more than the weights. */
static int compare_expressions(const an_dimensions *d, an_dim a, an_dim b) {
    const an_expression *x = &d->expressions[-(a + 1)], *y = &d->expressions[-(b + 1)];
    int at = 0;
    while (at < x->count && at < y->count) {
        const int64_t *u = x->words + at, *v = y->words + at, count = u[1];
        if (count != v[1]) return count > v[1] ? -1 : 1;
        for (int i = 2; i < 2 + count; i++)
            if (u[i] != v[i]) return compare_atoms(d, u[i], v[i]);
        if (u[0] != v[0]) return u[0] < v[0] ? -1 : 1;
        at += 2 + (int)count;
    }
    return x->count < y->count ? -1 : 1;
}

static int compare_terms(const an_dimensions *d, const term *a, const term *b) {
    if (a->count != b->count) return a->count > b->count ? -1 : 1; /* most factors first, the constant last */
    for (int i = 0; i < a->count; i++)
        if (a->atoms[i] != b->atoms[i]) return compare_atoms(d, a->atoms[i], b->atoms[i]);
    return 0;
}

static void polynomial_of(const an_dimensions *d, an_dim dim, polynomial *p) {
    p->count = 0;
    if (dim >= 0) {
        if (dim > 0) p->terms[p->count++] = (term){.coefficient = dim};
        return;
    }
    const an_expression *e = &d->expressions[-(dim + 1)];
    for (int at = 0; at < e->count;) {
        term *t = &p->terms[p->count++];
        t->coefficient = e->words[at];
        t->count = (int)e->words[at + 1];
        for (int i = 0; i < t->count; i++) t->atoms[i] = e->words[at + 2 + i];
        at += 2 + t->count;
    }
}

/* p += t, keeping the order. */
static an_status polynomial_add(const an_dimensions *d, an_context *ctx, polynomial *p, const term *t) {
    int at = 0;
    while (at < p->count && compare_terms(d, &p->terms[at], t) < 0) at++;
    if (at < p->count && compare_terms(d, &p->terms[at], t) == 0) {
        if (!an_add_i64(p->terms[at].coefficient, t->coefficient, &p->terms[at].coefficient)) return too_large(ctx);
        if (p->terms[at].coefficient == 0) {
            memmove(&p->terms[at], &p->terms[at + 1], (size_t)(p->count - at - 1) * sizeof *t);
            p->count--;
        }
        return AN_OK;
    }
    if (t->coefficient == 0) return AN_OK;
    if (p->count == MOST_TERMS) return too_complex(ctx);
    memmove(&p->terms[at + 1], &p->terms[at], (size_t)(p->count - at) * sizeof *t);
    p->terms[at] = *t;
    p->count++;
    return AN_OK;
}

static an_status slots_grow(an_dimensions *d, an_context *ctx) {
    enum { FIRST = 64 };
    size_t count = d->slot_count ? d->slot_count * 2 : FIRST;
    void *slots = NULL;
    AN_TRY_RETURN(an_alloc(ctx, &slots, count, sizeof *d->slots));
    an_release(ctx, (void **)&d->slots, d->slot_count, sizeof *d->slots);
    d->slots = slots;
    d->slot_count = count;
    memset(d->slots, 0xff, count * sizeof *d->slots);
    for (size_t i = 0; i < d->expression_count; i++) {
        size_t at = d->expressions[i].hash & (count - 1);
        while (d->slots[at] >= 0) at = (at + 1) & (count - 1);
        d->slots[at] = (int32_t)i;
    }
    return AN_OK;
}

/* The handle of a polynomial, which is made if it is new. */
static an_status intern(an_dimensions *d, an_arena *arena, const polynomial *p, an_dim *dim) {
    an_context *ctx = arena->ctx;
    int64_t words[MOST_WORDS];
    int count = 0;
    if (p->count == 0 || (p->count == 1 && p->terms[0].count == 0)) {
        *dim = p->count ? p->terms[0].coefficient : 0;
        if (*dim < 0) return AN_ERROR(ctx, AN_ERR_SHAPE, "a dimension is negative: %lld", (long long)*dim);
        return AN_OK;
    }
    for (int i = 0; i < p->count; i++) {
        if (p->terms[i].coefficient == INT64_MIN) return too_large(ctx); /* its magnitude could not be read back */
        words[count++] = p->terms[i].coefficient;
        words[count++] = p->terms[i].count;
        for (int a = 0; a < p->terms[i].count; a++) words[count++] = p->terms[i].atoms[a];
    }
    uint64_t hash = an_hash(words, (size_t)count * sizeof *words, 0);
    if (2 * (d->expression_count + 1) > d->slot_count) AN_TRY_RETURN(slots_grow(d, ctx));
    size_t at = hash & (d->slot_count - 1);
    for (; d->slots[at] >= 0; at = (at + 1) & (d->slot_count - 1)) {
        const an_expression *e = &d->expressions[d->slots[at]];
        if (e->hash == hash && e->count == count && !memcmp(e->words, words, (size_t)count * sizeof *words)) {
            *dim = -(an_dim)d->slots[at] - 1;
            return AN_OK;
        }
    }
    void *copy = NULL;
    AN_TRY_RETURN(an_grow(ctx, (void **)&d->expressions, &d->expression_capacity, d->expression_count + 1,
                          sizeof *d->expressions));
    AN_TRY_RETURN(an_arena_alloc(arena, &copy, (size_t)count, sizeof *words));
    memcpy(copy, words, (size_t)count * sizeof *words);
    d->expressions[d->expression_count] = (an_expression){copy, count, hash};
    d->slots[at] = (int32_t)d->expression_count;
    *dim = -(an_dim)d->expression_count - 1;
    d->expression_count++;
    return AN_OK;
}

static an_status intern_atom(an_dimensions *d, an_arena *arena, const an_atom *atom, an_dim *dim) {
    an_context *ctx = arena->ctx;
    polynomial p = {.count = 1, .terms = {{.coefficient = 1, .count = 1}}};
    size_t i = 0;
    while (i < d->atom_count && (d->atoms[i].symbol != atom->symbol || d->atoms[i].source != atom->source ||
                                 d->atoms[i].size != atom->size || d->atoms[i].stride != atom->stride))
        i++; /* a graph has a handful of symbols and windows */
    if (i == d->atom_count) {
        if (i == MOST_SYMBOLS)
            return AN_ERROR(ctx, AN_ERR_OVERFLOW, "a graph may have at most %d symbols and windows", MOST_SYMBOLS);
        AN_TRY_RETURN(an_grow(ctx, (void **)&d->atoms, &d->atom_capacity, i + 1, sizeof *d->atoms));
        d->atoms[d->atom_count++] = *atom;
    }
    p.terms[0].atoms[0] = (int64_t)i;
    return intern(d, arena, &p, dim);
}

an_status an_dimensions_symbol(an_dimensions *d, an_arena *arena, const char *name, size_t length, an_dim *dim) {
    an_context *ctx = arena->ctx;
    size_t i = 0;
    while (i < d->symbol_count && (strlen(d->symbols[i].name) != length || memcmp(d->symbols[i].name, name, length)))
        i++;
    if (i == d->symbol_count) {
        if (i == MOST_SYMBOLS)
            return AN_ERROR(ctx, AN_ERR_OVERFLOW, "a graph may have at most %d symbols", MOST_SYMBOLS);
        AN_TRY_RETURN(an_grow(ctx, (void **)&d->symbols, &d->symbol_capacity, i + 1, sizeof *d->symbols));
        d->symbols[i] = (an_symbol){0};
        AN_TRY_RETURN(an_arena_string(arena, &d->symbols[i].name, name, length));
        d->symbol_count++;
    }
    return intern_atom(d, arena, &(an_atom){.symbol = (int)i, .weight = 1}, dim);
}

an_status an_dimensions_add(an_dimensions *d, an_arena *arena, an_dim a, an_dim b, an_dim *sum) {
    an_context *ctx = arena->ctx;
    polynomial p, q;
    if (a >= 0 && b >= 0) return an_add_i64(a, b, sum) ? AN_OK : too_large(ctx);
    polynomial_of(d, a, &p);
    polynomial_of(d, b, &q);
    for (int i = 0; i < q.count; i++) AN_TRY_RETURN(polynomial_add(d, ctx, &p, &q.terms[i]));
    return intern(d, arena, &p, sum);
}

an_status an_dimensions_subtract(an_dimensions *d, an_arena *arena, an_dim a, an_dim b, an_dim *difference) {
    an_context *ctx = arena->ctx;
    polynomial p, q;
    polynomial_of(d, a, &p);
    polynomial_of(d, b, &q);
    for (int i = 0; i < q.count; i++) {
        if (!an_multiply_i64(q.terms[i].coefficient, -1, &q.terms[i].coefficient)) return too_large(ctx);
        AN_TRY_RETURN(polynomial_add(d, ctx, &p, &q.terms[i]));
    }
    return intern(d, arena, &p, difference);
}

an_status an_dimensions_multiply(an_dimensions *d, an_arena *arena, an_dim a, an_dim b, an_dim *product) {
    an_context *ctx = arena->ctx;
    polynomial p, q, r = {0};
    if (a >= 0 && b >= 0) return an_multiply_i64(a, b, product) ? AN_OK : too_large(ctx);
    if (a == 1 || b == 1) {
        *product = a == 1 ? b : a;
        return AN_OK;
    }
    polynomial_of(d, a, &p);
    polynomial_of(d, b, &q);
    for (int i = 0; i < p.count; i++) {
        for (int k = 0; k < q.count; k++) {
            const term *x = &p.terms[i], *y = &q.terms[k];
            term t = {0};
            int u = 0, v = 0;
            if (x->count + y->count > MOST_ATOMS) return too_complex(ctx);
            if (!an_multiply_i64(x->coefficient, y->coefficient, &t.coefficient)) return too_large(ctx);
            while (u < x->count || v < y->count)
                t.atoms[t.count++] = v == y->count || (u < x->count && compare_atoms(d, x->atoms[u], y->atoms[v]) <= 0)
                                         ? x->atoms[u++]
                                         : y->atoms[v++];
            AN_TRY_RETURN(polynomial_add(d, ctx, &r, &t));
        }
    }
    return intern(d, arena, &r, product);
}

/* x ÷ y, exact or not at all. */
static bool term_divide(const term *x, const term *y, term *quotient) {
    int u = 0, v = 0;
    *quotient = (term){0};
    if (x->coefficient % y->coefficient) return false;
    quotient->coefficient = x->coefficient / y->coefficient;
    for (; u < x->count; u++) {
        if (v < y->count && x->atoms[u] == y->atoms[v])
            v++;
        else
            quotient->atoms[quotient->count++] = x->atoms[u];
    }
    return v == y->count;
}

an_status an_dimensions_divide(an_dimensions *d, an_arena *arena, an_dim a, an_dim b, an_dim *quotient) {
    an_context *ctx = arena->ctx;
    polynomial p, q, r = {0};
    *quotient = 0;
    if (b == 0 || a == 0) return AN_OK;
    if (a == b) {
        *quotient = 1;
        return AN_OK;
    }
    polynomial_of(d, a, &p);
    polynomial_of(d, b, &q);
    if (q.count != 1) return AN_OK;
    for (int i = 0; i < p.count; i++) {
        term t;
        if (!term_divide(&p.terms[i], &q.terms[0], &t)) return AN_OK;
        AN_TRY_RETURN(polynomial_add(d, ctx, &r, &t));
    }
    return intern(d, arena, &r, quotient);
}

an_status an_dimensions_window(an_dimensions *d, an_arena *arena, an_dim a, int64_t size, int64_t stride, an_dim *dim) {
    an_context *ctx = arena->ctx;
    if (size < 1 || stride < 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "a window has size %lld and stride %lld; both must be at least 1",
                        (long long)size, (long long)stride);
    if (a >= 0) {
        if (a < size)
            return AN_ERROR(ctx, AN_ERR_SHAPE, "a window of %lld does not fit into %lld elements", (long long)size,
                            (long long)a);
        *dim = (a - size) / stride + 1;
        return AN_OK;
    }
    if (stride == 1) {
        an_dim shifted = 0;
        AN_TRY_RETURN(an_dimensions_add(d, arena, a, 1, &shifted));
        return an_dimensions_subtract(d, arena, shifted, size, dim);
    }
    /* A window of products of windows would double with each layer: bounded here, so nothing else has to care. */
    polynomial p;
    int weight = 1;
    polynomial_of(d, a, &p);
    for (int i = 0; i < p.count; i++)
        for (int k = 0; k < p.terms[i].count; k++) weight += d->atoms[p.terms[i].atoms[k]].weight;
    if (weight > MOST_WEIGHT)
        return AN_ERROR(ctx, AN_ERR_OVERFLOW,
                        "windows of symbolic dimensions are nested too deeply: make the size a constant");
    return intern_atom(d, arena, &(an_atom){-1, a, size, stride, weight}, dim);
}

/* At the bound values; or, with `maximum`, an upper bound: terms that subtract count as nothing. */
static bool evaluate(const an_dimensions *d, an_dim dim, bool maximum, int64_t *value) {
    if (dim >= 0) {
        *value = dim;
        return true;
    }
    const an_expression *e = &d->expressions[-(dim + 1)];
    int64_t sum = 0;
    for (int at = 0; at < e->count; at += 2 + (int)e->words[at + 1]) {
        int64_t product = e->words[at];
        bool constant = e->words[at + 1] == 0;
        if (maximum && product < 0 && !constant) continue;
        for (int i = 0; i < (int)e->words[at + 1]; i++) {
            const an_atom *atom = &d->atoms[e->words[at + 2 + i]];
            int64_t factor;
            if (atom->symbol >= 0) {
                factor = maximum ? d->symbols[atom->symbol].maximum : d->symbols[atom->symbol].value;
            } else { /* recursion is bounded by the atom's weight */
                if (!evaluate(d, atom->source, maximum, &factor)) return false;
                factor = factor < atom->size ? 0 : (factor - atom->size) / atom->stride + 1;
            }
            if (!an_multiply_i64(product, factor, &product)) return false;
        }
        if (!an_add_i64(sum, product, &sum)) return false;
    }
    *value = sum;
    return true;
}

bool an_dimensions_value(const an_dimensions *d, an_dim dim, int64_t *value) {
    return evaluate(d, dim, false, value);
}

bool an_dimensions_maximum(const an_dimensions *d, an_dim dim, int64_t *value) {
    return evaluate(d, dim, true, value);
}

static bool uses_symbol(const an_dimensions *d, an_dim dim, int symbol) {
    if (dim >= 0) return false;
    const an_expression *e = &d->expressions[-(dim + 1)];
    for (int at = 0; at < e->count; at += 2 + (int)e->words[at + 1]) {
        for (int i = 0; i < (int)e->words[at + 1]; i++) {
            const an_atom *atom = &d->atoms[e->words[at + 2 + i]];
            if (atom->symbol >= 0 ? atom->symbol == symbol : uses_symbol(d, atom->source, symbol)) return true;
        }
    }
    return false;
}

bool an_dimensions_share_symbol(const an_dimensions *d, an_dim a, an_dim b) {
    for (size_t s = 0; s < d->symbol_count; s++)
        if (uses_symbol(d, a, (int)s) && uses_symbol(d, b, (int)s)) return true;
    return false;
}

void an_dimensions_print(const an_dimensions *d, an_dim dim, an_text *text) {
    if (dim >= 0) {
        an_text_add(text, "%lld", (long long)dim);
        return;
    }
    const an_expression *e = &d->expressions[-(dim + 1)];
    for (int at = 0; at < e->count; at += 2 + (int)e->words[at + 1]) {
        int64_t coefficient = e->words[at];
        int atoms = (int)e->words[at + 1];
        if (coefficient < 0)
            an_text_add(text, "-");
        else if (at > 0)
            an_text_add(text, "+");
        uint64_t magnitude = coefficient < 0 ? 0 - (uint64_t)coefficient : (uint64_t)coefficient;
        if (magnitude != 1 || atoms == 0) an_text_add(text, "%llu%s", (unsigned long long)magnitude, atoms ? "*" : "");
        for (int i = 0; i < atoms; i++) {
            const an_atom *atom = &d->atoms[e->words[at + 2 + i]];
            if (i > 0) an_text_add(text, "*");
            if (atom->symbol >= 0) {
                an_text_add(text, "%s", d->symbols[atom->symbol].name);
            } else {
                an_text_add(text, "window(");
                an_dimensions_print(d, atom->source, text);
                an_text_add(text, ",%lld,%lld)", (long long)atom->size, (long long)atom->stride);
            }
        }
    }
}

void an_dimensions_destroy(an_dimensions *d, an_context *ctx) {
    an_release(ctx, (void **)&d->symbols, d->symbol_capacity, sizeof *d->symbols);
    an_release(ctx, (void **)&d->atoms, d->atom_capacity, sizeof *d->atoms);
    an_release(ctx, (void **)&d->expressions, d->expression_capacity, sizeof *d->expressions);
    an_release(ctx, (void **)&d->slots, d->slot_count, sizeof *d->slots);
    *d = (an_dimensions){0};
}

an_status an_dimensions_clone(an_dimensions *copy, const an_dimensions *d, an_arena *arena) {
    an_context *ctx = arena->ctx;
    *copy = (an_dimensions){0};
    AN_TRY_RETURN(an_grow(ctx, (void **)&copy->symbols, &copy->symbol_capacity, d->symbol_count, sizeof *d->symbols));
    AN_TRY_RETURN(an_grow(ctx, (void **)&copy->atoms, &copy->atom_capacity, d->atom_count, sizeof *d->atoms));
    AN_TRY_RETURN(an_grow(ctx, (void **)&copy->expressions, &copy->expression_capacity, d->expression_count,
                          sizeof *d->expressions));
    for (size_t i = 0; i < d->symbol_count; i++) {
        copy->symbols[i] = d->symbols[i];
        AN_TRY_RETURN(an_arena_string(arena, &copy->symbols[i].name, d->symbols[i].name, strlen(d->symbols[i].name)));
    }
    copy->symbol_count = d->symbol_count;
    if (d->atom_count) memcpy(copy->atoms, d->atoms, d->atom_count * sizeof *d->atoms);
    copy->atom_count = d->atom_count;
    for (size_t i = 0; i < d->expression_count; i++) {
        void *words = NULL;
        size_t count = (size_t)d->expressions[i].count;
        AN_TRY_RETURN(an_arena_alloc(arena, &words, count, sizeof(int64_t)));
        memcpy(words, d->expressions[i].words, count * sizeof(int64_t));
        copy->expressions[i] = (an_expression){words, (int)count, d->expressions[i].hash};
    }
    copy->expression_count = d->expression_count;
    if (d->slot_count) {
        AN_TRY_RETURN(an_alloc(ctx, (void **)&copy->slots, d->slot_count, sizeof *d->slots));
        copy->slot_count = d->slot_count;
        memcpy(copy->slots, d->slots, d->slot_count * sizeof *d->slots);
    }
    return AN_OK;
}
