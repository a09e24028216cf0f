/* A plan: the forms of a model after all passes, and what they will allocate. */
#ifndef AN_EXEC_PLAN_H
#define AN_EXEC_PLAN_H

#include "anneal/plan.h"
#include "comm/forest.h"
#include "exec/kept.h"
#include "ir/graph.h"
#include "pass/memory.h"
#include "pass/pass.h"
#include "pass/shard.h"

enum { AN_FORMS = 4, AN_SLOT_BYTES = 16 }; /* a scalar or constant has a slot that any type fits in */

/* What the tables of one form in a program take. */
typedef struct an_form_tables {
    size_t instructions, tensors, outputs;
    size_t attribute_bytes;
} an_form_tables;

struct an_plan {
    an_context *ctx;
    an_graph *model; /* the verified model with its symbols at their maxima: the largest of all forms */
    int64_t *maxima
        /* of its symbols, by their numbers, where forms differ: for all but evaluation, and for that; NULL: none do */
        [2];
    an_graph *forms[AN_FORMS];
    an_form_tables tables[AN_FORMS];
    an_flat_sizes sizes;
    an_plan_memory memory;
    an_kept kept; /* of each weight */
    an_plan_traffic traffic;
    int64_t arena_bytes, scalar_bytes, constant_bytes;
    bool accumulates;                    /* gradients are added in whole buffers, of which ranks then divide the sum */
    const char *scalars[AN_MAX_SCALARS]; /* by slot; names belong to the forms */
    an_dtype scalar_dtypes[AN_MAX_SCALARS];
    int scalar_count;
    an_dtype low;           /* of the parameters' copies that a form reads; NONE: none does */
    an_pass_options passes; /* but for the form */
    char *kernels;
    size_t kernel_bytes;
    an_value weights;                      /* of samples, an input of the model; 0: none */
    an_value mixed_targets, mixed_weights; /* other targets of the same samples, inputs too; 0: none */
};

#define AN_LOSS_WEIGHTS "loss_weights"
#define AN_MIXED_TARGETS "mixed_targets"
#define AN_MIXED_WEIGHTS "mixed_weights"

/* Gives a clone of the model the maxima of a form. Inputs lie where the clone was laid out before: in the
 * same places in all forms. */
void an_plan_bind(const an_plan *p, an_graph *g, an_form form);

/* Runs the passes from `first` to `last`, both included; NULL: from the first one, to the last one. */
an_status an_plan_run_passes(const an_plan *p, an_graph *g, an_form form, const char *first, const char *last);

/* Checks what the options say of recompute and, for a budget of a plan that trains, finds what fits it: the passes'
 * options then have it. The other forms are there already: no recompute helps if they need more. */
an_status an_plan_choose_recompute(an_plan *p, const an_plan_options *options, bool trains);

/* The most leaves that a run of a training form has. */
static inline int64_t an_plan_together(const an_plan *p) {
    const an_graph *g = p->forms[AN_FORM_TRAIN_FIRST];
    return p->passes.leaves > 1 && g && !g->one_leaf ? p->passes.leaves : 1;
}

/* Counts the memory anew, for a rank with these leaves and so many bytes to copy for a checkpoint, without what the
 * owner of the plan holds: the forms are the same on all ranks. */
void an_plan_count_rank(an_plan *plan, const an_leaf_range *range, int64_t checkpoint);

/* Counts bytes that the owner of the plan holds for the same run. */
an_status an_plan_count_trainer(an_plan *plan, size_t bytes);

/* … and those of what ranks exchange: gradients that wait to be added, and buffers of messages. */
an_status an_plan_count_messages(an_plan *plan, size_t waiting, size_t bytes);

/* What the owner's steps exchange with other ranks. */
void an_plan_count_traffic(an_plan *plan, const an_plan_traffic *traffic);

/* Kernels of the training forms that were asked for by name and are not the ones that would have been chosen, sorted,
 * as "attention=portable,matmul=portable"; *text is NULL if there are none. For an_string_release. */
an_status an_plan_forced_kernels(const an_plan *plan, char **text);

/* What a program's own tables take, to the byte. */
int64_t an_program_table_bytes(const an_plan *plan);

/* The node whose layer a node belongs to. An op that was fused with one of another layer may have the path of either;
 * the parameter that it reads says whose work it is. */
const an_node *an_plan_owner(const an_node *node);

#endif
