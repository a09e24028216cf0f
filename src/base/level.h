/* Files that are compiled once a level of instructions: base, avx2 and avx512, from one source.
 *
 * The compiler vectorises the same loops for the registers of each level. As nothing is contracted into fused
 * multiply-adds and sums have an order of their own, all levels give the same bits; where a file has code for one level
 * only (#ifdef __AVX512F__), it says what that does to bits. External names of such a file get a suffix through
 * AN_LEVELED; without AN_LEVEL, which is the base level, names stay as they are. CMakeLists.txt says which files these
 * are.
 */
#ifndef AN_BASE_LEVEL_H
#define AN_BASE_LEVEL_H

#include "anneal/core.h"

#if defined(__x86_64__)
enum { AN_LEVELS = 3 };
#else
enum { AN_LEVELS = 1 };
#endif

/* Which of the compiled files a context uses. AMX has no files of its own: its few functions lie beside those of avx512. */
static inline int an_level_of(an_isa isa) {
    const int level = (int)isa - AN_ISA_BASE;
    return level < AN_LEVELS ? level : AN_LEVELS - 1;
}

#define AN_LEVEL_JOIN(name, level) name##level
#define AN_LEVEL_NAME(name, level) AN_LEVEL_JOIN(name, level)
#ifdef AN_LEVEL
#define AN_LEVELED(name) AN_LEVEL_NAME(name, AN_LEVEL)
#else
#define AN_LEVELED(name) name
#endif

#endif
