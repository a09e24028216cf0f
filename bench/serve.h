/* One side of a comparison: a program that times a pass when it is asked to. It stays alive from one pass to the next,
 * so that other programs can have their turn between them and nothing is planned twice. */
#ifndef BENCH_SERVE_H
#define BENCH_SERVE_H

#include <anneal/anneal.h>

/* Says "ready" on standard output, then answers every line "WARM PASSES" of standard input with the seconds
 * of one pass: WARM passes are not timed; of the PASSES after them it is the median. Ends with the
 * input, or with a pass that fails. */
an_status bench_serve(an_status (*pass)(void *user), void *user);

#endif
