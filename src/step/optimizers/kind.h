/* Built-in optimizers. Each is a file of this folder with one record, and a line in anneal/optimizers.def. The record
 * has its name, its options of the config, its defaults, its moments and its formula. The files are compiled once for
 * each level of instructions (base/level.h), so there is a record for each. */
#ifndef AN_STEP_OPTIMIZERS_KIND_H
#define AN_STEP_OPTIMIZERS_KIND_H

#include "anneal/experimental.h"
#include "anneal/optimizer.h"
#include "base/level.h"
#include "base/options/kind.h"
#include "kernels/update/update.h"

typedef struct an_optimizer_kind {
    an_kind kind;               /* the name, and options of the config */
    an_optimizer_record record; /* as a program's; without functions if there is a rule */
    an_update_rule rule;        /* for formulas that need more than those functions get; {0}: none */
    /* Refuses options that do not go together; NULL: all do. What no row of its options names is refused without it. */
    an_status (*check)(an_context *ctx, const an_optimizer_options *options);
    /* How many moments it keeps with these options; NULL: as many as the record says. */
    int (*moments)(const an_optimizer_options *options);
} an_optimizer_kind;

/* Name and options, and the record of a program without its functions. */
#define AN_OPTIMIZER_NAMED(text, rows, ...) \
    .kind = {.name = text, .options = rows}, .record = {.name = text, __VA_ARGS__}

#if defined(__x86_64__)
#define AN_OPTIMIZER(type, name)                                                              \
    extern const an_optimizer_kind an_optimizer_kind_##name, an_optimizer_kind_##name##_avx2, \
        an_optimizer_kind_##name##_avx512;
#define AN_OPTIMIZER_LEVELS(name) \
    { &an_optimizer_kind_##name, &an_optimizer_kind_##name##_avx2, &an_optimizer_kind_##name##_avx512 }
#else
#define AN_OPTIMIZER(type, name) extern const an_optimizer_kind an_optimizer_kind_##name;
#define AN_OPTIMIZER_LEVELS(name) \
    { &an_optimizer_kind_##name }
#endif
#include "anneal/optimizers.def"
#undef AN_OPTIMIZER

/* In the file of an optimizer: defines its record. */
#define AN_OPTIMIZER_KIND(name) const an_optimizer_kind AN_LEVELED(an_optimizer_kind_##name)

#endif
