/* SipHash-2-4: a keyed hash of short messages (Aumasson and Bernstein, 2012). Without the key nobody can make a
 * message whose hash is right. */
#ifndef AN_LAUNCH_SIPHASH_H
#define AN_LAUNCH_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct an_siphash_key {
    uint64_t words[2];
} an_siphash_key;

uint64_t an_siphash(const an_siphash_key *key, const void *bytes, size_t count);

#endif
