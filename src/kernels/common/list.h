/* Lists of kernels: an op has one for each level of instructions that files are compiled for (base/level.h). */
#ifndef AN_KERNELS_COMMON_LIST_H
#define AN_KERNELS_COMMON_LIST_H

#include "anneal/experimental.h"
#include "base/level.h"

/* In a header: declares the lists of an op. */
#if defined(__x86_64__)
#define AN_DECLARE_KERNELS(op) \
    extern const an_kernel an_kernels_##op[], an_kernels_##op##_avx2[], an_kernels_##op##_avx512[]
/* In a record: all lists of an op. */
#define AN_KERNELS(op) \
    { an_kernels_##op, an_kernels_##op##_avx2, an_kernels_##op##_avx512 }
#else
#define AN_DECLARE_KERNELS(op) extern const an_kernel an_kernels_##op[]
#define AN_KERNELS(op) \
    { an_kernels_##op }
#endif

/* In a file that is compiled once a level: defines the list, best first, portable last, {0} at the end. */
#define AN_KERNEL_LIST(op) const an_kernel AN_LEVELED(an_kernels_##op)[]

/* Whether lists have kernels of oneDNN: kernels/onednn/onednn.h says why not at lower levels. */
#if defined(ANNEAL_HAVE_ONEDNN) && defined(__AVX512F__)
#define AN_LIST_ONEDNN
#endif

#endif
