/* The table of all ops. */
#include <string.h>

#include "ir/op.h"

#define AN_OP(name) extern const an_op an_op_##name;
#include "ops/ops.def"
#undef AN_OP

const an_op *const an_op_table[] = {
#define AN_OP(name) &an_op_##name,
#include "ops/ops.def"
#undef AN_OP
    NULL,
};

const an_op *an_op_find(const char *name, size_t length) {
    for (int i = 0; an_op_table[i]; i++) /* about a hundred names: the parser asks once a line */
        if (strlen(an_op_table[i]->name) == length && !memcmp(an_op_table[i]->name, name, length))
            return an_op_table[i];
    return NULL;
}
