/* The table of all built-in ops. */
#include "ops/ops.h"

const an_op *const an_op_table[] = {
#define AN_OP(name) &an_op_##name,
#include "ops/ops.def"
#undef AN_OP
    NULL,
};
