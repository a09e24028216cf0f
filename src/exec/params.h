/* The parameter store: masters, frozen parameters, run states, gradients and moments in flat buffers on one grid.
 *
 * A store in pieces has only some pages of the buffers on the grid (exec/shards.h). Offsets stay those of the grid,
 * and a page that is not there cannot be touched. */
#ifndef AN_EXEC_PARAMS_H
#define AN_EXEC_PARAMS_H

#include "anneal/experimental.h"
#include "anneal/plan.h"
#include "exec/kept.h"
#include "exec/shards.h"
#include "ir/graph.h"

/* The moving average of the weights (params_average.c). */
typedef struct an_average {
    void *flat;    /* NULL: there is none */
    bool begun;    /* before the first update the average is the weights, and `flat` means nothing */
    bool is_shown; /* the masters hold the average, and `flat` the weights */
    const an_kernel *update, *swap;
} an_average;

/* A parameter or a run state: what the store needs of its source node. */
typedef struct an_stored {
    const char *name;
    an_dtype dtype;
    an_storage storage; /* MASTER, FROZEN, STATE */
    int ndims, depth;
    int64_t dims[AN_MAX_DIMS];
    int64_t elements, offset; /* offset in bytes of its buffer */
    an_initializer initializer;
    double scale;
} an_stored;

/* Who has allocated the gradients, if it is not the store: ranks of one host have theirs in memory that they share. */
typedef struct an_lender {
    void (*take_back)(void *user); /* NULL: the store has */
    void *user;
    bool is_busy; /* what has borrowed them still uses them */
} an_lender;

struct an_params {
    an_context *ctx;
    const an_device *device;
    an_stored *entries; /* parameters first, in canonical order, then run states */
    size_t parameter_count, entry_count, entry_capacity;
    char *names;
    size_t name_bytes;
    an_flat_sizes sizes;
    an_page_range grid;      /* all of its pages */
    an_params_pieces pieces; /* without shards: everything is whole */
    void *masters, *frozen, *states, *gradients, *moments[AN_MOST_MOMENTS];
    int moment_count;
    an_average average;
    bool has_gradients;
    an_lender lender; /* of the gradients */
    uint64_t seed;    /* of entries that an_params_defer has left out */
    bool deferred;    /* there are such entries: nothing has their starting values yet */
    uint64_t version; /* rises with every change of the weights */
    void *low;        /* copies of the masters on the same grid; NULL until a program reads them */
    an_dtype low_dtype;
    const an_kernel *low_kernel; /* that makes them: the device's cast */
    uint64_t low_version;        /* the weights that it was made from */
};

static inline int64_t an_params_flat_bytes(const an_flat_sizes *sizes) {
    return sizes->trainable_elements * (int64_t)an_dtype_size(sizes->trainable_dtype);
}

static inline int64_t an_params_gradient_bytes(const an_flat_sizes *sizes) {
    return sizes->gradient_elements * (int64_t)an_dtype_size(sizes->trainable_dtype);
}

static inline int64_t an_params_low_bytes(const an_flat_sizes *sizes, an_dtype low) {
    return sizes->trainable_elements * (int64_t)an_dtype_size(low);
}

/* an_params_create for a rank that has only pieces of some buffers; `pieces` NULL: all are whole. The map must be
 * that of a plan of the same graph. */
an_status an_params_create_in(an_params **params, an_context *ctx, const an_graph *graph,
                              const an_params_options *given, const an_params_pieces *pieces);

/* Makes room for copies of this type. One store has copies of one type. */
an_status an_params_need_low(an_params *p, an_dtype low);
/* Makes room for the extra contributions of a plan (an_parameter.extras). The gradients are then zeros. */
an_status an_params_need_extras(an_params *p, const an_flat_sizes *sizes);
/* Makes the copies anew if the weights have changed since. A whole pass over the masters: O(parameters). If copies are
 * in pieces, only those that this rank owns are made: the others' masters need not be here. */
an_status an_params_refresh(an_params *p);

/* Releases the gradients, or gives them back. The store has none until one of the next two is called. Programs find
 * the new ones before they run. */
