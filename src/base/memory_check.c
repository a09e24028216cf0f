#include "base/memory_check.h"

#include "base/status.h"
#include "base/system/limits.h"

an_status an_memory_check(an_context *ctx, size_t bytes, const char *path) {
    enum { SMALL = 64 << 20 }; /* for which the system is not asked */
    an_limits limits;
    char text[AN_LIMITS_TEXT];
    const size_t held = ctx->bytes;
    if (bytes <= SMALL) return AN_OK;
    if (bytes > PTRDIFF_MAX - held) return AN_ERROR(ctx, AN_ERR_OVERFLOW, "%s: does not fit in memory", path);
    an_limits_read("", &limits);
    if (an_limits_compare(&limits, (int64_t)(held + bytes), (int64_t)held, text) != AN_LIMITS_EXCEEDED) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_MEMORY, "%s: uncompressed, the data has %s; with the rest of the run, %s", path,
                    an_bytes_in_words((int64_t)bytes).text, text);
}
