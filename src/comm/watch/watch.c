#define _GNU_SOURCE /* MAP_ANONYMOUS, pthread_setname_np; NOLINT(bugprone-reserved-identifier) */
#include "comm/watch/watch.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"
#include "base/system/clock.h"
#include "base/system/thread.h"
#include "comm/watch/watch_inside.h"

enum {
    LOOKS = 10,  /* in the time after which is reported */
    LATE = 5,    /* looks: a longer pause was one of this process, and says nothing about others */
    PENDING = 16 /* connections that have not shown the key yet, at most */
};
static const double longest_interval = 1, shortest_interval = 0.02; /* seconds from look to look */
static const double least_patience = 0.5;                           /* with somebody who connects */

/* ---- the thread ---- */

/* Looks at this rank itself, and measures how long nothing has changed. */
static void look_at_self(an_watch_thread *w) {
    an_watch_entry *e = &w->entries[w->setup.rank];
    const an_rank_state before = e->state;
    an_rank_state *s = &e->state;
    const double clock = an_clock_seconds(), gap = clock - w->looked;
    const double passed = gap < LATE * w->interval ? gap : w->interval;
    w->looked = clock;
    w->now += passed;
    e->heard = w->now;
    w->setup.look(w->setup.look_user, s);
    const bool moves = s->beats != before.beats || s->collectives != before.collectives || s->hash != before.hash;
    s->still = moves ? 0 : before.still + an_watch_milliseconds(passed);
    const bool same_wait = s->waits && before.waits && s->owner_beats == before.owner_beats &&
                           s->collectives == before.collectives && !strcmp(s->waits_for, before.waits_for);
    s->waited = same_wait ? before.waited + an_watch_milliseconds(passed) : 0;
}

static bool wait_for_something(an_watch_thread *w, double seconds) {
    int count = 0;
    const an_watch_connection *const others[] = {&w->above, &w->trial, &w->supervisor};
    w->polled[count++] = (struct pollfd){.fd = w->ending, .events = POLLIN};
    /* While all places are taken, who connects waits for one. */
    w->polled[count++] =
        (struct pollfd){.fd = w->below_count < w->most_below ? w->setup.listener : -1, .events = POLLIN};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const short events = an_channel_events(&others[i]->channel);
        w->polled[count++] = (struct pollfd){.fd = events ? others[i]->channel.socket : -1, .events = events};
    }
    for (int i = 0; i < w->below_count; i++)
        w->polled[count++] =
            (struct pollfd){.fd = w->below[i].channel.socket, .events = an_channel_events(&w->below[i].channel)};
    poll(w->polled, (nfds_t)count, (int)(seconds * AN_WATCH_MILLISECONDS) + 1);
    return !(w->polled[0].revents & POLLIN);
}

static void *watch(void *given) {
    an_watch_thread *w = given;
    pthread_setname_np(pthread_self(), "anneal-watch");
    double next = w->looked;
    do {
        an_watch_look_at_peers(w);
        const double clock = an_clock_seconds();
        if (clock < next) continue;
        next = clock + w->interval;
        look_at_self(w);
        an_watch_send_states(w);
        an_watch_find_dead(w);
        an_watch_decide(w);
    } while (wait_for_something(w, next > an_clock_seconds() ? next - an_clock_seconds() : 0));
    w->entries[w->setup.rank].state.left = 1;
    an_watch_send_states(w);
    return NULL;
}

/* ---- its beginning and end ---- */

/* Who may connect here: ranks of this host and first ranks of others. */
static int count_below(const an_watch_setup *setup) {
    int count = PENDING;
    for (int32_t r = 0; r < setup->ranks; r++)
        count += setup->addresses[r].leader == setup->addresses[setup->rank].leader || setup->addresses[r].leader == r;
    return count;
}

/* Rank 0 expects to hear of every rank; others learn whom they know. */
static void begin_entries(an_watch_thread *w) {
    an_watch_entry *own = an_watch_note(w, w->setup.rank);
    own->state.process = (int32_t)getpid();
    gethostname(own->state.host, sizeof own->state.host - 1);
    if (w->setup.rank != 0) return;
    for (int32_t r = 1; r < w->setup.ranks; r++) {
        const int32_t leader = w->setup.addresses[r].leader;
        an_watch_note(w, r)->via = leader == 0 ? r : leader;
    }
}

