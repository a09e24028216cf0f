/* Which instructions kernels may use. A context has one level for all its life; a level gives the same bits on every
 * machine that has it. */
#ifndef AN_BASE_ISA_H
#define AN_BASE_ISA_H

#include "anneal/core.h"

/* The variable that limits the level of every context of a process: base, avx2, avx512 or amx. */
#define AN_ISA_VARIABLE "ANNEAL_MAX_ISA"

/* The highest level that a context may have: that of the machine and its operating system, or that of AN_ISA_VARIABLE
 * if it is lower. AN_ISA_AUTO if the variable is set to anything but a level. */
an_isa an_isa_highest(void);
/* The level that AN_ISA_VARIABLE names: AN_ISA_LIMIT if it is empty or not set, AN_ISA_AUTO if it names none. */
an_isa an_isa_allowed(void);

#endif
