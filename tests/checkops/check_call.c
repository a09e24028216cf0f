/* Calling a kernel as strictly as can be: exact scratch full of garbage, guard zones, outputs that nobody has
 * written. */
#include "checkops/checkops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { SCRATCH_GUARD = 256, GARBAGE = 0xff };

/* ---- the caller's floating-point environment; elsewhere than on x86 and Arm it is not looked at ---- */

#if defined(__x86_64__)
static const uint64_t flush_to_zero = 0x8040; /* of results, and of operands */
static uint64_t environment(void) {
    return _mm_getcsr();
}
static void set_environment(uint64_t value) {
    _mm_setcsr((unsigned)value);
}
#elif defined(__aarch64__)
/* FPCR, how to compute, in the upper half, and FPSR, the flags, in the lower. */
static const uint64_t flush_to_zero = UINT64_C(1) << (32 + 24);
static uint64_t environment(void) {
    uint64_t control, flags;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    return control << 32 | (flags & 0xffffffff);
}
static void set_environment(uint64_t value) {
    __asm__ volatile("msr fpcr, %0" : : "r"(value >> 32));
    __asm__ volatile("msr fpsr, %0" : : "r"(value & 0xffffffff));
}
#else
static const uint64_t flush_to_zero = 0;
static uint64_t environment(void) {
    return 0;
}
static void set_environment(uint64_t value) {
    (void)value;
}
#endif

/* ---- calls ---- */

/* Whole seconds and nanoseconds: arithmetic between the two looks at the environment would set its flags. */
static struct timespec now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t;
}

/* The call as a kernel sees it; `with_data` false is how `applies` and `scratch` see it. */
static an_call make_call(const check_run *run, an_context *ctx, bool with_data, an_tensor *src, an_tensor *dst) {
    for (int i = 0; i < run->src_count; i++) {
        src[i] = run->src[i].tensor;
        if (!with_data) src[i].data = NULL;
    }
    for (int i = 0; i < run->dst_count; i++) {
        dst[i] = run->dst[i].tensor;
        if (!with_data) dst[i].data = NULL;
    }
    return (an_call){.ctx = ctx,
                     .attributes = run->node->attributes,
                     .src_count = run->src_count,
                     .dst_count = run->dst_count,
                     .src = src,
                     .dst = dst};
}

bool check_applies(const check_run *run, const an_kernel *kernel) {
    an_tensor src[AN_MAX_INPUTS], dst[AN_MAX_OUTPUTS];
    an_call call = make_call(run, run->ctx, false, src, dst);
    return !kernel->applies || kernel->applies(&call);
}

size_t check_run_scratch(const check_run *run, const an_kernel *kernel, an_context *ctx) {
    an_tensor src[AN_MAX_INPUTS], dst[AN_MAX_OUTPUTS];
    an_call call = make_call(run, ctx, false, src, dst);
    return kernel->scratch ? kernel->scratch(&call) : 0;
}

/* Outputs as no kernel has seen them: garbage, or what is to be added to. */
static void reset_outputs(check_run *run) {
    for (int i = 0; i < run->dst_count; i++) {
        check_operand *dst = &run->dst[i];
        memset(dst->memory, GARBAGE, dst->bytes);
        for (int64_t k = 0; dst->initial && k < dst->array.count; k++)
            check_store(dst->tensor.dtype, check_element(&dst->tensor, k), dst->initial[k]);
        check_remember(dst);
    }
}

/* Takes the result that lies in an input's memory to where outputs are looked for, and gives the input back. */
static void move_from_input(check_run *run, int input) {
    check_operand *src = &run->src[input], *dst = &run->dst[0];
    size_t element = an_dtype_size(dst->tensor.dtype);
    for (int64_t k = 0; k < dst->array.count; k++)
        memcpy(check_element(&dst->tensor, k), check_element(&src->tensor, k), element);
    memcpy(src->memory, src->before, src->bytes);
}

const char *check_run_call(check_run *run, const an_kernel *kernel, an_context *ctx, int in_place, unsigned flags) {
    static char message[4096 + 64]; /* an error's report and what was done */
    an_tensor src[AN_MAX_INPUTS], dst[AN_MAX_OUTPUTS];
    size_t scratch = check_run_scratch(run, kernel, ctx);
    if (scratch == AN_SCRATCH_FAILED) {
        snprintf(message, sizeof message, "scratch failed: %s", an_last_error(ctx));
        return message;
    }
    size_t whole = an_round_up(scratch + 2 * SCRATCH_GUARD, AN_ALIGNMENT);
    unsigned char *memory = aligned_alloc(AN_ALIGNMENT, whole);
    const char *wrong = NULL;
    if (!memory) return "there is no memory for its scratch";
    memset(memory, GARBAGE, whole);
    reset_outputs(run);
    an_call call = make_call(run, ctx, true, src, dst);
    call.scratch = scratch ? memory + SCRATCH_GUARD : NULL;
    if (in_place >= 0) dst[0] = src[in_place];

    uint64_t outside = environment();
    set_environment(flags & CHECK_FLUSHED ? outside | flush_to_zero : outside);
    uint64_t before = environment();
    struct timespec start = now();
    an_status status = kernel->run(&call);
    struct timespec end = now();
    uint64_t after = environment();
    set_environment(outside);
    run->kernel = kernel;
    run->seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);

    if (status != AN_OK) {
        snprintf(message, sizeof message, "returned %s: %s", an_status_name(status), an_last_error(ctx));
        wrong = message;
    } else if (after != before) {
        snprintf(message, sizeof message,
                 "changed the caller's floating-point environment from %#" PRIx64 " to %#" PRIx64, before, after);
        wrong = message;
    }
    for (int i = 0; i < run->src_count && !wrong; i++)
        if (!check_untouched(&run->src[i], i != in_place && !run->c.inputs[i].is_state)) {
            snprintf(message, sizeof message, "wrote to input %d", i);
            wrong = message;
        }
    for (int i = 0; i < run->dst_count && !wrong; i++)
        if (!check_untouched(&run->dst[i], in_place >= 0 && i == 0)) {
            snprintf(message, sizeof message, "wrote outside of output %d", i);
            wrong = message;
        }
    for (size_t i = 0; i < whole && !wrong; i++)
        if ((i < SCRATCH_GUARD || i >= SCRATCH_GUARD + scratch) && memory[i] != GARBAGE) {
            snprintf(message, sizeof message, "wrote outside of its %zu bytes of scratch", scratch);
            wrong = message;
        }
    free(memory);
    if (in_place >= 0 && run->src[in_place].memory) move_from_input(run, in_place);
    return wrong;
}
