/* Options of a scattering that cannot be meant, before anything is made of them. */
#include <limits.h>

#include "base/status.h"
#include "comm/scatter_inside.h"

static an_status check_units(an_context *ctx, const an_scatter_options *o) {
    an_status status;
    for (int i = 0; i < o->unit_count; i++) {
        const an_page_range *pages = &o->units[i].pages;
        AN_CHECK(ctx, pages->begin >= 0 && pages->begin < pages->end && pages->end <= o->pages, AN_ERR_ARGUMENT,
                 "unit %s has pages %lld to %lld of %lld", o->units[i].name, (long long)pages->begin,
                 (long long)pages->end, (long long)o->pages);
        AN_CHECK(ctx, i == 0 || o->units[i - 1].pages.end <= pages->begin, AN_ERR_ARGUMENT,
                 "unit %s begins at page %lld, and the one before it ends at %lld", o->units[i].name,
                 (long long)pages->begin, (long long)o->units[i - 1].pages.end);
    }
    return AN_OK;
fail:
    return status;
}

an_status an_scatter_check(an_context *ctx, const an_comm *comm, const an_scatter_options *options) {
    an_status status;
    const an_scatter_options *o = options;
    const an_leaf_range *l = &o->leaves;
    AN_CHECK(ctx, ctx->device == &an_device_host, AN_ERR_UNSUPPORTED,
             "ranks can add gradients only in the memory of the host");
    AN_CHECK(ctx, o->dtype == AN_DTYPE_F32 || o->dtype == AN_DTYPE_F64, AN_ERR_DTYPE,
             "gradients of ranks are f32 or f64");
    AN_CHECK(ctx, !o->is_bf16 || o->dtype == AN_DTYPE_F32, AN_ERR_DTYPE,
             "gradients that travel as bf16 are added in f32");
    AN_CHECK(ctx, l->begin >= 0 && l->begin < l->end && l->end <= l->leaves && l->leaves <= AN_MOST_LEAVES,
             AN_ERR_ARGUMENT, "leaves %lld to %lld of %lld", (long long)l->begin, (long long)l->end,
             (long long)l->leaves);
    AN_CHECK(ctx, o->bucket_bytes <= AN_COMM_MAX_BYTES, AN_ERR_ARGUMENT, "buckets have %zu bytes; they may have %zu",
             o->bucket_bytes, AN_COMM_MAX_BYTES);
    AN_CHECK(ctx, o->in_flight >= 0 && o->in_flight <= AN_MOST_IN_FLIGHT, AN_ERR_ARGUMENT,
             "%d buckets in flight; at most %d", o->in_flight, AN_MOST_IN_FLIGHT);
    AN_CHECK(ctx, comm->ranks <= INT_MAX / 4, AN_ERR_OVERFLOW, "a bucket has %d messages each way", comm->ranks - 1);
    AN_TRY(check_units(ctx, o));
    return AN_OK;
fail:
    return status;
}
