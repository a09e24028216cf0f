/* Kernels of ops/row_factors.c: the norms of the rows of a weight with the change of an adapter, and
 * what DoRA makes of them. */
#ifndef AN_KERNELS_NORM_ROW_FACTORS_H
#define AN_KERNELS_NORM_ROW_FACTORS_H

#include "kernels/common/list.h"

typedef struct an_row_factors_attributes {
    double scale; /* of the change */
} an_row_factors_attributes;

AN_DECLARE_KERNELS(row_factors);

#endif
