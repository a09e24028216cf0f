/* A context that computes, for the library's own use: no config can be read with it. */
#ifndef AN_EXEC_CONTEXT_H
#define AN_EXEC_CONTEXT_H

#include "base/context.h"

/* As an_context_create, but without the kinds that configs choose from (open/kinds.h). */
an_status an_context_make(an_context **context, const an_context_options *options);

#endif
