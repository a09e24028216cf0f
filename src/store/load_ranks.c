/* Loading by all ranks together. A rank reads its files chunk after chunk, and sends what is in a chunk
 * while it reads the next. After an error it goes on with its messages, as others wait for them; in the
 * end all ranks have the error. */
#include <string.h>

#include "anneal/ranks.h"
#include "base/device.h"
#include "base/heartbeat.h"
#include "base/integer.h"
#include "comm/comm.h"
#include "store/found.h"
#include "store/read.h"
#include "store/route.h"

enum { CHUNK = 4 << 20 };

typedef struct {
    an_context *ctx;
    an_comm *comm;
    an_params *params;
    const an_manifest *manifest;
    const char *folder;
    an_found found;
    an_save_layout files; /* that have tensors in them; a view, with the tensors and pieces of `found` */
    size_t *numbers;      /* of these files in the manifest */
    an_route *route;
    char *chunks; /* two: one is read while the other is sent */
    int64_t chunk;
    /* what this rank reads */
    an_file_reader reader;
    size_t file;      /* the next or, while it is open, this one */
    an_status status; /* of reading */
} loading;

/* ---- before anything moves ---- */

/* Files that have tensors are numbered anew, so that ranks have as many of them as others. */
static an_status number_files(loading *l) {
    an_context *ctx = l->ctx;
    const an_manifest *m = l->manifest;
    an_save_layout *v = &l->files;
    const an_found *f = &l->found;
    *v = (an_save_layout){
        .ctx = ctx, .tensors = f->layout->tensors, .tensor_count = f->layout->tensor_count, .pieces = f->pieces};
    AN_TRY_RETURN(an_alloc(ctx, (void **)&v->files, m->file_count, sizeof *v->files));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&l->numbers, m->file_count, sizeof *l->numbers));
    for (size_t i = 0; i < f->count; i++) {
        const size_t number = f->pieces[i].file;
        if (f->pieces[i].begin == f->pieces[i].end)
            continue; /* a tensor without elements: its file may have no bytes */
        if (v->file_count == 0 || l->numbers[v->file_count - 1] != number) {
            l->numbers[v->file_count] = number;
            v->files[v->file_count++].bytes = (size_t)m->files[number].bytes;
        }
        f->pieces[v->piece_count] = f->pieces[i];
        f->pieces[v->piece_count++].file = v->file_count - 1;
    }
    return AN_OK;
}

static an_status prepare(loading *l, const an_graph *graph) {
    an_context *ctx = l->ctx;
    const an_params *params = l->params;
    const an_params_pieces *pieces = &params->pieces;
    if (params->device != &an_device_host)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "ranks can load together only into the host's memory");
    AN_TRY_RETURN(
        an_found_create(&l->found, ctx, graph, an_params_kept(params), l->manifest, l->folder, AN_LOAD_STATE));
    AN_TRY_RETURN(number_files(l));
    const an_route_options options = {.ranks = l->comm->ranks,
                                      .rank = l->comm->rank,
                                      .shards = pieces->sharding == AN_SHARD_NONE ? NULL : pieces->shards,
                                      .way = AN_ROUTE_LOAD,
                                      .chunk = l->chunk};
    AN_TRY_RETURN(an_route_create(&l->route, &l->files, &options));
    l->file = l->route->files.begin;
    return an_alloc(ctx, (void **)&l->chunks, 2 * (size_t)l->chunk, 1);
}

static void release(loading *l) {
    an_context *ctx = l->ctx;
    an_file_reader_close(&l->reader);
    an_release(ctx, (void **)&l->chunks, 2 * (size_t)l->chunk, 1);
    an_route_destroy(&l->route);
    an_release(ctx, (void **)&l->numbers, l->manifest->file_count, sizeof *l->numbers);
    an_release(ctx, (void **)&l->files.files, l->manifest->file_count, sizeof *l->files.files);
    an_found_destroy(&l->found);
}

/* ---- reading ---- */

static bool reads(const loading *l) {
    return l->file < l->route->files.end;
}

static void read_next(loading *l, char *memory) {
    const an_manifest_file *file = &l->manifest->files[l->numbers[l->file]];
    if (!l->reader.file) l->status = an_file_reader_open(&l->reader, l->ctx, file, l->folder);
    const size_t bytes = (size_t)an_smaller(l->chunk, file->bytes - l->reader.at);
    if (l->status == AN_OK) l->status = an_file_reader_read(&l->reader, memory, bytes);
    an_heartbeat_beat(l->ctx, AN_HEARTBEAT_OWNER);
    if (l->status == AN_OK && l->reader.at < file->bytes) return;
    if (l->status == AN_OK) l->status = an_file_reader_check(&l->reader);
    an_file_reader_close(&l->reader);
    /* After an error nothing more is read. The messages go on with what the chunks have, and nobody will use it. */
    l->file = l->status == AN_OK ? l->file + 1 : l->route->files.end;
}

/* What is no tensor, such as the config, is read by rank 0 for its hash. */
static an_status check_others(const loading *l) {
    size_t next = 0;
    if (l->comm->rank > 0) return AN_OK;
    for (size_t i = 0; i < l->manifest->file_count; i++) {
        if (next < l->files.file_count && l->numbers[next] == i) {
            next++;
            continue;
        }
        const an_status status = an_checkpoint_check_file(l->ctx, &l->manifest->files[i], l->folder);
        if (status != AN_OK) return status;
    }
    return AN_OK;
}

