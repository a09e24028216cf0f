/* The gradient of a parameter that is used several times, such as a tied table: it has a contribution from each use,
 * and each is a sum over the leaves of a step. The first lies in the flat gradients at the parameter's place, the
 * others behind the grid (an_parameter.extras). They are added here, when the tree of each is complete. Where a run is
 * a whole step, the program adds them itself, with the same bits. */
#ifndef AN_STEP_EXTRAS_H
#define AN_STEP_EXTRAS_H

#include "exec/program.h"

typedef struct an_extras {
    an_program *program;
    const an_kernel *add; /* the device's; NULL: there are none */
} an_extras;

an_status an_extras_make(an_extras *extras, an_program *program);
/* Adds them to the parameters' gradients, in this rank's pieces. */
an_status an_extras_add(const an_extras *extras);

#endif
