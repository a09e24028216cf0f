/* A program: a plan with memory, as flat arrays of instructions. */
#ifndef AN_EXEC_PROGRAM_H
#define AN_EXEC_PROGRAM_H

#include "exec/params.h"
#include "exec/plan.h"

typedef struct an_instruction {
    const an_node *node;
    an_call call;       /* its tensors and attributes point into the form's tables */
    double seconds;     /* the profile: of all runs */
    double begin, last; /* of the last run: the clock when it began, and its seconds */
    int64_t runs;
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
    an_form last; /* the form that ran last */
    bool has_run, profiles;
    an_status (*hook)(void *user, int64_t instruction);
    void *hook_user;
};

/* Gives every operand of a form its tensor at the bound sizes. */
an_status an_program_bind_form(an_program *p, an_form form);

/* Where the next runs put gradients: a buffer of the parameters' flat size. Leaves have one each. */
void an_program_bind_gradients(an_program *p, void *gradients);

/* The sources at the bound sizes: any form has them, at the same places. */
const an_graph *an_program_any_form(const an_program *p);

#endif
