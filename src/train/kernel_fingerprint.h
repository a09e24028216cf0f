/* What the kernels of a context compute, as one hash.
 *
 * Versions and instruction levels say which bits a run should have; this says which ones it gets. Another compiler,
 * another oneDNN or a processor that rounds in its own way has another fingerprint, and so it is seen before a run
 * mixes the results of both: ranks compare it at the start, and checkpoints store it. */
#ifndef AN_TRAIN_KERNEL_FINGERPRINT_H
#define AN_TRAIN_KERNEL_FINGERPRINT_H

#include "anneal/core.h"

/* Computes the fingerprint at its first call in a process, in some ten milliseconds. It depends on the instruction
 * level and on nothing else that a context has: the kernels are the host's, on one thread. */
an_status an_kernel_fingerprint(an_context *ctx, uint64_t hash[2]);

/* The same without the memory of it, and with kernels chosen by name as in an_plan_options; NULL: the fastest. */
an_status an_kernel_fingerprint_compute(an_context *ctx, const char *kernels, uint64_t hash[2]);

#endif
