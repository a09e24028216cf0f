/* A program: a plan with memory, as flat arrays of instructions. */
#ifndef AN_EXEC_PROGRAM_H
#define AN_EXEC_PROGRAM_H

#include "base/exchange.h"
#include "exec/params.h"
#include "exec/plan.h"

typedef struct an_instruction {
    const an_node *node;
    an_call call;       /* its tensors and attributes point into the form's tables */
    double seconds;     /* the profile: of all runs */
    double begin, last; /* of the last run: the clock when it began, and its seconds */
    int64_t runs;
    int units[2]; /* whose weights it reads, if they are gathered: AN_NO_UNIT, or AN_ALL_UNITS if there are more */
} an_instruction;

typedef struct an_program_output {
    const char *name;
    const an_result *result;
} an_program_output;

typedef struct an_program_form {
    an_graph *graph; /* the plan's; NULL: the plan has no such form */
    an_graph sized;  /* its shell with this program's own symbol values: programs of one plan never meet */
    an_instruction *instructions;
    an_tensor *tensors;
    char *attributes;
    an_program_output *outputs;
    an_form_tables tables;
    bool is_bound; /* tensors are those of the current sizes */
} an_program_form;

struct an_program {
    an_context *ctx;
    const an_device *device;
    an_plan *plan;
    an_params *params;
    an_program_form forms[AN_FORMS];
    void *base[AN_STORAGE_COUNT]; /* one base pointer a storage class */
    void *arena, *inputs, *scalars, *constants, *program_states;
    void *gradients; /* an_program_bind_gradients */
    an_form last;    /* the form that ran last */
    bool has_run, profiles;
    an_status (*hook)(void *user, int64_t instruction);
    void *hook_user;
    an_leaf_cut leaves;   /* of the next runs of training forms */
    int64_t *leaf_ends;   /* [passes.leaves of the plan] */
    const an_kernel *add; /* the device's, for sums by leaves; NULL: a run has one leaf */
    an_exchange exchange; /* with other ranks, for its ops; empty: there are none */
    void *kept;           /* what kernels keep from run to run; NULL: nothing, or it is another program's */
    int64_t kept_bytes;
};

/* A program in a context of its own: programs of one plan on several threads have errors and teams of their own. */
an_status an_program_create_in(an_program **program, an_context *ctx, an_plan *plan, an_params *params);

/* A program with the states of another one, which must outlive it: their plans are of one graph, for different
 * sizes. */
an_status an_program_create_beside(an_program **program, an_plan *plan, an_params *params, const an_program *other);

/* For weights that seldom change: kernels of the form keep what they make of them from run to run. With `packs`, packed
 * copies too; without, only the results of ops that read nothing but weights. */
an_status an_program_keep(an_program *p, an_form form, bool packs);
/* … makes it anew: after every change of the weights, which runs do not look for. */
an_status an_program_keep_again(an_program *p, an_form form);
/* … and another program of the same plan, which must outlive p, has it already. */
void an_program_keep_of(an_program *p, an_form form, const an_program *other);

/* Gives every operand of a form its tensor at the bound sizes. */
an_status an_program_bind_form(an_program *p, an_form form);

/* … and one instruction those of its operands. */
an_status an_program_bind_instruction(const an_program *p, const an_program_form *f, const an_instruction *i);

/* Runs only the communication of a form, as after a failure: for a rank that has nothing to compute. */
void an_program_communicate(an_program *p, an_form form, an_status status);

/* How the samples of the next runs of training forms are cut into leaves: an aligned group of them, which the forms add
 * in the tree. `ends` is copied. One leaf needs no call. */
an_status an_program_cut(an_program *p, int64_t count, const int64_t *ends);

/* Where the next runs put gradients: a buffer of the parameters' flat size. Leaves have one each.
 * NULL: the parameters' own. */
void an_program_bind_gradients(an_program *p, void *gradients);
/* Makes it so, before a run: the parameters may have got others since the last one. */
an_status an_program_find_gradients(an_program *p);

/* The sources at the bound sizes: any form has them, at the same places. */
const an_graph *an_program_any_form(const an_program *p);

#endif
