#include "comm/window.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/integer.h"
#include "base/status.h"

/* ---- what all ranks agree on ---- */

static void keep_first(void *user, void *record, const void *next) {
    (void)user;
    (void)record;
    (void)next;
}

static void keep_smaller(void *user, void *record, const void *next) {
    int64_t *mine = record;
    const int64_t *other = next;
    (void)user;
    *mine = an_smaller(*mine, *other);
}

static an_status agree(an_context *ctx, an_comm *comm, void (*merge)(void *, void *, const void *), int64_t *number) {
    int64_t received;
    const an_comm_merger merger = {
        .bytes = sizeof *number, .merge = merge, .received = &received, .what = "whether ranks share memory"};
    return an_comm_merge(ctx, comm, &merger, number);
}

an_status an_window_ranks(an_context *ctx, int *host_ranks) {
    const an_comm *host = an_host_comm(ctx);
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    int64_t size = host->ranks;
    AN_TRY_RETURN(agree(ctx, comm, keep_first, &size));
    /* a number of another rank */
    int64_t fits = size >= 1 && size <= comm->ranks && host->share != NULL && ctx->shares_memory;
    if (fits) {
        const int64_t first = comm->rank / size * size;
        fits = first + host->rank == comm->rank && host->ranks == an_smaller(size, comm->ranks - first);
    }
    AN_TRY_RETURN(agree(ctx, comm, keep_smaller, &fits));
    *host_ranks = fits == 1 ? (int)size : 1;
    return AN_OK;
}

/* ---- memory ---- */

/* Where /dev/shm is too small, memory can be mapped and is not there: the first write to it would end the process. The
 * kernel writes zeros to it instead, and returns an error. */
static bool is_there(void *memory, size_t bytes) {
    const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (zeros < 0) return false;
    size_t at = 0;
    while (at < bytes) {
        const ssize_t got = read(zeros, (char *)memory + at, bytes - at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        at += (size_t)got;
    }
    close(zeros);
    return at == bytes;
}

enum { NOT_SHARED, NOT_THERE, OPENED };

an_status an_window_open(an_window *window, an_context *ctx, an_comm *comm, size_t bytes, bool *opened) {
    an_comm *host = an_host_comm(ctx);
    int64_t outcome = NOT_SHARED;
    *window = (an_window){.host = host, .bytes = bytes};
    if (host->share(host, bytes, &window->shared) == AN_OK)
        outcome = is_there(window->shared.parts[host->rank], bytes) ? OPENED : NOT_THERE;
    if (outcome == OPENED) an_window_part(window, host->rank)->bytes = bytes;
    AN_TRY_RETURN(agree(ctx, comm, keep_smaller, &outcome));
    *opened = outcome == OPENED;
    if (*opened) return AN_OK;
    if (comm->rank == 0)
        an_log_write(ctx, AN_LOG_WARNING,
                     "ranks of one host reduce by messages, which is slower: %s. A larger /dev/shm helps (mount -o "
                     "remount,size=…)",
                     outcome == NOT_THERE ? "there is not enough shared memory" : "they cannot share memory");
    /* If some rank has no window, there is nothing that all could close together. */
    if (outcome == NOT_THERE) host->unshare(host, &window->shared);
    *window = (an_window){0};
    return AN_OK;
}

void an_window_close(an_window *window, an_context *ctx) {
    if (window->host && an_comm_check(ctx) == AN_OK) window->host->unshare(window->host, &window->shared);
    *window = (an_window){0};
}
