/* Whether ranks have the same weights: a number that they compare at the beginning of every step. */
#ifndef AN_STEP_RANK_WEIGHTS_H
#define AN_STEP_RANK_WEIGHTS_H

#include "exec/params.h"

/* Of all parameters and run states: O(parameters). */
an_status an_rank_weights_all(const an_params *params, uint64_t *number);
/* Of a few elements of each, in every step others: microseconds. */
an_status an_rank_weights_some(const an_params *params, int64_t step, uint64_t *number);
/* Of this rank's pieces, which the ranks with its place on other hosts have, too: all of them, or a few elements of
 * each. */
an_status an_rank_weights_pieces_all(const an_params *params, uint64_t *number);
an_status an_rank_weights_pieces_some(const an_params *params, int64_t step, uint64_t *number);

#endif
