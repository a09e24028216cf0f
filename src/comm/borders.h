/* Which leaves each rank of a step owns: a function of the numbers of leaves and ranks alone, so every rank knows every
 * other's without asking, and nothing is stored that grows with ranks.
 *
 * Two kinds. With subtree borders, the leaves of each rank are one node of the tree, and a rank sends its gradients
 * once. With even borders, no rank has more than one leaf more than another, and a rank may have to send several
 * nodes. Of 8 leaves on 3 ranks: 4, 2, 2 and 2, 3, 3. */
#ifndef AN_COMM_BORDERS_H
#define AN_COMM_BORDERS_H

#include "comm/forest.h"

typedef enum an_border_kind { AN_BORDERS_SUBTREE, AN_BORDERS_EVEN, AN_BORDER_KINDS } an_border_kind;

typedef struct an_borders {
    an_border_kind kind;
    int ranks; /* 1 to leaves */
    int64_t leaves;
} an_borders;

/* The leaves of one rank. O(log(leaves)). */
an_leaf_range an_borders_range(const an_borders *borders, int rank);

/* What a kind of borders costs in a step. The gradients have n bytes; traffic is counted in n / ranks,
 * so it is a whole number. */
typedef struct an_border_cost {
    int64_t most_leaves;  /* of one rank: the others wait for it */
    int64_t most_nodes;   /* of one rank: gradient buffers that it must keep until they are sent */
    int64_t most_traffic; /* sent and received by the busiest rank, in n / ranks, with one round */
    int64_t cost;
} an_border_cost;

/* The time of a step, as far as borders change it: most_leaves · AN_LEAF_COST + most_traffic / ranks, both in times
 * that n bytes take to go over the link once. `cost` is that times `ranks`.
 * A leaf costs four of them: GPT-2 124M with 512 tokens a leaf computes for 1.7 s a leaf and sends n in 0.4 s at 10
 * Gbit/s. Slower links than that and smaller leaves would favour subtrees more; a constant keeps the choice the same
 * on every machine. O(ranks) in time, once. */
enum { AN_LEAF_COST = 4 };
an_border_cost an_borders_cost(const an_borders *borders);

/* What both kinds cost, and the one of the smaller cost; subtrees if both cost the same. O(ranks): who counts many
 * ranks asks once. */
typedef struct an_border_survey {
    an_border_cost costs[AN_BORDER_KINDS];
    an_borders chosen;
} an_border_survey;
an_border_survey an_borders_survey(int64_t leaves, int ranks);

/* The chosen ones. O(1) if every rank has the same power of two of leaves, else O(ranks). */
an_borders an_borders_choose(int64_t leaves, int ranks);

#endif
