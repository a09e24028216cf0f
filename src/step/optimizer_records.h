/* Which optimizers a context has: the built-in ones and those that the program added. */
#ifndef AN_STEP_OPTIMIZER_RECORDS_H
#define AN_STEP_OPTIMIZER_RECORDS_H

#include "anneal/experimental.h"
#include "anneal/train.h"
#include "step/optimizers/kind.h"

/* The record of an optimizer. name NULL: the built-in one of that type. An error lists the names that there are. */
an_status an_optimizer_record_get(const an_optimizer_record **record, an_context *ctx, an_optimizer_type type,
                                  const char *name);
/* A built-in one; NULL: there is no such type. */
const an_optimizer_record *an_optimizer_builtin(an_optimizer_type type);
/* What a built-in one is, at a level of instructions; NULL: a program has added it. */
const an_optimizer_kind *an_optimizer_kind_of(const an_optimizer_record *record, an_isa isa);

/* What updates a page at a level of instructions. A record of a program is the same at each. */
typedef struct an_update_function {
    const an_update_rule *rule;
    const an_optimizer_record *record;
} an_update_function;
an_update_function an_optimizer_function(const an_optimizer_record *record, an_isa isa);

/* By name, built-in or added; NULL: there is none. */
const an_optimizer_record *an_optimizer_record_find(const an_context *ctx, const char *name);

/* "adamw, adam, sgd, lion, mine" */
typedef struct an_optimizer_names {
    char text[256];
} an_optimizer_names;
an_optimizer_names an_optimizer_names_list(const an_context *ctx);

#endif
