/* Which instructions kernels may use. A context has one level for all its life; a level gives the same bits on every
 * machine that has it. */
#ifndef AN_BASE_ISA_H
#define AN_BASE_ISA_H

#include "anneal/core.h"

/* The highest level that this machine has and its operating system lets us use. */
an_isa an_isa_of_machine(void);

#endif