void an_params_drop_gradients(an_params *p);
an_status an_params_make_gradients(an_params *p);
void an_params_borrow_gradients(an_params *p, void *gradients, const an_lender *lender);

/* The buffer of a storage class that the store owns. */
void *an_params_base(const an_params *p, an_storage storage);

static inline an_kept an_params_kept(const an_params *p) {
    return (an_kept){.moments = p->moment_count, .average = p->average.flat != NULL};
}
/* The buffer that has a part of an entry; NULL: there is no such part. The average of weights that were
 * never updated is the weights. */
void *an_params_part(const an_params *p, const an_stored *e, an_param_part part);

/* ---- the moving average of the weights (params_average.c) ---- */

/* Where it is. */
static inline void *an_params_average(const an_params *p) {
    return p->average.begun && !p->average.is_shown ? p->average.flat : p->masters;
}

an_status an_params_make_average(an_params *p);
/* After an update of the weights. The first one copies them. Without an average, these calls do nothing. */
an_status an_params_update_average(an_params *p, double decay);
/* Makes the average a copy of the weights, if it has not begun: then it can be set. */
an_status an_params_begin_average(an_params *p);
/* Exchanges the weights and their average, so that programs read the average; and back again, to the bit. If
 * it has not begun, nothing happens. The low copies and what other ranks have gathered are then of other
 * weights, as after an update. */
an_status an_params_show_average(an_params *p, bool shown);

/* What the tables of a store of this graph take, to the byte; in pieces or not. */
int64_t an_params_table_bytes(const an_graph *graph);

/* ---- buffers on the grid, whole or in pieces (params_memory.c) ---- */

/* What a buffer takes on this rank, to the byte: the store allocates as much. `pieces` NULL: it is whole. A pure
 * function. */
int64_t an_params_buffer_bytes(const an_flat_sizes *sizes, const an_params_pieces *pieces, an_flat flat,
                               an_dtype dtype);

/* What is there is zeros. Nothing to allocate gives NULL. */
an_status an_params_allocate(an_params *p, void **memory, int64_t bytes);
an_status an_params_allocate_flat(an_params *p, void **memory, an_flat flat, an_dtype dtype);
void an_params_release_flat(an_params *p, void **memory, an_flat flat, an_dtype dtype);

/* These pages of a flat buffer, as a tensor; `base` NULL: one that has a type and a size only. */
an_tensor an_flat_tensor(void *base, an_dtype dtype, const an_page_range *pages);

/* What this rank updates: its piece of every unit, some of which may be empty; or one piece, all pages. */
int an_params_piece_count(const an_params *p);
an_page_range an_params_piece(const an_params *p, int index);
int64_t an_params_own_pages(const an_params *p);

/* The beginning of `pages` that has low copies here from its first page to its last, or that has none. Ranks in
 * pieces have low copies of what ops read as such, and of nothing else. */
an_page_range an_params_low_part(const an_params *p, const an_page_range *pages, bool *has_low);

/* Whether all elements of an entry are here in a buffer. What is not on the grid always is. */
bool an_params_has(const an_params *p, const an_stored *e, an_flat flat);
/* The next elements that are, *first … *end - 1, at element `from` of the entry or behind it, where `from` is 0 or
 * the last *end; false: there are none. */
bool an_params_next(const an_params *p, const an_stored *e, an_flat flat, int64_t from, int64_t *first, int64_t *end);

/* In place of an_params_reset, for a store whose weights will be loaded: only those of an adapter get their starting
 * values. */
an_status an_params_defer(an_params *params, uint64_t seed);
/* Gives an entry the starting values that an_params_defer has left out; nothing if there are none. */
an_status an_params_start(an_params *params, size_t entry);

/* Gives the magnitudes of DoRA their starting values, which follow from the weights: after those are
 * there (params_magnitudes.c). */
an_status an_params_start_magnitudes(an_params *params);

/* Pages of a flat buffer of the trainable type, from their owners, in `to` of every rank of a store in pieces.
 * Collective. */
an_status an_params_spread(const an_params *p, const void *base, const an_page_range *pages, void *to);

#endif
