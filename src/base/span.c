#include "base/span.h"

#include "base/guard.h"
#include "base/status.h"

void an_context_set_span(an_context *context, void (*span)(void *user, const an_span *span), void *user) {
    AN_NEED_OR(, context);
    context->span = span;
    context->span_user = user;
}

void an_span_tell(const an_context *ctx, an_span span) {
    span.end = an_clock_seconds();
    AN_HOST(ctx->span(ctx->span_user, &span));
}
