/* Which pages of a unit belong to which rank, where the parameters, gradients or moments are divided.
 *
 * Piece q belongs to rank (q + turn) mod P. The turn of a unit is its number: blocks are alike, and if rank q had piece
 * q of each, what is special in one of them (biases and norms, which ops read in f32 beside low copies) would be
 * special on the same ranks in all of them. With turns, every rank has each piece of some block. */
#ifndef AN_COMM_PIECES_H
#define AN_COMM_PIECES_H

#include "base/page_range.h"

/* The piece of a rank. */
static inline int an_piece_number(int turn, int rank, int ranks) {
    const int number = rank - turn % ranks;
    return number < 0 ? number + ranks : number;
}

/* Piece q of P of a unit of N pages: ⌊q·N/P⌋ … ⌊(q+1)·N/P⌋ - 1 of it. It is empty on some ranks if there
 * are fewer pages than ranks. */
static inline an_page_range an_piece(const an_page_range *unit, int turn, int rank, int ranks) {
    /* q·N may not fit in 64 bits: N is taken as a multiple of P and a rest. */
    const int64_t pages = unit->end - unit->begin, each = pages / ranks, rest = pages % ranks;
    const int64_t q = an_piece_number(turn, rank, ranks);
    return (an_page_range){.begin = unit->begin + q * each + q * rest / ranks,
                           .end = unit->begin + (q + 1) * each + (q + 1) * rest / ranks};
}

/* The rank whose piece has a page of the unit: the last q with ⌊q·N/P⌋ ≤ page, which is q·N < (page + 1)·P. */
static inline int an_piece_owner(const an_page_range *unit, int turn, int64_t page, int ranks) {
    const int64_t number = (int64_t)(((__int128)(page - unit->begin + 1) * ranks - 1) / (unit->end - unit->begin));
    return (int)((number + turn) % ranks);
}

#endif
