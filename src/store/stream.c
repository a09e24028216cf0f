#define XXH_STATIC_LINKING_ONLY /* the state is on the stack */
#include "store/stream.h"

#include <string.h>

#include <xxhash.h>

#include "base/device.h"
#include "base/heartbeat.h"
#include "base/integer.h"
#include "comm/comm.h"

size_t an_save_window_bytes(const an_save_layout *l, an_file_range files, size_t chunk) {
    size_t largest = 0;
    for (size_t i = files.begin; i < files.end; i++)
        if (l->files[i].bytes > largest) largest = l->files[i].bytes;
    if (largest > chunk) largest = chunk;
    return largest == 0 ? 0 : AN_SAVE_ALIGNMENT + an_round_up(largest, AN_SAVE_ALIGNMENT);
}

/* Where this rank is: in round k of the route it writes chunk k of its files. */
typedef struct {
    const an_writing *w;
    char *window; /* on AN_SAVE_ALIGNMENT */
    size_t file;  /* of the layout */
    size_t at;    /* byte of the file */
    an_part_file out;
    XXH3_state_t hash;
    an_status status; /* of the files; after an error nothing more is written */
} streaming;

static size_t chunk_bytes(const streaming *s) {
    const size_t left = s->w->job->layout->files[s->file].bytes - s->at, chunk = (size_t)s->w->job->route->chunk;
    return left < chunk ? left : chunk;
}

/* A new file begins with its header; what follows the data is written, and cut off again. */
static void prepare_window(const streaming *s) {
    const an_saved_file *f = &s->w->job->layout->files[s->file];
    const size_t bytes = chunk_bytes(s);
    if (s->at < f->header_bytes)
        memcpy(s->window, f->header + s->at, f->header_bytes - s->at < bytes ? f->header_bytes - s->at : bytes);
    memset(s->window + bytes, 0, an_round_up(bytes, AN_SAVE_ALIGNMENT) - bytes);
}

static void begin_file(streaming *s) {
    XXH3_128bits_reset(&s->hash);
    s->status = an_save_part_open(&s->out, s->w, s->file);
}

static void end_file(streaming *s) {
    an_save_job *job = s->w->job;
    s->status = an_save_part_close(&s->out, s->w, s->status);
    if (job->hashed) return;
    const XXH128_hash_t hash = XXH3_128bits_digest(&s->hash);
    job->hashes[s->file][0] = hash.low64;
    job->hashes[s->file][1] = hash.high64;
}

/* The chunk is in the window. */
static void write_window(streaming *s) {
    const size_t bytes = chunk_bytes(s);
    const bool ends = s->at + bytes == s->w->job->layout->files[s->file].bytes;
    if (s->status == AN_OK && s->at == 0) begin_file(s);
    if (s->status == AN_OK && !s->w->job->hashed) XXH3_128bits_update(&s->hash, s->window, bytes);
    if (s->status == AN_OK) s->status = an_save_part_put(&s->out, s->w, s->window, bytes);
    if (ends && s->out.file >= 0) end_file(s);
    s->at = ends ? 0 : s->at + bytes;
    s->file += ends;
}

/* One round of the route: what others need from this rank, and the next chunk of its own files. */
static an_status run_round(streaming *s, size_t first, size_t count) {
    an_save_job *job = s->w->job;
    an_route *route = job->route;
    an_context *ctx = route->ctx;
    const bool writes = s->file < job->files.end;
    an_save_image image = {s->window, 0};
    if (writes) {
        image.first = (int64_t)(an_save_image_offset(job->layout, job->files, s->file) + s->at);
        prepare_window(s);
    }
    AN_TRY_RETURN(an_save_copy_round(ctx, job->layout, job->params, route, first, count, image));
    AN_TRY_RETURN(job->params->device->synchronize(job->params->device, ctx));
    if (writes) write_window(s);
    return AN_OK;
}

static an_status run_rounds(streaming *s) {
    const an_save_job *job = s->w->job;
    const an_route *route = job->route;
    size_t first = 0;
    for (int64_t round = 0; first < route->count || s->file < job->files.end; round++) {
        const bool moves = first < route->count && route->transfers[first].round == round;
        const size_t count = moves ? an_route_round(route, first) : 0;
        const an_status status = run_round(s, first, count);
        if (status != AN_OK) return AN_NOTE(s->w->note, status, "%s", route->ctx->error.message);
        first += count;
    }
    return AN_OK;
}

an_status an_save_stream_parts(const an_writing *w) {
    an_save_job *job = w->job;
    an_context *ctx = job->route->ctx;
    streaming s = {.w = w, .window = job->image, .file = job->files.begin, .out = {.file = -1}};
    if (job->route->ranks > 1)
        an_comm_enter(ctx, an_axis_comm(ctx, AN_AXIS_DATA), "write of a save", an_save_layout_bytes(job->layout));
    const an_status status = run_rounds(&s);
    if (s.out.file >= 0) an_save_part_close(&s.out, w, status == AN_OK ? s.status : status);
    return status == AN_OK ? s.status : status;
}
