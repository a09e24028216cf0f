/* Files that are compiled once per instruction set (base, avx2, avx512), from one source.
 *
 * The compiler vectorises the same loops for the registers of each instruction set. Nothing is contracted into fused
 * multiply-adds and sums have a fixed order, so all of them give the same bits. Where a file has code for only one
 * (#ifdef __AVX512F__), it says what that does to the bits. External names of such a file get a suffix through
 * AN_LEVELED; without AN_LEVEL, which is the base level, names stay as they are. CMakeLists.txt lists these files.
 */
#ifndef AN_BASE_LEVEL_H
#define AN_BASE_LEVEL_H

#include "anneal/core.h"

#if defined(__x86_64__)
enum { AN_LEVELS = 3 };
#else
enum { AN_LEVELS = 1 };
#endif

/* Which of the compiled files a context uses. AMX has no files of its own: its few functions lie beside those of
 * avx512. */
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
