#include "base/parallel.h"

#include <omp.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

/* All exceptions masked, no flags, round to nearest, neither flush-to-zero nor denormals-are-zero. The x87's word is
 * held too, in the upper half: the C library's strtod and printf look there for how to round. */
enum { MXCSR_DEFAULT = 0x1f80, X87_DEFAULT = 0x037f };

an_float_environment an_float_enter(void) {
    uint16_t x87, x87_default = X87_DEFAULT;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    __asm__ volatile("fldcw %0" : : "m"(x87_default));
    an_float_environment e = {(uint64_t)x87 << 32 | _mm_getcsr()};
    _mm_setcsr(MXCSR_DEFAULT);
    return e;
}

void an_float_leave(an_float_environment environment) {
    uint16_t x87 = (uint16_t)(environment.control >> 32);
    __asm__ volatile("fldcw %0" : : "m"(x87));
    _mm_setcsr((uint32_t)environment.control);
}
#elif defined(__aarch64__)
/* FPCR in the upper half, FPSR (the flags) in the lower. FPCR 0 is the IEEE default. */
an_float_environment an_float_enter(void) {
    uint64_t control, flags, none = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    __asm__ volatile("msr fpcr, %0" : : "r"(none));
    return (an_float_environment){control << 32 | (flags & 0xffffffff)};
}

void an_float_leave(an_float_environment environment) {
    __asm__ volatile("msr fpcr, %0" : : "r"(environment.control >> 32));
    __asm__ volatile("msr fpsr, %0" : : "r"(environment.control & 0xffffffff));
}
#else
#include <fenv.h>

/* Elsewhere only the rounding mode can be held portably. */
an_float_environment an_float_enter(void) {
    an_float_environment e = {(uint64_t)fegetround()};
    fesetround(FE_TONEAREST);
    return e;
}

void an_float_leave(an_float_environment environment) {
    fesetround((int)environment.control);
}
#endif

/* Tasks of a region, between which the calling thread moves messages on. */
typedef struct {
    an_context *ctx;
    an_task *task;
    void *user;
} progressing;

static void run_and_progress(void *user, int64_t index, int thread) {
    const progressing *p = user;
    p->task(p->user, index, thread);
    if (thread == 0) an_context_progress(p->ctx);
}

/* A thread's tasks come in rising order, so that what fails first on any of them is the first that fails at all. */
void an_parallel(an_context *ctx, int64_t count, an_task *task, void *user) {
    an_float_environment outside = an_float_enter();
    const bool inside = an_pool_is_inside() || omp_in_parallel();
    progressing p = {ctx, task, user};
    if (!inside && count > 1 && an_context_has_progress(ctx)) { /* in a task, the calling thread may be any */
        task = run_and_progress;
        user = &p;
    }
    if (ctx->threads == 1 || count <= 1 || inside)
        for (int64_t i = 0; i < count; i++) task(user, i, 0);
    else
        an_pool_run(ctx->pool, count, task, user);
    an_float_leave(outside);
}
