#include "base/isa.h"

#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/status.h"

static const char *const names[] = {[AN_ISA_AUTO] = "auto",
                                    [AN_ISA_BASE] = "base",
                                    [AN_ISA_AVX2] = "avx2",
                                    [AN_ISA_AVX512] = "avx512",
                                    [AN_ISA_AMX] = "amx"};

const char *an_isa_name(an_isa isa) {
    return (unsigned)isa < sizeof names / sizeof *names ? names[isa] : "?";
}

an_isa an_context_isa(const an_context *context) {
    AN_NEED_OR(AN_ISA_AUTO, context);
    return context->isa;
}

an_isa an_isa_allowed(void) {
    const char *word = getenv(AN_ISA_VARIABLE); /* NOLINT(concurrency-mt-unsafe): read only */
    if (!word || !*word) return AN_ISA_LIMIT;
    for (int isa = AN_ISA_BASE; isa <= AN_ISA_AMX; isa++)
        if (!strcmp(word, names[isa])) return (an_isa)isa;
    return AN_ISA_AUTO;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...); /* which POSIX does not have, so that unistd.h hides it */

/* What compilers' own question, __builtin_cpu_supports, has no name for. The operating system's part is that of AVX. */
static bool has_f16c(void) {
    enum { LEAF = 1, F16C = 1u << 29 };
    unsigned a, b, c, d;
    return __get_cpuid(LEAF, &a, &b, &c, &d) && (c & F16C);
}

#ifdef AN_TILE_MODEL /* a test program, whose tiles are a model in memory: kernels/common/tiles.h */
static bool has_tiles(void) {
    return true;
}
#else
static bool has_amx(void) {
    enum { LEAF = 7, AVX512_BF16 = 1u << 5, AMX_BF16 = 1u << 22, AMX_TILE = 1u << 24, AMX_INT8 = 1u << 25 };
    const unsigned all = AMX_BF16 | AMX_TILE | AMX_INT8;
    unsigned a, b, c, d;
    if (!__get_cpuid_count(LEAF, 1, &a, &b, &c, &d) || !(a & AVX512_BF16)) return false;
    return __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && (d & all) == all;
}

/* Tiles are large, so Linux keeps them from a process until it asks. The answer is for the whole process and changes
 * nothing but the size of the area in which a thread's registers are saved. */
static bool may_use_tiles(void) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static bool has_tiles(void) {
    return has_amx() && may_use_tiles();
}
#endif

/* The levels are x86-64-v3 (without what no kernel uses), x86-64-v4, and v4 with bf16 in vectors and tiles of bf16 and
 * 8-bit integers. __builtin_cpu_supports also asks whether the operating system saves the registers. Nobody asks for
 * tiles that are not allowed. */
static an_isa level_of_machine(an_isa allowed) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return AN_ISA_BASE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return AN_ISA_AVX2;
    if (allowed < AN_ISA_AMX || !has_tiles()) return AN_ISA_AVX512;
    return AN_ISA_AMX;
}
#else
static an_isa level_of_machine(an_isa allowed) {
    (void)allowed;
    return AN_ISA_BASE;
}
#endif

an_isa an_isa_highest(void) {
    const an_isa allowed = an_isa_allowed(), machine = level_of_machine(allowed);
    return allowed < machine ? allowed : machine;
}
