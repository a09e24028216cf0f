/* How the watches of all ranks begin: each opens a socket, the communicator carries the addresses and the key, and
 * from then on it is not needed. */
#define _GNU_SOURCE /* getifaddrs; NOLINT(bugprone-reserved-identifier) */
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/watch.h"
#include "base/files/regular.h"
#include "base/guard.h"
#include "base/heartbeat.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "comm/structs.h"
#include "comm/watch/watch.h"

struct an_watch {
    an_context *ctx;
    an_watch_options options;
    an_watch_thread *thread;
};

/* ---- what the thread reads and calls ---- */

static void look(const void *user, an_rank_state *state) {
    const an_watch *w = user;
    an_heartbeat heartbeat;
    an_comm_progress progress;
    an_heartbeat_read(w->ctx->heartbeat, &heartbeat);
    an_comm_progress_read(w->ctx, &progress);
    state->beats = heartbeat.beats;
    state->owner_beats = heartbeat.slots[AN_HEARTBEAT_OWNER].beats;
    state->step = heartbeat.step;
    state->collectives = progress.collectives;
    state->hash = progress.hash;
    state->bytes = progress.bytes;
    state->waits = progress.waits != 0;
    memcpy(state->place, heartbeat.slots[AN_HEARTBEAT_OWNER].text, sizeof state->place);
    memcpy(state->kind, progress.kind, sizeof state->kind);
    memcpy(state->waits_for, progress.waits_for, sizeof state->waits_for);
}

static void pass_on(void *user, an_rank_message_kind kind, const char *text, bool is_told) {
    static const an_watch_event events[] = {
        [AN_RANK_STALL] = AN_WATCH_STALL, [AN_RANK_GOES_ON] = AN_WATCH_GOES_ON, [AN_RANK_TIMEOUT] = AN_WATCH_TIMEOUT};
    const an_watch *w = user;
    if (w->options.report) w->options.report(w->options.user, events[kind], text, is_told);
}

/* Launchers may not notice, or wait for the others to end, and these would wait for the dead one. */
static void lose(void *user, const an_rank_state *state) {
    const an_watch *w = user;
    an_comm_lose(w->ctx, state->rank, state->step, state->place);
}

/* ---- hosts ---- */

/* Ranks with the same number reach each other over the loopback, and know each other's processes: the same running
 * system, and the same network and processes of it, which containers may have of their own. */
static uint64_t host_number(void) {
    static const an_siphash_key plain = {{0}};
    struct {
        char boot[40];
        uint64_t network, processes;
    } host;
    struct stat found;
    memset(&host, 0, sizeof host);
    FILE *file = an_regular_read("/proc/sys/kernel/random/boot_id");
    if (!file || !fgets(host.boot, sizeof host.boot, file)) gethostname(host.boot, sizeof host.boot - 1);
    if (file) fclose(file);
    if (stat("/proc/self/ns/net", &found) == 0) host.network = (uint64_t)found.st_ino;
    if (stat("/proc/self/ns/pid", &found) == 0) host.processes = (uint64_t)found.st_ino;
    return an_siphash(&plain, &host, sizeof host);
}

static void find_addresses(an_watch_address *own) {
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return;
    for (const struct ifaddrs *i = all; i && own->count < AN_WATCH_PLACES; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) &&
            !(i->ifa_flags & IFF_LOOPBACK)) {
            struct sockaddr_in address;
            memcpy(&address, i->ifa_addr, sizeof address);
            own->places[own->count++] = address.sin_addr.s_addr;
        }
    freeifaddrs(all);
}

/* Whether all ranks are on one host, and are ready. */
typedef struct {
    uint64_t host;
    uint64_t differ;
    int64_t failed; /* the first rank that is not; -1: none */
} host_record;

static void merge_hosts(void *user, void *record, const void *next) {
    host_record *a = record;
    const host_record *b = next;
    (void)user;
    a->differ |= b->differ | (a->host != b->host);
    if (a->failed < 0) a->failed = b->failed;
}

/* A rank that has failed so far takes part too, or the others would wait for it. */
static an_status ask_hosts(an_context *ctx, an_comm *comm, an_status status, uint64_t host, bool *differ) {
    host_record record = {.host = host, .failed = status == AN_OK ? -1 : comm->rank}, received;
    const an_comm_merger merger = {
        .bytes = sizeof record, .merge = merge_hosts, .received = &received, .what = "start: the hosts of all ranks"};
    if (status == AN_OK || comm->ranks > 1) {
        an_error own = ctx->error;
        const an_status merged = an_comm_merge(ctx, comm, &merger, &record);
        if (status != AN_OK) ctx->error = own;
        if (status == AN_OK) AN_TRY_RETURN(merged);
    }
    *differ = record.differ != 0;
    if (status != AN_OK || record.failed < 0) return status;
    return AN_ERROR(ctx, AN_ERR_STATE, "the ranks cannot be watched: rank %lld could not begin its watch",
                    (long long)record.failed);
}

/* ---- addresses ---- */

/* One for each rank. O(ranks), once; each rank fills in its own. */
typedef struct {
    uint64_t host;
    an_watch_address address; /* port 0: of another rank, or of one that cannot listen */
} row;

typedef struct {
    an_siphash_key key;
    row rows[];
} table;

static void merge_tables(void *user, void *record, const void *next) {
    const int ranks = *(const int *)user;
    table *a = record;
    const table *b = next;
    for (int rank = 0; rank < ranks; rank++)
        if (b->rows[rank].host) a->rows[rank] = b->rows[rank];
}

