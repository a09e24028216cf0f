/* Names of kernels as users write them and as checkpoints and dumps store them. Portable kernels were once called
 * "reference": texts that say so still mean the portable kernel. */
#ifndef AN_IR_KERNEL_NAME_H
#define AN_IR_KERNEL_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* `name` is not ended by NUL. */
bool an_kernel_has_name(const char *kernel, const char *name, size_t length);

/* Whether two lists "op=name,op=name" choose the same kernels in the same order. */
bool an_kernel_lists_agree(const char *a, const char *b);

#endif
