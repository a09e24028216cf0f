/* A gradient of weights by leaves, the simple way: a kernel that knows no leaves is run on the
 * samples of one after the other. */
#ifndef AN_KERNELS_CONVOLUTION_LEAVES_H
#define AN_KERNELS_CONVOLUTION_LEAVES_H

#include "anneal/experimental.h"
#include "base/level.h"

/* Compiled once a level. */
#define an_convolution_leaves_scratch AN_LEVELED(an_convolution_leaves_scratch)
#define an_convolution_leaves_run AN_LEVELED(an_convolution_leaves_run)

/* What the sums of leaves need, beside what the kernel needs for all samples. Only for calls with leaves. */
size_t an_convolution_leaves_scratch(const an_call *call);

/* Runs `run` for each leaf, and adds what it gives in the tree. */
an_status an_convolution_leaves_run(const an_call *call, an_status (*run)(const an_call *call));

#endif
