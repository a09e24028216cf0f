/* Chains: elementwise ops one after the other on rows that stay in the first-level cache, alone or as the end of a
 * product.
 *
 * A chain is written as a text, so that dumps show it: `add(x,2):bf16 gelu_tanh(x):bf16`. A stage is an op without
 * attributes, its operands (x is the value so far, a number an input of the node) and the type that its result has in
 * the graph, to which it is rounded (none: the compute type): the bits are those of the ops.
 */
#ifndef AN_KERNELS_ELEMENTWISE_CHAIN_H
#define AN_KERNELS_ELEMENTWISE_CHAIN_H

#include "kernels/common/elementwise.h"
#include "kernels/common/list.h"

enum { AN_CHAIN_STAGES = 6, AN_CHAIN_OPERANDS = 3, AN_CHAIN_VALUE = -1 };

typedef struct an_chain_stage {
    const an_kernel *kernel;                        /* its rows */
    int operand_count, operands[AN_CHAIN_OPERANDS]; /* inputs of the node, or AN_CHAIN_VALUE */
    an_dtype dtype;
} an_chain_stage;

typedef struct an_chain {
    int count;
    an_chain_stage stages[AN_CHAIN_STAGES];
} an_chain;

typedef struct an_chain_attributes {
    const char *program;
    an_chain chain; /* what infer read in it */
} an_chain_attributes;

/* Rounds values to a type of the graph; NONE and the compute type leave them. */
#define an_chain_round_f32 AN_LEVELED(an_chain_round_f32)
#define an_chain_round_f64 AN_LEVELED(an_chain_round_f64)
void an_chain_round_f32(an_dtype dtype, int64_t n, float *values);
void an_chain_round_f64(an_dtype dtype, int64_t n, double *values);

/* Runs the stages on n ≤ AN_ELEMENTWISE_ROW values in place; inputs are rows of the node's inputs. Stage `kept` (-1:
 * none) also puts its result into `copy`. */
#define an_chain_run_f32 AN_LEVELED(an_chain_run_f32)
#define an_chain_run_f64 AN_LEVELED(an_chain_run_f64)
void an_chain_run_f32(const an_chain *chain, int64_t n, const float *const *inputs, float *values, int kept,
                      float *copy);
void an_chain_run_f64(const an_chain *chain, int64_t n, const double *const *inputs, double *values, int kept,
                      double *copy);

/* (x, more…) → the chain's value; x is input 0. */
AN_DECLARE_KERNELS(chain);

#endif