an_status an_watch_listen(an_context *ctx, bool other_hosts, int *listener, uint16_t *port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(other_hosts ? INADDR_ANY : INADDR_LOOPBACK)}};
    *listener = an_channel_listen(&address);
    if (*listener < 0)
        return AN_ERROR(ctx, AN_ERR_FILE, "cannot listen for the watches of other ranks: %s", strerrordesc_np(errno));
    *port = address.sin_port;
    return AN_OK;
}

static void *place_in(char **at, size_t count, size_t element) {
    enum { ALIGNMENT = 64 };
    void *place = *at;
    *at += (count * element + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return place;
}

/* All of the block, or (NULL) its size alone. */
static size_t place_all(an_watch_thread *w, char *block, const an_watch_setup *setup, int below) {
    char *at = block;
    const size_t ranks = (size_t)setup->ranks, some = (size_t)below;
    enum { OTHERS = 5 }; /* descriptors besides those below */
    an_watch_thread own;
    if (!w) w = &own;
    place_in(&at, 1, sizeof *w);
    w->entries = place_in(&at, ranks, sizeof *w->entries);
    w->known = place_in(&at, ranks, sizeof *w->known);
    w->listed = place_in(&at, ranks, sizeof *w->listed);
    w->below = place_in(&at, some, sizeof *w->below);
    w->polled = place_in(&at, some + OTHERS, sizeof *w->polled);
    w->setup.addresses = place_in(&at, ranks, sizeof *setup->addresses);
    return (size_t)(at - block);
}

static int start_thread(an_watch_thread *w) {
    return an_thread_start(&w->thread, watch, w);
}

/* The block is the system's own memory: the larger part of it is never touched by most ranks, and then costs
 * nothing. */
an_status an_watch_start(an_watch_thread **watch_thread, an_context *ctx, const an_watch_setup *setup) {
    an_status status;
    const int below = count_below(setup);
    const size_t bytes = place_all(NULL, NULL, setup, below);
    an_watch_thread *w = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w == MAP_FAILED) {
        close(setup->listener);
        return AN_ERROR(ctx, AN_ERR_MEMORY, "not enough memory for the watch of %d ranks", setup->ranks);
    }
    w->setup = *setup;
    w->bytes = bytes;
    place_all(w, (char *)w, setup, below);
    memcpy((void *)(uintptr_t)w->setup.addresses, setup->addresses, (size_t)setup->ranks * sizeof *setup->addresses);
    const double interval = setup->report_after > 0 ? setup->report_after / LOOKS : longest_interval;
    w->interval = interval < shortest_interval  ? shortest_interval
                  : interval > longest_interval ? longest_interval
                                                : interval;
    w->patience = 2 * w->interval > least_patience ? 2 * w->interval : least_patience;
    w->most_below = below;
    w->chosen = w->tried = -1;
    w->process = getpid();
    w->looked = an_clock_seconds();
    w->now = w->interval;
    begin_entries(w);
    an_watch_find_candidates(w);
    w->is_alone = w->candidate_count == 0;
    w->ending = eventfd(0, EFD_CLOEXEC);
    AN_CHECK(ctx, w->ending >= 0, AN_ERR_FILE, "the watch of the ranks cannot start: %s", strerrordesc_np(errno));
    const int error = start_thread(w);
    AN_CHECK(ctx, error == 0, AN_ERR_FILE, "the watch of the ranks cannot start a thread: %s", strerrordesc_np(error));
    *watch_thread = w;
    return AN_OK;
fail:
    close(setup->listener);
    if (w->ending >= 0) close(w->ending);
    munmap(w, bytes);
    return status;
}

/* In a child of the process that started it there is no thread to wait for. */
void an_watch_stop(an_watch_thread **watch_thread) {
    an_watch_thread *w = *watch_thread;
    *watch_thread = NULL;
    if (!w) return;
    if (w->process == getpid()) {
        const uint64_t one = 1;
        if (write(w->ending, &one, sizeof one) == sizeof one) pthread_join(w->thread, NULL);
        an_watch_close(w);
        close(w->setup.listener);
        close(w->ending);
    }
    munmap(w, w->bytes);
}
