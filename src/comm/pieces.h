/* Which pages of a unit belong to which rank, where the parameters, gradients or moments are divided. */
#ifndef AN_COMM_PIECES_H
#define AN_COMM_PIECES_H

#include "base/page_range.h"

/* Piece q of P of a unit of N pages: ⌊q·N/P⌋ … ⌊(q+1)·N/P⌋ - 1 of it. It is empty on some ranks if there are fewer pages than ranks. */
static inline an_page_range an_piece(const an_page_range *unit, int rank, int ranks) {
    /* q·N may not fit in 64 bits: N is taken as a multiple of P and a rest. */
    const int64_t pages = unit->end - unit->begin, each = pages / ranks, rest = pages % ranks, q = rank;
    return (an_page_range){.begin = unit->begin + q * each + q * rest / ranks,
                           .end = unit->begin + (q + 1) * each + (q + 1) * rest / ranks};
}

/* The rank whose piece has a page of the unit: the last q with ⌊q·N/P⌋ ≤ page, which is q·N < (page + 1)·P. */
static inline int an_piece_owner(const an_page_range *unit, int64_t page, int ranks) {
    return (int)(((__int128)(page - unit->begin + 1) * ranks - 1) / (unit->end - unit->begin));
}

#endif
