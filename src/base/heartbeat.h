/* What the threads of a context write to its heartbeat (anneal/heartbeat.h). Without a heartbeat, each call only
 * checks a pointer. Different threads write to different slots, at any time. */
#ifndef AN_BASE_HEARTBEAT_H
#define AN_BASE_HEARTBEAT_H

#include <stdarg.h>

#include "anneal/heartbeat.h"
#include "base/context.h"

enum { AN_HEARTBEAT_OWNER = 0, AN_HEARTBEAT_NONE = -1 };

/* The calling thread owns the context. */
void an_heartbeat_start(an_heartbeat *heartbeat);

/* The calling thread's own slot, until it is given back; AN_HEARTBEAT_NONE: there is no heartbeat, or no slot is left,
 * and then what is said there is not heard. The context's owner has AN_HEARTBEAT_OWNER. */
int an_heartbeat_slot_take(const an_context *ctx);
void an_heartbeat_slot_give(const an_context *ctx, int slot);

void an_heartbeat_write(an_heartbeat *heartbeat, int slot, const char *format, va_list arguments);
void an_heartbeat_write_number(an_heartbeat *heartbeat, int slot, const char *before, int64_t number,
                               const char *after);
void an_heartbeat_write_place(an_heartbeat *heartbeat, an_heartbeat_phase phase, const char *path, const char *op);
void an_heartbeat_write_phase(an_heartbeat *heartbeat, an_heartbeat_phase phase, const char *text);
void an_heartbeat_write_beat(an_heartbeat *heartbeat, int slot);

/* The thread gets on. */
static inline void an_heartbeat_beat(const an_context *ctx, int slot) {
    if (ctx->heartbeat) an_heartbeat_write_beat(ctx->heartbeat, slot);
}

/* … with this. For what happens a few times in a step or less, as it is formatted. */
AN_PRINTF(3, 4) static inline void an_heartbeat_say(const an_context *ctx, int slot, const char *format, ...) {
    va_list arguments;
    if (!ctx->heartbeat) return;
    va_start(arguments, format);
    an_heartbeat_write(ctx->heartbeat, slot, format, arguments);
    va_end(arguments);
}

/* … with "loading batch ", 12, "". */
static inline void an_heartbeat_say_number(const an_context *ctx, int slot, const char *before, int64_t number,
                                           const char *after) {
    if (ctx->heartbeat) an_heartbeat_write_number(ctx->heartbeat, slot, before, number, after);
}

/* The owner gets on with a node: "forward blocks.0.attention (attention)". */
static inline void an_heartbeat_say_place(const an_context *ctx, an_heartbeat_phase phase, const char *path,
                                          const char *op) {
    if (ctx->heartbeat) an_heartbeat_write_place(ctx->heartbeat, phase, path, op);
}

/* The owner gets on with something that is no node: "save: copies the weights". */
static inline void an_heartbeat_enter(const an_context *ctx, an_heartbeat_phase phase, const char *text) {
    if (ctx->heartbeat) an_heartbeat_write_phase(ctx->heartbeat, phase, text);
}

/* … with "evaluation, sample ", 640, "". */
static inline void an_heartbeat_enter_number(const an_context *ctx, an_heartbeat_phase phase, const char *before,
                                             int64_t number, const char *after) {
    if (!ctx->heartbeat) return;
    __atomic_store_n(&ctx->heartbeat->phase, (uint64_t)phase, __ATOMIC_RELAXED);
    an_heartbeat_write_number(ctx->heartbeat, AN_HEARTBEAT_OWNER, before, number, after);
}

/* The step that is under way, from 1. */
static inline void an_heartbeat_step_set(const an_context *ctx, int64_t step) {
    if (ctx->heartbeat) __atomic_store_n(&ctx->heartbeat->step, step, __ATOMIC_RELAXED);
}

#endif
