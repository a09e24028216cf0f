/* How errors travel: the failing place leaves a message on the context, and every function on the way up adds its frame.
 *
 * A function that can fail has a local `an_status status`, an `an_context *ctx` in sight (both macros use it) and one
 * label `fail:` that frees what it took and returns status.
 */
#ifndef AN_BASE_STATUS_H
#define AN_BASE_STATUS_H

#include "anneal/anneal.h"

/* Sets the message and starts a new trail. A NULL context keeps the message per thread. */
void an_error_set(an_context *ctx, an_status status, const char *function, const char *file, int line,
                  const char *format, ...) AN_PRINTF(6, 7);

/* Adds a frame to the trail of the error that is on its way up. */
void an_error_frame(an_context *ctx, const char *function, const char *file, int line);

/* Its value is the code itself, so that compilers and analysers see that it is no AN_OK. */
#define AN_ERROR(ctx, code, ...) (an_error_set((ctx), (code), __func__, __FILE__, __LINE__, __VA_ARGS__), (code))

#define AN_FAIL(ctx, code, ...)                        \
    do {                                               \
        status = AN_ERROR((ctx), (code), __VA_ARGS__); \
        goto fail;                                     \
    } while (0)

#define AN_CHECK(ctx, condition, code, ...)                    \
    do {                                                       \
        if (!(condition)) AN_FAIL((ctx), (code), __VA_ARGS__); \
    } while (0)

#define AN_TRY(call)                                           \
    do {                                                       \
        status = (call);                                       \
        if (status != AN_OK) {                                 \
            an_error_frame(ctx, __func__, __FILE__, __LINE__); \
            goto fail;                                         \
        }                                                      \
    } while (0)

/* The same for functions that have nothing to free. */
#define AN_TRY_RETURN(call)                                    \
    do {                                                       \
        an_status status_ = (call);                            \
        if (status_ != AN_OK) {                                \
            an_error_frame(ctx, __func__, __FILE__, __LINE__); \
            return status_;                                    \
        }                                                      \
    } while (0)

#endif
