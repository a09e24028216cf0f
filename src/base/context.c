#include "base/context.h"

#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/added.h"
#include "base/guard.h"
#include "base/heartbeat.h"
#include "base/isa.h"
#include "base/memory.h"
#include "base/structs.h"

enum { MOST_THREADS = 4096 };

static void *default_allocate(void *user, size_t bytes, size_t alignment) {
    (void)user;
    return alignment <= _Alignof(max_align_t) ? malloc(bytes) : aligned_alloc(alignment, an_round_up(bytes, alignment));
}

static void default_release(void *user, void *memory, size_t bytes) {
    (void)user, (void)bytes;
    free(memory);
}

/* The pool lies behind the context. */
static size_t pool_offset(void) {
    return an_round_up(sizeof(an_context), AN_ALIGNMENT);
}

static size_t bytes_of(int threads) {
    return pool_offset() + an_pool_bytes(threads);
}

/* The level of a new context: what the caller asks for, or the highest. What is refused here would be refused at every
 * start. */
static an_status choose_isa(an_isa asked, an_isa *isa) {
    const an_isa highest = an_isa_highest();
    *isa = asked ? asked : highest;
    if (highest == AN_ISA_AUTO)
        return AN_ERROR(NULL, AN_ERR_UNSUPPORTED,
                        "the environment variable " AN_ISA_VARIABLE
                        " is '%s'; set it to base, avx2, avx512 or amx, or unset it",
                        getenv(AN_ISA_VARIABLE)); /* NOLINT(concurrency-mt-unsafe): read only */
    if (*isa < AN_ISA_BASE || *isa > AN_ISA_AMX)
        return AN_ERROR(NULL, AN_ERR_ARGUMENT, "isa is %d, which is not a value of an_isa", (int)*isa);
    if (*isa > an_isa_allowed())
        return AN_ERROR(NULL, AN_ERR_UNSUPPORTED,
                        "the environment variable " AN_ISA_VARIABLE
                        " limits instructions to %s, so the instruction set %s cannot be used: unset it, or choose %s",
                        an_isa_name(an_isa_allowed()), an_isa_name(*isa), an_isa_name(highest));
    if (*isa > highest)
        return AN_ERROR(NULL, AN_ERR_UNSUPPORTED,
                        "this machine does not support the instruction set %s; it supports %s", an_isa_name(*isa),
                        an_isa_name(highest));
    return AN_OK;
}

an_status an_context_begin(an_context **context, const an_context_options *given) {
    an_context_options options;
    an_allocator allocator;
    an_context *c;
    *context = NULL;
    AN_TRY_RETURN(an_context_options_read(NULL, &options, given));
    AN_TRY_RETURN(an_allocator_read(NULL, &allocator, options.allocator));
    if (!options.allocator) {
        allocator.allocate = default_allocate;
        allocator.release = default_release;
    }
    if (!allocator.allocate || !allocator.release)
        return AN_ERROR(NULL, AN_ERR_ARGUMENT, "an_allocator needs both functions, allocate and release");
    if (options.device && an_device_mistake(options.device))
        return AN_ERROR(NULL, AN_ERR_ARGUMENT, "the device record %s", an_device_mistake(options.device));
    if (options.threads < 0 || options.threads > MOST_THREADS)
        return AN_ERROR(NULL, AN_ERR_ARGUMENT,
                        "%d threads were requested; the number must be 1 to %d, or 0 for all cores", options.threads,
                        MOST_THREADS);
    if (options.heartbeat && options.heartbeat->size != sizeof *options.heartbeat)
        return AN_ERROR(NULL, AN_ERR_ARGUMENT, "an_heartbeat has size %llu, expected %zu: call an_heartbeat_init first",
                        (unsigned long long)options.heartbeat->size, sizeof *options.heartbeat);
    an_isa isa;
    AN_TRY_RETURN(choose_isa(options.isa, &isa));
    int threads = options.threads ? options.threads : omp_get_max_threads();
    if (threads > MOST_THREADS) threads = MOST_THREADS; /* OMP_NUM_THREADS may say anything */
    const size_t bytes = bytes_of(threads);
    c = allocator.allocate(allocator.user, bytes, AN_ALIGNMENT);
    if (!c) return AN_ERROR(NULL, AN_ERR_MEMORY, "out of memory: a context needs %zu bytes", bytes);
    memset(c, 0, sizeof *c);
    c->allocator = allocator;
    c->bytes = c->peak_bytes = bytes;
    c->device = options.device ? options.device : &an_device_host;
    c->threads = c->most_threads = threads;
    c->pool = (an_pool *)((char *)c + pool_offset());
    an_pool_init(c->pool, threads);
    c->isa = isa;
    c->process = getpid();
    c->log = options.log;
    c->log_user = options.log_user;
    c->heartbeat = options.heartbeat;
    c->alone = options.alone;
    c->shares_memory = options.shares_memory;
    c->communicator = options.communicator;
    if (c->heartbeat) an_heartbeat_start(c->heartbeat);
    *context = c;
    return AN_OK;
}

void an_context_destroy(an_context **context) {
    if (!context || !*context) return;
    an_allocator allocator = (*context)->allocator;
    if ((*context)->engine_release) (*context)->engine_release(*context);
    if ((*context)->own_ops_release) (*context)->own_ops_release(*context);
    an_added_release(*context);
    if ((*context)->options_release) (*context)->options_release(*context);
    if ((*context)->mesh_release) (*context)->mesh_release(*context);
    if (!an_context_is_forked(*context)) an_pool_end((*context)->pool);
    allocator.release(allocator.user, *context, bytes_of((*context)->most_threads));
    *context = NULL;
}

void an_context_set_threads(an_context *ctx, int threads, bool crowded) {
    ctx->threads = threads < ctx->most_threads ? threads : ctx->most_threads;
    an_pool_end(ctx->pool);
    an_pool_init(ctx->pool, ctx->threads);
    if (crowded) an_pool_share_processors(ctx->pool);
}

bool an_context_is_forked(const an_context *ctx) {
    return ctx->process != getpid();
}

an_status an_context_check_process(an_context *ctx) {
    if (!an_context_is_forked(ctx)) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_STATE,
                    "this process (%ld) was forked from process %ld, which created the context, and threads do not "
                    "survive a fork: destroy the context in the child process and create a new one there",
                    (long)getpid(), (long)ctx->process);
}

an_status an_context_check_threads(an_context *ctx) {
    return ctx->threads == 1 ? AN_OK : an_context_check_process(ctx);
}

bool an_context_uses_system_memory(const an_context *ctx) {
    return ctx->allocator.allocate == default_allocate && ctx->device == &an_device_host;
}

int an_context_threads(const an_context *context) {
    AN_NEED_OR(0, context);
    return context->threads;
}

double an_context_spin(const an_context *context) {
    AN_NEED_OR(0, context);
    return an_pool_spin(context->pool);
}

size_t an_context_bytes(const an_context *context) {
    AN_NEED_OR(0, context);
    return context->bytes;
}

void an_log_write(an_context *ctx, an_log_level level, const char *format, ...) {
    char text[AN_MESSAGE_BYTES];
    va_list arguments;
    if (!ctx->log) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    AN_HOST(ctx->log(ctx->log_user, level, text));
}
