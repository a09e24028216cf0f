/* What the ops of a program ask of who trains it with other ranks. A program has these functions from the time when it
 * is joined to ranks until they leave it (step/leaves.c, step/rounds.c, step/remote_weights.c); a step only opens and
 * closes them. Kernels and the executor lie below steps: src/layers.txt lists what they call here. */
#ifndef AN_BASE_EXCHANGE_H
#define AN_BASE_EXCHANGE_H

#include <stdbool.h>

#include "anneal/core.h"

/* In which types weights are gathered. */
typedef enum an_weight_kind { AN_WEIGHTS_MASTER, AN_WEIGHTS_LOW, AN_WEIGHT_KINDS } an_weight_kind;

enum { AN_ALL_UNITS = -1, AN_NO_UNIT = -2 };

/* Gradients that leave a program, unit by unit. */
typedef struct an_gradient_exchange {
    void *user;   /* NULL: nobody has joined */
    bool is_open; /* the run under way sends them */
    /* Takes the gradients of a unit, which are complete: in `root`, or NULL: where the program has all gradients.
     * `failed`: what already went wrong in this run, or AN_OK. */
    an_status (*send_unit)(void *user, int unit, void *root, an_status failed);
    /* Waits until `root` may be used for other things. NULL: there are none. */
    an_status (*wait_sent)(void *user, int unit);
} an_gradient_exchange;

/* Weights that come from the ranks that own their pieces. A rank that has failed takes part: others wait for its
 * pieces, and its memory is there. */
typedef struct an_weight_exchange {
    void *user;
    bool is_open; /* programs that run now have the weights that they read */
    /* Waits for the weights of a unit, which other ranks have updated; AN_ALL_UNITS: for all. NULL: they come by
     * regions. */
    an_status (*wait_unit)(void *user, int unit);
    /* Weights in pieces, of which a program gathers a region (pass/shard.h) at a time: begins to fill its roots, NULL
     * where it has none, and waits until they are filled. A region is waited for once for each of its roots. */
    an_status (*gather)(void *user, int form, int region, void *const roots[AN_WEIGHT_KINDS]);
    an_status (*wait_region)(void *user, int form, int region);
} an_weight_exchange;

typedef struct an_exchange {
    an_gradient_exchange gradients;
    an_weight_exchange weights;
} an_exchange;

#endif
