/* A context as programs get it: that of base, with the built-in ops. */
#include "base/context.h"

#include "base/status.h"
#include "ops/ops.h"

static const an_op_registry builtin_ops = {.builtin = an_op_table};

an_status an_context_create(an_context **context, const an_context_options *options) {
    AN_NEED_IN(NULL, context);
    const an_status status = an_context_begin(context, options);
    if (status == AN_OK) (*context)->ops = &builtin_ops;
    return status;
}