/* The first rank of each host. O(ranks · hosts), at rank 0 alone. */
static void find_leaders(void *user, void *record) {
    const int ranks = *(const int *)user;
    table *t = record;
    for (int rank = 0; rank < ranks; rank++) {
        int leader = 0;
        while (leader < rank &&
               (t->rows[leader].address.leader != leader || t->rows[leader].host != t->rows[rank].host))
            leader++;
        t->rows[rank].address.leader = leader;
    }
}

static an_status check_table(an_context *ctx, const table *t, int ranks) {
    for (int rank = 0; rank < ranks; rank++) {
        const an_watch_address *a = &t->rows[rank].address;
        if (!a->port) return AN_ERROR(ctx, AN_ERR_FILE, "the ranks cannot be watched: rank %d has no socket", rank);
        if (a->leader < 0 || a->leader > rank || a->count > AN_WATCH_PLACES)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the ranks cannot be watched: the address of rank %d is damaged",
                            rank);
    }
    return AN_OK;
}

/* Everything that a rank needs for itself. */
typedef struct {
    an_watch *watch;
    table *tables; /* its own and a received one */
    size_t bytes;  /* of one */
    an_watch_address *addresses;
    an_watch_setup setup;
} beginning;

/* Fills the addresses and the key of the setup, which has a listener then. */
static an_status exchange(an_context *ctx, an_comm *comm, beginning *b, uint64_t host, bool differ) {
    int ranks = comm->ranks;
    row *mine = &b->tables->rows[comm->rank];
    mine->host = host;
    /* Whoever cannot listen says so to all, and all return. */
    if (an_watch_listen(ctx, differ, &b->setup.listener, &mine->address.port) != AN_OK) mine->address.port = 0;
    if (differ) find_addresses(&mine->address);
    if (comm->rank == 0 && !an_channel_key_make(&b->tables->key)) mine->address.port = 0;
    const an_comm_merger merger = {.bytes = b->bytes,
                                   .merge = merge_tables,
                                   .decide = find_leaders,
                                   .user = &ranks,
                                   .received = (char *)b->tables + b->bytes,
                                   .what = "start: the addresses of the ranks' watches"};
    AN_TRY_RETURN(an_comm_merge(ctx, comm, &merger, b->tables));
    AN_TRY_RETURN(check_table(ctx, b->tables, ranks));
    for (int rank = 0; rank < ranks; rank++) b->addresses[rank] = b->tables->rows[rank].address;
    b->setup.key = b->tables->key;
    b->setup.addresses = b->addresses;
    return AN_OK;
}

/* ---- public ---- */

static an_status check_options(an_context *ctx, const an_watch_options *o, an_watch_setup *setup) {
    if (!ctx->heartbeat)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "a watch reads the context's heartbeat, and it has none: set an_context_options.heartbeat");
    if (!(o->report_after >= 0 && o->report_after < INFINITY && o->timeout >= 0 && o->timeout < INFINITY))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "report_after and timeout of a watch are 0 seconds or more");
    if (o->supervisor && !an_rank_supervisor_read(o->supervisor, &setup->supervisor, &setup->supervisor_key))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "'%s' is not the address of a supervisor", o->supervisor);
    return AN_OK;
}

static an_status prepare(an_context *ctx, const an_comm *comm, const an_watch_options *options, beginning *b) {
    const size_t ranks = (size_t)comm->ranks;
    AN_TRY_RETURN(an_context_check_process(ctx));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&b->watch, 1, sizeof *b->watch));
    b->watch->ctx = ctx;
    AN_TRY_RETURN(an_watch_options_read(ctx, &b->watch->options, options));
    AN_TRY_RETURN(check_options(ctx, &b->watch->options, &b->setup));
    b->setup.report_after = b->watch->options.report_after;
    b->setup.timeout = b->watch->options.timeout;
    b->setup.look_user = b->setup.report_user = b->watch;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&b->tables, 2, b->bytes));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&b->addresses, ranks, sizeof *b->addresses));
    return AN_OK;
}

an_status an_watch_create(an_watch **watch, an_context *ctx, const an_watch_options *options) {
    AN_GUARD;
    AN_NEED_IN(ctx, watch, ctx);
    an_status status;
    bool differ;
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    const size_t ranks = (size_t)comm->ranks;
    const uint64_t host = host_number() | 1; /* 0 in a table: not filled in */
    beginning b = {
        .bytes = sizeof(table) + ranks * sizeof(row),
        .setup = {
            .rank = comm->rank, .ranks = comm->ranks, .listener = -1, .look = look, .report = pass_on, .died = lose}};
    AN_TRY(ask_hosts(ctx, comm, prepare(ctx, comm, options, &b), host, &differ));
    AN_TRY(exchange(ctx, comm, &b, host, differ));
    status = an_watch_start(&b.watch->thread, ctx, &b.setup);
    b.setup.listener = -1;
    AN_TRY(status);
    if (b.setup.timeout > 0) an_comm_set_timeout(ctx, b.setup.timeout);
    *watch = b.watch;
    b.watch = NULL;
fail:
    if (b.setup.listener >= 0) close(b.setup.listener);
    an_release(ctx, (void **)&b.tables, 2, b.bytes);
    an_release(ctx, (void **)&b.addresses, ranks, sizeof *b.addresses);
    an_release(ctx, (void **)&b.watch, 1, sizeof *b.watch);
    return status;
}

void an_watch_destroy(an_watch **watch) {
    if (!watch || !*watch) return;
    an_context *ctx = (*watch)->ctx;
    an_watch_stop(&(*watch)->thread);
    an_release(ctx, (void **)watch, 1, sizeof **watch);
}
