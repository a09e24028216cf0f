/* Records of all ranks in one: a binomial tree up to rank 0 and down again. */
#include "base/status.h"
#include "comm/binomial.h"
#include "comm/comm.h"

int64_t an_comm_merge_sends(int rank, int ranks, size_t bytes) {
    int children[AN_BINOMIAL_CHILDREN];
    return (int64_t)bytes * (an_binomial_children(rank, ranks, children) + (rank > 0));
}

static int tag_of(const an_comm_merger *m) {
    return m->tag ? m->tag : AN_TAG_RECORD + (int)(m->bytes / sizeof(int64_t) % AN_TAG_RECORDS);
}

static an_status receive(an_context *ctx, an_comm *comm, const an_comm_merger *m, void *record, int from) {
    an_comm_request request;
    AN_TRY_RETURN(an_comm_receive(ctx, comm, record, m->bytes, from, tag_of(m), &request));
    AN_TRY_RETURN(an_comm_wait(ctx, comm, &request, 1, m->what));
    return AN_OK;
}

an_status an_comm_merge(an_context *ctx, an_comm *comm, const an_comm_merger *m, void *record) {
    int children[AN_BINOMIAL_CHILDREN];
    an_comm_request requests[AN_BINOMIAL_CHILDREN];
    an_status status = AN_OK;
    int sent = 0;
    const int count = an_binomial_children(comm->rank, comm->ranks, children);
    AN_TRY_RETURN(an_comm_check(ctx)); /* one rank alone sends nothing that would tell */
    an_comm_enter(ctx, comm, m->what, m->bytes);
    for (int i = 0; i < count; i++) {
        AN_TRY_RETURN(receive(ctx, comm, m, m->received, children[i]));
        m->merge(m->user, record, m->received);
    }
    if (comm->rank == 0) {
        if (m->decide) m->decide(m->user, record);
    } else {
        AN_TRY_RETURN(
            an_comm_send(ctx, comm, record, m->bytes, an_binomial_parent(comm->rank), tag_of(m), &requests[0]));
        AN_TRY_RETURN(an_comm_wait(ctx, comm, &requests[0], 1, m->what));
        AN_TRY_RETURN(receive(ctx, comm, m, record, an_binomial_parent(comm->rank)));
    }
    /* Farthest first: it has the most ranks below it. */
    while (sent < count) {
        AN_TRY(an_comm_send(ctx, comm, record, m->bytes, children[count - 1 - sent], tag_of(m), &requests[sent]));
        sent++;
    }
    AN_TRY_RETURN(an_comm_wait(ctx, comm, requests, sent, m->what));
    return AN_OK;
fail:
    an_comm_cancel(comm, requests, sent);
    return status;
}
