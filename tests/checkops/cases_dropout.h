/* Which elements dropout keeps, for the oracles of ops with dropout. */
#ifndef CHECKOPS_CASES_DROPOUT_H
#define CHECKOPS_CASES_DROPOUT_H

#include "checkops/cases.h"

typedef struct check_draw {
    uint64_t seed, step, sample, site, element;
} check_draw;
bool check_keeps(check_draw draw, double rate);

/* Inputs first, first + 1, first + 2: samples of a batch, seed, step. */
void check_random_inputs(check_random *r, check_case *c, int first, int64_t batch);

#endif
