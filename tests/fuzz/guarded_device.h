/* A device that gives a kernel its operands and nothing else.
 *
 * Tensors share large blocks, the arena above all, inside which AddressSanitizer sees no borders. Here all of them are
 * poisoned but while a kernel or a copy runs, and then only what it was given is not. Without the sanitizer what
 * remains is that operands lie inside their blocks and that outputs lie over nothing else. */
#ifndef TESTS_FUZZ_GUARDED_DEVICE_H
#define TESTS_FUZZ_GUARDED_DEVICE_H

#include "anneal/experimental.h"

extern const an_device guarded_device;

#endif
