/* Options of a gathering that cannot be meant, before anything is made of them. */
#include "base/integer.h"
#include "base/memory.h"
#include "comm/gather_inside.h"

static an_status check_run(an_context *ctx, const an_gather_options *o, const an_gather_unit *unit,
                           const an_gather_run *run, bool is_windowed) {
    an_status status;
    int64_t bytes, end;
    AN_CHECK(ctx,
             unit->pages.begin <= run->pages.begin && run->pages.begin < run->pages.end &&
                 run->pages.end <= unit->pages.end,
             AN_ERR_ARGUMENT, "unit %s has pages %lld to %lld, and a run of it %lld to %lld", unit->name,
             (long long)unit->pages.begin, (long long)unit->pages.end, (long long)run->pages.begin,
             (long long)run->pages.end);
    AN_CHECK(ctx, run->channel >= 0 && run->channel < AN_GATHER_CHANNELS, AN_ERR_ARGUMENT,
             "a run of unit %s is in channel %d of %d", unit->name, run->channel, (int)AN_GATHER_CHANNELS);
    const size_t page_bytes = o->page_bytes[run->channel], at = o->window_at[run->channel];
    AN_CHECK(ctx, page_bytes > 0 && page_bytes <= AN_COMM_MAX_BYTES, AN_ERR_ARGUMENT,
             "channel %d has pages of %zu bytes", run->channel, page_bytes);
    AN_CHECK(ctx,
             run->src_at >= 0 && run->dst_at >= 0 &&
                 an_multiply_i64(run->pages.end - run->pages.begin, (int64_t)page_bytes, &bytes) &&
                 an_add_i64(bytes, an_larger(run->src_at, run->dst_at), &end),
             AN_ERR_ARGUMENT, "a run of unit %s begins at byte %lld of src and %lld of dst", unit->name,
             (long long)run->src_at, (long long)run->dst_at);
    if (!is_windowed) return AN_OK;
    AN_CHECK(ctx,
             at % AN_ALIGNMENT == 0 && at <= o->window->bytes &&
                 (uint64_t)(run->src_at + bytes) <= o->window->bytes - at,
             AN_ERR_ARGUMENT, "a run of unit %s ends at byte %lld of what begins at byte %zu of a window of %zu",
             unit->name, (long long)(run->src_at + bytes), at, o->window->bytes);
    return AN_OK;
fail:
    return status;
}

an_status an_gather_check(an_context *ctx, const an_comm *comm, const an_gather_options *options) {
    an_status status;
    const an_gather_options *o = options;
    const bool is_windowed = an_gather_is_windowed(o, comm);
    AN_CHECK(ctx, ctx->device == &an_device_host, AN_ERR_UNSUPPORTED,
             "ranks can gather weights only in the memory of the host");
    AN_CHECK(ctx, o->in_flight >= 0 && o->in_flight <= AN_GATHER_MOST_IN_FLIGHT, AN_ERR_ARGUMENT,
             "%d units in flight; at most %d", o->in_flight, AN_GATHER_MOST_IN_FLIGHT);
    AN_CHECK(ctx, o->message_bytes <= AN_COMM_MAX_BYTES, AN_ERR_ARGUMENT, "messages have %zu bytes; they may have %zu",
             o->message_bytes, AN_COMM_MAX_BYTES);
    AN_CHECK(ctx, !is_windowed || o->window->host->rank == comm->rank, AN_ERR_ARGUMENT,
             "rank %d is rank %d of its host, whose ranks are not those that gather", comm->rank,
             o->window->host->rank);
    AN_CHECK(ctx,
             !is_windowed || (o->head_at % _Alignof(an_gather_head) == 0 && o->head_at <= o->window->bytes &&
                              sizeof(an_gather_head) <= o->window->bytes - o->head_at),
             AN_ERR_ARGUMENT, "the head is at byte %zu of a window of %zu", o->head_at, o->window->bytes);
    for (int i = 0; i < o->unit_count; i++) {
        const an_gather_unit *unit = &o->units[i];
        AN_CHECK(ctx, unit->pages.begin >= 0 && unit->pages.begin < unit->pages.end, AN_ERR_ARGUMENT,
                 "unit %s has pages %lld to %lld", unit->name, (long long)unit->pages.begin,
                 (long long)unit->pages.end);
        for (int run = 0; run < unit->run_count; run++) AN_TRY(check_run(ctx, o, unit, &unit->runs[run], is_windowed));
    }
    return AN_OK;
fail:
    return status;
}
