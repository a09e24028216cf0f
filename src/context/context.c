/* Creates a context as programs use it: one that computes, with the kinds that configs choose from. */
#include "base/context.h"

#include "base/guard.h"
#include "base/status.h"
#include "exec/context.h"
#include "kinds/kinds.h"
#include "step/kinds.h"

an_status an_context_create(an_context **context, const an_context_options *options) {
    AN_NEED_IN(NULL, context);
    AN_GUARD; /* ranks wait for each other, and waits look at the clock */
    const an_status status = an_context_make(context, options);
    if (status != AN_OK) return status;
    an_context_add_kinds(*context);
    an_context_add_step_kinds(*context);
    return status;
}
