/* Models of real sizes, by name. */
#ifndef CHECKOPS_REAL_MODELS_H
#define CHECKOPS_REAL_MODELS_H

#include "anneal/plan.h"

enum { REAL_MODEL_SYMBOLS = 3 };

typedef struct real_model {
    const char *name;
    an_status (*build)(an_graph **graph, an_context *ctx, an_dtype dtype);
    struct {
        const char *symbol; /* NULL: no more */
        int64_t value;
    } sizes[REAL_MODEL_SYMBOLS];
    bool in_f64;   /* besides f32 and bf16 */
    bool for_rows; /* of --mode=rows */
} real_model;

extern const real_model real_models[]; /* ends with name NULL */
const real_model *real_model_find(const char *name);

/* Compiles the model: its training step, or its prediction if it has no loss. dtype BF16 is mixed precision. `unfused`
 * keeps every op for itself. */
an_status real_model_plan(an_plan **plan, an_context *ctx, const real_model *model, an_dtype dtype, bool unfused);

#endif
