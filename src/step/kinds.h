/* Kinds of optimizers and schedules, from which configs choose. */
#ifndef AN_STEP_KINDS_H
#define AN_STEP_KINDS_H

#include "base/context.h"

/* Gives a new context its optimizers and schedules. */
void an_context_add_step_kinds(an_context *ctx);

#endif
