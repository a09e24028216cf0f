/* Built-in ops by name, for tests that have no context at hand. */
#ifndef SUPPORT_OPS_H
#define SUPPORT_OPS_H

#include <string.h>

#include "ops/ops.h"

static inline const an_op *find_builtin(const char *name) {
    int i = 0;
    while (an_op_table[i] && strcmp(an_op_table[i]->name, name) != 0) i++;
    return an_op_table[i];
}

#endif
