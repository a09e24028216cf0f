#define _GNU_SOURCE /* dladdr; NOLINT(bugprone-reserved-identifier) */
#include "base/system/binary.h"

#include <dlfcn.h>
#include <stdio.h>
#include <xxhash.h>

void an_binary_hash(uint64_t hash[2]) {
    static const char here;
    char bytes[1 << 14];
    Dl_info info;
    size_t count;
    hash[0] = hash[1] = 0;
    XXH3_state_t *state = XXH3_createState();
    FILE *file = dladdr(&here, &info) && info.dli_fname ? fopen(info.dli_fname, "rbe") : NULL;
    if (state && file) {
        XXH3_128bits_reset(state);
        while ((count = fread(bytes, 1, sizeof bytes, file)) > 0) XXH3_128bits_update(state, bytes, count);
        const XXH128_hash_t made = XXH3_128bits_digest(state);
        hash[0] = made.low64;
        hash[1] = made.high64;
    }
    if (file) fclose(file);
    XXH3_freeState(state);
}
