/* How errors travel: the failing place leaves a message on the context, and every function on the way up adds its
 * frame.
 *
 * A function that can fail and has something to free has a local `an_status status` and one label `fail:` that frees
 * what it took and returns status. Others use AN_TRY_RETURN.
 */
#ifndef AN_BASE_STATUS_H
#define AN_BASE_STATUS_H

#include <stddef.h>

#include "anneal/core.h"

/* Whether a number that came from elsewhere is an error of this library. */
bool an_status_is_error(int64_t number);

/* Sets the message of the context, and that of the calling thread, and starts a new trail. NULL: of the thread only. */
void an_error_set(an_context *ctx, an_status status, const char *function, const char *file, int line,
                  const char *format, ...) AN_PRINTF(6, 7);

/* Adds a frame to the trail of the error that is on its way up: the last one of the calling thread. */
void an_error_frame(const char *function, const char *file, int line);

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

#define AN_TRY(call)                                      \
    do {                                                  \
        status = (call);                                  \
        if (status != AN_OK) {                            \
            an_error_frame(__func__, __FILE__, __LINE__); \
            goto fail;                                    \
        }                                                 \
    } while (0)

/* The same for functions that have nothing to free. */
#define AN_TRY_RETURN(call)                               \
    do {                                                  \
        an_status status_ = (call);                       \
        if (status_ != AN_OK) {                           \
            an_error_frame(__func__, __FILE__, __LINE__); \
            return status_;                               \
        }                                                 \
    } while (0)

/* ---- pointers that a public function cannot do without ---- It names them before anything else:
 *
 *     AN_NEED(trainer, info);             returns AN_ERR_ARGUMENT if one is NULL, with "an_trainer_info_get: info is
 *                                         NULL" on the context of the first one, the handle; for the thread if the
 *                                         handle is NULL
 *     AN_NEED_IN(ctx, ctx, graph, path);  the same, with the message on ctx
 *     AN_NEED_OR(0, graph);               returns this value instead of a status; the message is the thread's
 */
#define AN_NEED(...) AN_NEED_ELSE(AN_CONTEXT_OF(__VA_ARGS__, ), AN_ERR_ARGUMENT, __VA_ARGS__)
#define AN_NEED_IN(ctx, ...) AN_NEED_ELSE(ctx, AN_ERR_ARGUMENT, __VA_ARGS__)
#define AN_NEED_OR(result, ...) AN_NEED_ELSE(NULL, result, __VA_ARGS__)

#define AN_CONTEXT_OF(handle, ...) ((handle) ? (handle)->ctx : NULL)
#define AN_NEED_ELSE(ctx, result, ...)                                                     \
    do {                                                                                   \
        const void *const needed_[] = {__VA_ARGS__};                                       \
        const int null_ = an_first_null(needed_, (int)(sizeof needed_ / sizeof *needed_)); \
        if (null_ >= 0) {                                                                  \
            an_need_failed((ctx), __func__, __FILE__, __LINE__, #__VA_ARGS__, null_);      \
            return result;                                                                 \
        }                                                                                  \
    } while (0)

/* The first of these that is NULL; -1: none. */
static inline int an_first_null(const void *const *pointers, int count) {
    for (int i = 0; i < count; i++)
        if (!pointers[i]) return i;
    return -1;
}

/* Sets the error for pointer `index` of `names`, a list with commas. */
void an_need_failed(an_context *ctx, const char *function, const char *file, int line, const char *names, int index);

#endif
