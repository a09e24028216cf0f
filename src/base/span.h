/* What takes how long, for a host that asked for it (an_context_set_span). For what happens a few times in a step:
 * without such a host, each call only checks a pointer. */
#ifndef AN_BASE_SPAN_H
#define AN_BASE_SPAN_H

#include "base/context.h"
#include "base/system/clock.h"

#define AN_SPAN_TRAINING "training"
#define AN_SPAN_SAVE "save"

static inline double an_span_begin(const an_context *ctx) {
    return ctx->span ? an_clock_seconds() : 0;
}

/* Tells a span that ends now; any thread may. */
void an_span_tell(const an_context *ctx, an_span span);

static inline void an_span_end_in(const an_context *ctx, const char *thread, int64_t index, const char *name,
                                  int64_t number, double begin) {
    if (ctx->span) an_span_tell(ctx, (an_span){thread, index, name, number, begin, 0});
}

/* … of the thread that owns the context. */
static inline void an_span_end(const an_context *ctx, const char *name, int64_t number, double begin) {
    an_span_end_in(ctx, AN_SPAN_TRAINING, 0, name, number, begin);
}

#endif
