/* The peak speed of this machine, with which a profile is compared. */
#ifndef AN_CLI_BENCH_MACHINE_H
#define AN_CLI_BENCH_MACHINE_H

#include "anneal/core.h"

typedef struct cli_machine {
    double f32, f64, bf16; /* floating-point operations a second, from registers */
    double bandwidth;      /* bytes a second, read and written, of arrays that fit in no cache of a core */
} cli_machine;

/* Measures it, with as many threads and at the level that kernels use, in about half a second. AN_ERR_MEMORY: there is
 * no room for the arrays, or no thread. */
an_status cli_machine_measure(cli_machine *machine, int threads, an_isa isa);

#endif