/* ---- messages ---- */

static bool passes_on(const loading *l, const an_transfer *x) {
    return x->owner == AN_ROUTE_ALL && x->hops + 1 < l->comm->ranks;
}

static an_status send_to_next(const loading *l, const an_transfer *x, const char *bytes, an_comm_request *request) {
    return an_comm_send(l->ctx, l->comm, bytes, (size_t)x->bytes, (l->comm->rank + 1) % l->comm->ranks,
                        AN_TAG_CHECKPOINT_ALL, request);
}

static char *memory_of(const loading *l, const an_transfer *x) {
    return an_route_memory(&l->files, l->params, x);
}

/* What comes is received where it belongs in the store. What this rank has read goes out, or into its own store. */
static an_status begin_round(loading *l, size_t first, size_t count, const char *chunk) {
    an_context *ctx = l->ctx;
    const an_route *r = l->route;
    const int rank = l->comm->rank, before = (rank + l->comm->ranks - 1) % l->comm->ranks;
    for (size_t i = 0; i < count; i++) {
        const an_transfer *x = &r->transfers[first + i];
        const bool all = x->owner == AN_ROUTE_ALL;
        if (x->holder == rank) continue;
        AN_TRY_RETURN(an_comm_receive(ctx, l->comm, memory_of(l, x), (size_t)x->bytes, all ? before : x->holder,
                                      all ? AN_TAG_CHECKPOINT_ALL : AN_TAG_CHECKPOINT, &r->requests[i]));
    }
    for (size_t i = 0; i < count; i++) {
        const an_transfer *x = &r->transfers[first + i];
        const char *bytes = chunk + x->offset % l->chunk;
        if (x->holder != rank) continue;
        if (x->owner == rank || x->owner == AN_ROUTE_ALL) memcpy(memory_of(l, x), bytes, (size_t)x->bytes);
        if (passes_on(l, x))
            AN_TRY_RETURN(send_to_next(l, x, bytes, &r->requests[r->maximum + i]));
        else if (x->owner != rank && x->owner != AN_ROUTE_ALL)
            AN_TRY_RETURN(an_comm_send(ctx, l->comm, bytes, (size_t)x->bytes, x->owner, AN_TAG_CHECKPOINT,
                                       &r->requests[r->maximum + i]));
    }
    return AN_OK;
}

/* What goes round is passed on in the order in which it comes. */
static an_status end_round(loading *l, size_t first, size_t count) {
    static const char what[] = "a checkpoint from the rank that reads it";
    an_context *ctx = l->ctx;
    const an_route *r = l->route;
    for (size_t i = 0; i < count; i++) {
        const an_transfer *x = &r->transfers[first + i];
        if (x->holder == l->comm->rank || !passes_on(l, x)) continue;
        AN_TRY_RETURN(an_comm_wait(ctx, l->comm, &r->requests[i], 1, what));
        AN_TRY_RETURN(send_to_next(l, x, memory_of(l, x), &r->requests[r->maximum + i]));
    }
    AN_TRY_RETURN(an_comm_wait(ctx, l->comm, r->requests, (int)count, what));
    return an_comm_wait(ctx, l->comm, r->requests + r->maximum, (int)count, "a rank that loads a checkpoint");
}

/* ---- all of it ---- */

static an_status load_rounds(loading *l) {
    an_status status;
    const an_route *r = l->route;
    size_t first = 0, count = 0; /* of the last round */
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): ranks come here only if all have a route */
    for (int64_t round = 0; first + count < r->count || reads(l); round++) {
        char *chunk = l->chunks + round % 2 * l->chunk;
        if (reads(l)) read_next(l, chunk);
        AN_TRY(end_round(l, first, count));
        first += count;
        count = first < r->count && r->transfers[first].round == round ? an_route_round(r, first) : 0;
        AN_TRY(begin_round(l, first, count, chunk));
    }
    AN_TRY(end_round(l, first, count));
    return l->status == AN_OK ? check_others(l) : l->status;
fail:
    an_comm_cancel(l->comm, r->requests, (int)(2 * r->maximum));
    return status;
}

an_status an_checkpoint_load_ranks(an_context *ctx, an_params *params, const an_graph *graph,
                                   const an_manifest *manifest, const char *folder, int64_t chunk) {
    an_status status;
    loading l = {.ctx = ctx,
                 .comm = an_axis_comm(ctx, AN_AXIS_DATA),
                 .params = params,
                 .manifest = manifest,
                 .folder = folder,
                 .chunk = chunk ? chunk : CHUNK};
    AN_TRY(an_ranks_agree(ctx, prepare(&l, graph)));
    params->average.begun = params->average.flat != NULL; /* the tensors of an average go to its own memory */
    an_comm_enter(ctx, l.comm, "load of a checkpoint", an_save_layout_bytes(&l.files));
    AN_TRY(an_ranks_agree(ctx, load_rounds(&l)));
    params->version++;
    status = AN_OK;
fail:
    release(&l);
    return status;
}
