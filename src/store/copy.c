#include "store/copy.h"

#include <string.h>

#include "anneal/ranks.h"
#include "base/device.h"
#include "base/heartbeat.h"
#include "base/parallel.h"
#include "comm/comm.h"

enum { COPY_CHUNK = 1 << 20 };

/* ---- what stays on this rank ---- */

typedef struct {
    char *dst;
    const char *src;
    size_t bytes;
} copying;

static void copy_chunk(void *user, int64_t index, int thread) {
    const copying *c = user;
    const size_t begin = (size_t)index * COPY_CHUNK;
    (void)thread;
    memcpy(c->dst + begin, c->src + begin, c->bytes - begin < COPY_CHUNK ? c->bytes - begin : COPY_CHUNK);
}

static an_status copy(an_context *ctx, const an_device *device, copying c) {
    if (device != &an_device_host) return device->copy(device, ctx, c.dst, c.src, c.bytes, AN_COPY_FROM_DEVICE);
    an_parallel(ctx, (int64_t)((c.bytes + COPY_CHUNK - 1) / COPY_CHUNK), copy_chunk, &c);
    return AN_OK;
}

static bool is_own(const an_route *r, const an_transfer *x) {
    return x->holder == r->rank && (x->owner == r->rank || x->owner == AN_ROUTE_ALL);
}

static char *place_of(an_save_image image, const an_transfer *x) {
    return image.memory + (x->place - image.first);
}

/* ---- what does not ---- */

/* Receives are there before what is sent to them, so that no rank's MPI has to keep it. */
static an_status post(an_context *ctx, an_comm *comm, const an_save_layout *l, const an_params *params, an_route *r,
                      size_t first, size_t count, an_save_image image) {
    for (size_t i = 0; i < count; i++) {
        const an_transfer *x = &r->transfers[first + i];
        if (x->holder == r->rank && !is_own(r, x))
            AN_TRY_RETURN(an_comm_receive(ctx, comm, place_of(image, x), (size_t)x->bytes, x->owner, AN_TAG_CHECKPOINT,
                                          &r->requests[i]));
    }
    for (size_t i = 0; i < count; i++) {
        const an_transfer *x = &r->transfers[first + i];
        if (x->owner == r->rank && x->holder != r->rank)
            AN_TRY_RETURN(an_comm_send(ctx, comm, an_route_memory(l, params, x), (size_t)x->bytes, x->holder,
                                       AN_TAG_CHECKPOINT, &r->requests[i]));
    }
    return AN_OK;
}

an_status an_save_copy_round(an_context *ctx, const an_save_layout *l, const an_params *params, an_route *r,
                             size_t first, size_t count, an_save_image image) {
    an_status status;
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    AN_TRY(post(ctx, comm, l, params, r, first, count, image));
    for (size_t i = first; i < first + count; i++) {
        const an_transfer *x = &r->transfers[i];
        if (!is_own(r, x)) continue;
        AN_TRY(copy(
            ctx, params->device,
            (copying){.dst = place_of(image, x), .src = an_route_memory(l, params, x), .bytes = (size_t)x->bytes}));
    }
    AN_TRY(an_comm_wait(ctx, comm, r->requests, (int)count, "the state of other ranks, for a save"));
    an_heartbeat_beat(ctx, AN_HEARTBEAT_OWNER);
    return AN_OK;
fail:
    an_comm_cancel(comm, r->requests, (int)r->maximum);
    return status;
}

static an_status copy_rounds(an_context *ctx, const an_save_layout *l, const an_params *params, an_route *r,
                             char *memory) {
    const an_save_image image = {memory, 0};
    for (size_t first = 0, count; first < r->count; first += count) {
        count = an_route_round(r, first);
        AN_TRY_RETURN(an_save_copy_round(ctx, l, params, r, first, count, image));
    }
    return params->device->synchronize(params->device, ctx);
}

an_status an_save_copy(an_context *ctx, const an_save_layout *layout, const an_params *params, an_route *route,
                       char *image) {
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    if (route->ranks == 1) return copy_rounds(ctx, layout, params, route, image);
    if (params->device != &an_device_host) /* every rank's is */
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "ranks can save together only what is in the host's memory");
    an_comm_enter(ctx, comm, "copy of a save", an_save_layout_bytes(layout));
    return an_ranks_agree(ctx, copy_rounds(ctx, layout, params, route, image));
}

/* ---- hashes ---- */

/* O(writers) on rank 0. */
static an_status move_hashes(an_context *ctx, an_comm *comm, size_t files, uint64_t (*hashes)[2]) {
    static const char what[] = "the hashes of a save";
    for (int rank = 1; rank < comm->ranks; rank++) {
        const an_file_range own = an_route_files(files, rank, comm->ranks);
        const size_t bytes = (own.end - own.begin) * sizeof *hashes;
        if (bytes == 0) continue;
        if (comm->rank == 0)
            AN_TRY_RETURN(an_comm_receive_all(ctx, comm, hashes[own.begin], bytes, rank, AN_TAG_CHECKPOINT, what));
        else if (comm->rank == rank)
            AN_TRY_RETURN(an_comm_send_all(ctx, comm, hashes[own.begin], bytes, 0, AN_TAG_CHECKPOINT, what));
    }
    return AN_OK;
}

an_status an_save_share_hashes(an_context *ctx, const an_save_layout *layout, const an_route *route,
                               uint64_t (*hashes)[2]) {
    if (route->ranks == 1) return AN_OK;
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    an_comm_enter(ctx, comm, "hashes of a save", layout->file_count * sizeof *hashes);
    return an_ranks_agree(ctx, move_hashes(ctx, comm, layout->file_count, hashes));
}
