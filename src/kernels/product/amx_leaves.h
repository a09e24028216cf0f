/* Leaves of a product on tiles (kernels/common/leaves.h): where each has its rows and its steps of 32 k, and what is
 * done at its end.
 *
 * The sums of a leaf stay in tiles until it ends and then go to a slot in memory, where vectors add them to the nodes
 * of the tree that are complete with it. Blocks of 32 × 32 sums take k in pieces, one after the other for many blocks;
 * what waits for the next piece lies in large memory, a slot for each block. What is made and used up inside a piece
 * lies in a small stack of slots, which all blocks of a thread use. A run is the part of a leaf that lies in a piece;
 * where its slots lie is found once for all blocks.
 */
#ifndef AN_KERNELS_PRODUCT_AMX_LEAVES_H
#define AN_KERNELS_PRODUCT_AMX_LEAVES_H

#include "kernels/common/leaves.h"
#include "kernels/product/amx.h"

#define an_amx_leaves_make AN_LEVELED(an_amx_leaves_make)
#define an_amx_leaves_cut AN_LEVELED(an_amx_leaves_cut)
#define an_amx_leaves_bytes AN_LEVELED(an_amx_leaves_bytes)
#define an_amx_leaves_most_steps AN_LEVELED(an_amx_leaves_most_steps)
#define an_amx_leaves_slots AN_LEVELED(an_amx_leaves_slots)
#define an_amx_leaf_at AN_LEVELED(an_amx_leaf_at)
#define an_amx_run_at AN_LEVELED(an_amx_run_at)

/* Sums stay in tiles for a piece of k, which is long because it costs some steps to put them aside. */
enum { AN_AMX_PIECE_STEPS = 32, AN_AMX_CHUNK_PIECES = 4 };

/* A leaf that has samples. */
typedef struct an_amx_leaf {
    int64_t begin, rows; /* in k */
    int64_t step, steps;
    int slot, joins; /* as in an_leaf_walk */
} an_amx_leaf;

/* A part of a leaf within a piece. Its sums go to `slot`, and then slots slot - 1 to slot - joins are added below them,
 * into the last of these. */
typedef struct an_amx_leaf_run {
    int64_t step, steps;
    int slot, joins;
    int kept;    /* slots below it wait since an earlier piece and lie in large memory; others are of the small stack */
    bool begins; /* a leaf; else its sums go on from what slot `slot` of large memory holds */
    bool keeps;  /* the result waits for a later piece: it goes to large memory */
} an_amx_leaf_run;

struct an_amx_leaves {
    int64_t count, steps;
    int slots;
    bool dense; /* no leaf is padded, but for the last one */
    an_amx_leaf *parts;
    an_amx_leaf_run *runs; /* room for them */
    size_t bytes;          /* of scratch that they take */
};

/* For a cut, and all with at most as many leaves and samples. */
size_t an_amx_leaves_bytes(const an_leaf_cut *maximum, int64_t depth);
int64_t an_amx_leaves_most_steps(const an_leaf_cut *maximum, int64_t depth);
int an_amx_leaves_slots(const an_leaf_cut *maximum);

/* False: there is no more than one leaf with samples. */
bool an_amx_leaves_make(an_amx_leaves *leaves, const an_leaf_cut *cut, int64_t depth, void *scratch);

/* Finds the runs, where k is cut into chunks, and these into pieces. Returns how many there are. */
int64_t an_amx_leaves_cut(const an_amx_leaves *leaves, int64_t chunk_steps, int64_t piece_steps);

/* The leaf, or the run, that has this step. */
int64_t an_amx_leaf_at(const an_amx_leaves *leaves, int64_t step);
int64_t an_amx_run_at(const an_amx_leaves *leaves, int64_t run_count, int64_t step);

#endif
