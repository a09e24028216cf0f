/* The attributes of sources: the parameter store, the passes and the program read them. */
#ifndef AN_OPS_SOURCE_H
#define AN_OPS_SOURCE_H

#include "ops/ops.h"

typedef struct an_input_attributes {
    const char *name;
    an_dtype dtype;
    an_dim_list dims;
} an_input_attributes;

typedef struct an_param_attributes {
    const char *name; /* the whole path */
    an_dtype dtype;
    an_dim_list dims;
    bool frozen;
    int64_t initializer; /* an_initializer */
    double scale;
    int64_t parameter; /* its number: the order of the first an_param calls */
    an_dtype copy;     /* NONE: the master; else the low copy of this type */
    int64_t layout;    /* 0: row-major */
} an_param_attributes;

typedef struct an_state_attributes { /* run_state, program_state */
    const char *name;
    an_dtype dtype;
    an_dim_list dims;
    double initial;
} an_state_attributes;

typedef struct an_scalar_attributes {
    const char *name;
    an_dtype dtype;
} an_scalar_attributes;

typedef struct an_constant_attributes {
    an_dtype dtype;
    double value;
} an_constant_attributes;

/* The copy of a parameter in a low type; `param` is its master's node. */
an_value an_param_copy(an_graph *g, const an_node *param, an_dtype dtype);

#endif
