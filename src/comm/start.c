/* What ranks settle when their contexts begin: instructions, threads and shared memory. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/structs.h"
#include "comm/mesh.h"
#include "comm/window.h"
#include "launch/rank_threads.h"

/* ---- instructions and hosts ---- */

typedef struct {
    int32_t isa, hosts;
    int32_t minimum, maximum; /* ranks of a host */
    int32_t apart;            /* ranks that are not where they would be if those of a host were neighbours */
} machine_record;

static void merge_machines(void *user, void *record, const void *next) {
    machine_record *a = record;
    const machine_record *b = next;
    (void)user;
    if (b->isa < a->isa) a->isa = b->isa;
    a->hosts += b->hosts;
    if (b->minimum < a->minimum) a->minimum = b->minimum;
    if (b->maximum > a->maximum) a->maximum = b->maximum;
    a->apart += b->apart;
}

static an_status agree_on_level(an_context *ctx, an_isa given) {
    an_comm *comm = ctx->mesh->comm;
    const an_comm *host = ctx->mesh->host;
    machine_record record = {.isa = (int32_t)ctx->isa,
                             .hosts = host->rank == 0,
                             .minimum = host->ranks,
                             .maximum = host->ranks,
                             .apart = comm->rank % host->ranks != host->rank},
                   received;
    const an_comm_merger merger = {.bytes = sizeof record,
                                   .merge = merge_machines,
                                   .received = &received,
                                   .what = "start: the instruction sets of all ranks"};
    AN_TRY_RETURN(an_comm_merge(ctx, comm, &merger, &record));
    ctx->mesh->hosts = record.hosts;
    ctx->mesh->group_ranks = record.minimum == record.maximum && record.apart == 0 ? record.minimum : 0;
    if (given == AN_ISA_AUTO && record.isa >= AN_ISA_BASE && record.isa < (int32_t)ctx->isa)
        ctx->isa = (an_isa)record.isa;
    return AN_OK;
}

/* Ranks with the same place on their hosts, for a state that each host has. */
static an_status make_replicas(an_context *ctx) {
    an_mesh *mesh = ctx->mesh;
    if (mesh->group_ranks <= 1 || mesh->hosts <= 1) return AN_OK;
    const an_status status = mesh->comm->split(mesh->comm, mesh->host->rank, &mesh->replicas);
    if (status != AN_OK || !mesh->replicas)
        return AN_ERROR(ctx, status == AN_OK ? AN_ERR_ARGUMENT : status,
                        "the communicator could not be divided among hosts: %s (%s)",
                        status == AN_OK ? "split gave none" : mesh->comm->note, mesh->comm->name);
    mesh->axes[AN_AXIS_REPLICA] = mesh->replicas;
    return AN_OK;
}

/* ---- threads ---- */

/* What the first rank of a host tells each of the others. */
typedef struct {
    int32_t threads, host_threads, host_processors;
} thread_answer;

/* omp_get_max_threads is what OMP_NUM_THREADS or the host program says, or else the processors of the affinity mask:
 * then the number was left to us. */
static int given_threads(const an_context_options *options) {
    if (options->threads > 0) return options->threads;
    if (getenv("OMP_NUM_THREADS") || omp_get_max_threads() != omp_get_num_procs()) /* NOLINT(concurrency-mt-unsafe) */
        return omp_get_max_threads();
    return 0;
}

/* The first rank of the host, which has the places of all. O(ranks of the host). */
static an_status answer_all(an_context *ctx, an_rank_place *places, thread_answer *own) {
    static const char what[] = "start: the threads of this host's ranks";
    an_comm *host = ctx->mesh->host;
    thread_answer answer = {0};
    for (int rank = 1; rank < host->ranks; rank++)
        AN_TRY_RETURN(an_comm_receive_all(ctx, host, &places[rank], sizeof *places, rank, AN_TAG_START, what));
    answer.host_processors = an_rank_processors(places, host->ranks);
    for (int rank = 0; rank < host->ranks; rank++) answer.host_threads += an_rank_threads(places, host->ranks, rank);
    for (int rank = host->ranks - 1; rank >= 0; rank--) {
        answer.threads = an_rank_threads(places, host->ranks, rank);
        if (rank == 0)
            *own = answer;
        else
            AN_TRY_RETURN(an_comm_send_all(ctx, host, &answer, sizeof answer, rank, AN_TAG_START, what));
    }
    return AN_OK;
}

static an_status ask_first(an_context *ctx, const an_rank_place *place, thread_answer *own) {
    static const char what[] = "start: the number of threads from the first rank of this host";
    an_comm *host = ctx->mesh->host;
    AN_TRY_RETURN(an_comm_send_all(ctx, host, place, sizeof *place, 0, AN_TAG_START, what));
    AN_TRY_RETURN(an_comm_receive_all(ctx, host, own, sizeof *own, 0, AN_TAG_START, what));
    return AN_OK;
}

static an_status agree_on_threads(an_context *ctx, const an_context_options *options) {
    an_status status;
    const size_t ranks = (size_t)ctx->mesh->host->ranks;
    an_rank_place *places = NULL;
    thread_answer answer = {0};
    AN_TRY(an_alloc(ctx, (void **)&places, ranks, sizeof *places));
    an_rank_place_read(places, "");
    places->given = given_threads(options);
    if (ctx->mesh->host->rank == 0)
        AN_TRY(answer_all(ctx, places, &answer));
    else
        AN_TRY(ask_first(ctx, places, &answer));
    ctx->mesh->host_threads = answer.host_threads;
    ctx->mesh->host_processors = answer.host_processors;
    const bool crowded = answer.host_threads > answer.host_processors;
    an_context_set_threads(ctx, answer.threads > 0 ? answer.threads : 1, crowded);
    if (crowded && places->given > 0 && ctx->mesh->host->rank == 0)
        an_log_write(ctx, AN_LOG_WARNING, "%d threads of %d ranks share %d cores of this host", answer.host_threads,
                     ctx->mesh->host->ranks, answer.host_processors);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&places, ranks, sizeof *places);
    return status;
}

an_status an_start_agree(an_context *ctx, const an_context_options *given) {
    an_context_options options;
    AN_TRY_RETURN(an_context_options_read(ctx, &options, given));
    AN_TRY_RETURN(agree_on_level(ctx, options.isa));
    AN_TRY_RETURN(make_replicas(ctx));
    AN_TRY_RETURN(an_window_ranks(ctx, &ctx->mesh->host_ranks));
    return agree_on_threads(ctx, &options);
}
