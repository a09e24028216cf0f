/* The binomial tree over ranks 0 … ranks - 1: whose message goes to whom. Rank 0 is its root, and every subtree is a
 * range of neighbouring ranks. */
#ifndef AN_COMM_BINOMIAL_H
#define AN_COMM_BINOMIAL_H

#include <stdint.h>

enum { AN_BINOMIAL_CHILDREN = 31 }; /* of a rank, at most: ranks are an int */

/* Nearest first: rank + 1, + 2, + 4, … as long as these bits of its own number are 0. */
static inline int an_binomial_children(int rank, int ranks, int children[AN_BINOMIAL_CHILDREN]) {
    int count = 0;
    for (int64_t step = 1; rank + step < ranks && !(rank & step); step *= 2) children[count++] = rank + (int)step;
    return count;
}

/* The number without its lowest bit; rank 0 has none. */
static inline int an_binomial_parent(int rank) {
    return rank & (rank - 1);
}

#endif
