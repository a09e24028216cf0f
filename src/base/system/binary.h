/* Which build of the library this is. */
#ifndef AN_BASE_SYSTEM_BINARY_H
#define AN_BASE_SYSTEM_BINARY_H

#include <stdint.h>

/* The hash of the file that this code was loaded from: the shared library, or a program that the static one is linked
 * into. Zeros where it cannot be read. O(its size), some milliseconds. */
void an_binary_hash(uint64_t hash[2]);

#endif
