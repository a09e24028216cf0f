/* Who sends which pages of which tree node to whom, and in which order they are added: a pure function of borders,
 * radices and pages. No rank is asked.
 *
 * Ranks form groups, nearest first: with radices 2 and 3, ranks 0 1 | 2 3 | 4 5, then all six. In round j, the groups
 * of level j that make up one of level j + 1 exchange. Before it, each group of level j has the maximal tree nodes of
 * all its leaves, and each page of them is held by one of its ranks. A page is held by as many ranks as there are
 * groups; one of them becomes its owner: every other sends it that page of each of its nodes, and the owner adds them
 * in tree order. After the last round each page of the sum lies on one rank. Then the rounds are walked backwards: in
 * each, owners return their pages to the ranks that sent them.
 *
 * Which rank owns a page: the pages of one exchange (a bucket) are cut into cells, runs of pages that are held by the
 * same ranks. A cell is cut in proportion to the sizes of the groups, so every rank ends with 1 / ranks of the pages,
 * and a page leaves a rank only once. If the leaves of every group are one node, n (1 - 1 / ranks) bytes are sent on
 * the way in, for any number of ranks, which is optimal; with awkward numbers of ranks and several rounds it was up to
 * 1.29 n. With one round the whole bucket is one cell, and rank q owns piece q, or where owners keep the sums, the
 * piece of its turn. A group that has fewer ranks than others of its level (the last) has other borders between pages;
 * there cells are what both have in common.
 *
 * One round of radix `ranks` moves the fewest bytes. For thousands of ranks, several rounds have fewer messages: 64 ×
 * 64 for 4,096 ranks sends 126 for each bucket and node instead of 4,095.
 *
 * A rank asks for its own cells only. What it needs is O(radix · nodes) for each round, never O(ranks²). */
#ifndef AN_COMM_SCHEDULE_H
#define AN_COMM_SCHEDULE_H

#include "base/page_range.h"
#include "comm/borders.h"

enum { AN_MOST_ROUNDS = 31, AN_MOST_RADIX = 64 };

typedef struct an_rounds {
    an_borders borders;
    int rounds;
    /* Ranks of a group of each level: 1, then times the radix of each round. The last is not smaller than `ranks`. */
    int sizes[AN_MOST_ROUNDS + 1];
} an_rounds;

/* `radices` NULL: one round of all ranks up to AN_MOST_RADIX, else as few rounds of a power of two up to that as will
 * do. The caller's radices are at least 2 each, and those that are not needed are not used; if their product is too
 * small, the last round has all ranks. */
an_rounds an_rounds_make(const an_borders *borders, const int *radices, int rounds);

/* ---- what one rank does in one round ---- */

/* Pages that the same ranks hold before a round, one of each group. */
typedef struct an_cell {
    an_page_range pages;
    int groups, mine; /* how many hold it, and which of them this rank is in */
    int first, last;  /* the ranks that hold it in the first group and in the last */
    int size, ranks;  /* of every group but the last; of all groups together */
} an_cell;

/* The next cell of this rank at page `from` or behind it; false: there is none. Begin with bucket->begin, go
 * on with cell->pages.end. */
bool an_rounds_cell(const an_rounds *schedule, const an_page_range *bucket, int rank, int round, int64_t from,
                    an_cell *cell);
/* The rank that holds the cell in a group, and the piece that it will own; the piece may be empty. Messages go from
 * every holder to every other one in the order of cells; those of one piece in the order of nodes. */
int an_cell_holder(const an_cell *cell, int group);
an_page_range an_cell_piece(const an_cell *cell, int group);

/* Part `index` of `count` equal parts of a piece. Where each rank keeps its piece of a unit, a unit is too large for
 * one exchange; then each exchange moves a slice of every piece. */
typedef struct an_part {
    int64_t index, count;
    /* which group has the first piece, modulo their number (comm/pieces.h); 0 where there are several rounds */
    int turn;
} an_part;
an_page_range an_cell_slice(const an_cell *cell, int group, const an_part *part);

/* The leaves of the group that `rank` is in before round `level`; level 0 is the rank alone. */
an_leaf_range an_rounds_leaves(const an_rounds *schedule, int rank, int level);
/* The maximal tree nodes of these leaves. */
int an_rounds_nodes(const an_rounds *schedule, int rank, int level);
/* The groups that exchange in a round with that of `rank`, in order: how many they are, and the first rank of each. */
int an_rounds_groups(const an_rounds *schedule, int rank, int round);
int an_rounds_group_rank(const an_rounds *schedule, int rank, int round, int group);

/* The order of additions in a round. Nodes come from left to right, those of the first group first. joins[i]: how many
 * times the last two nodes are added before node i is appended; joins[count]: how many times at the end. Returns the
 * count of nodes. `joins` NULL: counts only. */
int64_t an_rounds_joins(const an_rounds *schedule, int rank, int round, int *joins);

/* ---- bytes ---- */

/* What a rank sends and receives. */
typedef struct an_traffic {
    int64_t gathered_out, gathered_in; /* pages of nodes, on the way to the owners */
    int64_t returned_out, returned_in; /* pages of sums, on the way back */
    int64_t gathers_out, gathers_in;   /* messages, none of them empty */
    int64_t returns_out, returns_in;
} an_traffic;

/* The tree nodes of a round, which are the same for every bucket: those of the rank's group, and those of all groups
 * that exchange with it. */
typedef struct an_round_nodes {
    int64_t mine, all; /* an_rounds_nodes, an_rounds_joins */
} an_round_nodes;

/* The traffic of one rank in one round of one bucket; *kept: the pages that it holds after it. `part`: 1 / 1, or the
 * slice of every piece that is moved. O(rounds²) for each cell of the rank, whatever the number of ranks. */
an_traffic an_rounds_traffic(const an_rounds *schedule, const an_round_nodes *nodes, const an_page_range *bucket,
                             const an_part *part, int rank, int round, int64_t *kept);
void an_traffic_add(an_traffic *traffic, const an_traffic *more);

#endif
