/* The ownership map: which rank owns which pages of the grid, and which pages of each flat buffer a rank has.
 *
 * Units (pass/units.h) are cut into one piece for each rank, so that gathering a unit moves a piece of every rank; with
 * one cut of the whole grid a unit would lie on one rank, and gathering it would be a broadcast. The map is the same
 * for every strategy, so that another strategy moves nothing. It follows from the model, the plan and the numbers of
 * ranks alone: every rank knows every other's pieces. */
#ifndef AN_EXEC_SHARDS_H
#define AN_EXEC_SHARDS_H

#include "anneal/plan.h"
#include "base/system/sparse.h"
#include "comm/comm.h"
#include "comm/pieces.h"
#include "ir/graph.h"

enum { AN_SHARD_COUNT = AN_SHARD_HYBRID + 1 };

/* As ranks.shard says it. */
const char *an_shard_name(an_shard sharding);

/* Whether gradients go to the owners of their pieces: then leaves run in rounds (step/rounds.h). */
static inline bool an_shard_has_rounds(an_shard sharding) {
    return sharding >= AN_SHARD_GRADIENTS;
}

/* The flat buffers on the grid. Every moment is one. */
typedef enum an_flat { AN_FLAT_MASTERS, AN_FLAT_LOW, AN_FLAT_GRADIENTS, AN_FLAT_MOMENTS, AN_FLATS } an_flat;

/* Sets of pages of one rank. "Read" are all pages of a parameter that some op reads in the masters'
 * type, or as its low copy. */
typedef enum an_page_set {
    AN_PAGES_ALL,
    AN_PAGES_OWN,           /* its pieces of all units of the grid */
    AN_PAGES_OWN_GRADIENTS, /* with those of the extra units */
    AN_PAGES_MASTER_READ,
    AN_PAGES_LOW_READ,
    AN_PAGES_OWN_OR_MASTER_READ,
    AN_PAGE_SETS
} an_page_set;

/* Ascending, with at least a page between them. */
typedef struct an_page_runs {
    const an_page_range *runs;
    int count;
} an_page_runs;

/* The first run that ends behind `page`; count: none does. O(log runs). */
int an_page_runs_find(const an_page_runs *runs, int64_t page);
bool an_page_runs_have(const an_page_runs *runs, const an_page_range *pages);

typedef struct an_shard_unit {
    an_page_range pages;
    const char *name; /* of its block; "" where there is none, "h.0 to h.2" of units that were joined */
    int turn;         /* comm/pieces.h */
} an_shard_unit;

typedef struct an_shards {
    an_context *ctx;
    int ranks, rank; /* that divide the grid, and this one among them */
    int groups,
        group;     /* of so many neighbouring ranks: one, or in a hybrid the hosts, all of which have the same pieces */
    int64_t pages; /* of the grid */
    int64_t gradient_pages; /* the same, and behind them extra contributions (pass/units.h) */
    an_shard_unit *units;
    int unit_count;          /* of the grid */
    int gradient_unit_count; /* with the extra ones, which come last */
    an_page_runs sets[AN_PAGE_SETS];
    an_page_range *runs; /* of all sets */
    size_t run_count;
    char *names;
    size_t name_bytes;
} an_shards;

typedef struct an_shards_options {
    int ranks, rank;
    int groups, group; /* 0: one group */
} an_shards_options;

an_status an_shards_create(an_shards **shards, an_context *ctx, const an_plan *plan, const an_shards_options *options);
void an_shards_destroy(an_shards **shards);

/* The communicator of the ranks that divide the grid. */
an_comm *an_shards_comm(const an_shards *shards);

/* What its tables take, to the byte. */
int64_t an_shards_bytes(const an_shards *shards);

static inline an_page_range an_shards_piece(const an_shards *shards, int unit, int rank) {
    return an_piece(&shards->units[unit].pages, shards->units[unit].turn, rank, shards->ranks);
}

/* The unit that a page belongs to. O(log units). */
int an_shards_unit_of(const an_shards *shards, int64_t page);

/* The rank that owns a page, and the page behind its piece. O(log units). */
int an_shards_owner(const an_shards *shards, int64_t page, int64_t *end);

/* In which types the forms of a plan read a parameter, as bits. */
enum { AN_READS_MASTER = 1, AN_READS_LOW = 2 };

/* `reads` has room for every parameter of the plan. A frozen parameter gets 0: it is not on the grid. */
void an_plan_find_reads(const an_plan *plan, uint8_t *reads);

/* ---- a store in pieces ---- */

/* How a parameter store is divided. It points to its map, which must outlive the store. */
typedef struct an_params_pieces {
    const an_shards *shards;
    an_shard sharding;
    bool is_hybrid; /* the run asks for hybrid, which is full if all ranks are on one host */
    /* Where leaves run in rounds: what a rank makes in one. */
    int64_t round_leaves; /* neighbouring ones, a power of two; 0: 1 */
    /* micro-batches that they are, at most, if there are several; 0: one, whose gradients leave the program at once */
    int64_t round_passes;
} an_params_pieces;

/* The sharding in the words of the run's config. */
const char *an_params_pieces_name(const an_params_pieces *pieces);

/* The pages of a buffer that the rank has. AN_PAGES_ALL: it is an allocation of the device as in a store without
 * pieces. */
an_page_set an_params_pieces_set(const an_params_pieces *pieces, an_flat flat);

/* Gives a plan the memory of a rank with these pieces. */
void an_plan_divide(an_plan *plan, const an_params_pieces *pieces);

/* Whether a rank with these pieces has all that the forms of a plan read and write. If not, the
 * message names a parameter. */
an_status an_params_pieces_check(an_context *ctx, const an_params_pieces *pieces, const an_plan *plan);

#endif
