/* A pragma that the compilers spell differently. */
#ifndef AN_BASE_UNROLL_H
#define AN_BASE_UNROLL_H

/* Before a loop over registers: an array of vectors is in registers only if no loop is left. */
#if defined(__clang__)
#define AN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define AN_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
