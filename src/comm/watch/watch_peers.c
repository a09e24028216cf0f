/* The connections of a watch: with the ranks that send their states here, with the one above, and with a supervisor. */
#include <unistd.h>

#include "comm/watch/watch_inside.h"

/* ---- what is known ---- */

an_watch_entry *an_watch_note(an_watch_thread *w, int32_t rank) {
    an_watch_entry *e = &w->entries[rank];
    if (e->known) return e;
    int at = w->known_count++;
    for (; at > 0 && w->known[at - 1] > rank; at--) w->known[at] = w->known[at - 1];
    w->known[at] = rank;
    e->known = true;
    e->via = rank;
    e->state.rank = rank;
    e->heard = w->now;
    return e;
}

/* How long ago a rank was heard of. What another passes on is only passed on if it is of interest, so else the
 * other's own word counts. */
uint32_t an_watch_silence(const an_watch_thread *w, const an_watch_entry *e) {
    if (e->state.rank == w->setup.rank) return 0;
    if (e->via == e->state.rank) return an_watch_milliseconds(w->now - e->heard);
    const uint32_t between = e->via == w->setup.rank ? 0 : an_watch_milliseconds(w->now - w->entries[e->via].heard);
    return between > e->passed ? between : e->passed;
}

/* ---- messages ---- */

static void send_state(an_watch_connection *c, const an_rank_state *state) {
    an_rank_message message = {.kind = AN_RANK_STATE};
    message.state = *state;
    if (an_channel_send(&c->channel, &message)) an_channel_turn(&c->channel);
}

/* `below`: the sender is one of those that send their states here, and may pass on what others say. A rank above
 * speaks for itself alone. */
static void take_message(an_watch_thread *w, an_watch_connection *c, an_rank_message *message, bool below) {
    const int32_t from = c->channel.peer;
    if (!an_rank_message_check(message, w->setup.ranks) || message->kind != AN_RANK_STATE ||
        message->state.rank == w->setup.rank || (!below && message->state.rank != from)) {
        an_channel_close(&c->channel, "it sent a message that makes no sense");
        return;
    }
    c->heard = w->now;
    an_watch_entry *e = an_watch_note(w, message->state.rank);
    /* A rank that was below the sender for some time, and has turned to another one since, is known better there. */
    if (message->state.rank != from && e->via != from && message->state.silent > an_watch_silence(w, e)) return;
    if (below && !e->below) e->was_of_interest = true; /* so that the rank above learns where it is now */
    e->state = message->state;
    e->via = from;
    e->heard = w->now;
    e->passed = message->state.silent;
    e->below = below;
    e->is_closed = false;
}

/* The other side closed a connection. It has turned to another rank, or is no more. */
static void note_closed(an_watch_thread *w, const an_watch_connection *c) {
    const int32_t peer = c->channel.peer;
    if (c->channel.state != AN_CHANNEL_CLOSED || peer < 0 || peer >= w->setup.ranks) return;
    w->entries[peer].is_closed = w->entries[peer].known && !w->entries[peer].state.left;
}

static void receive_all(an_watch_thread *w, an_watch_connection *c, bool below) {
    an_rank_message message;
    an_channel_turn(&c->channel);
    while (an_channel_receive(&c->channel, &message)) {
        take_message(w, c, &message, below);
        an_channel_turn(&c->channel);
    }
}

/* ---- ranks that send their states here ---- */

static void drop_below(an_watch_thread *w, int i) {
    note_closed(w, &w->below[i]);
    an_channel_close(&w->below[i].channel, "it is not needed any more");
    w->below[i] = w->below[--w->below_count];
}

/* Whoever connects must soon show that it has the key. A rank that comes again has lost its old connection. */
static void look_below(an_watch_thread *w) {
    for (int i = w->below_count - 1; i >= 0; i--) {
        an_watch_connection *c = &w->below[i];
        receive_all(w, c, true);
        const bool is_open = c->channel.state == AN_CHANNEL_OPEN, is_late = w->now - c->since > w->patience;
        bool is_replaced = false;
        for (int j = i + 1; is_open && j < w->below_count; j++)
            is_replaced = is_replaced || (w->below[j].channel.state == AN_CHANNEL_OPEN &&
                                          w->below[j].channel.peer == c->channel.peer && w->below[j].since >= c->since);
        if (c->channel.state == AN_CHANNEL_CLOSED || (!is_open && is_late) || is_replaced ||
            c->channel.peer >= w->setup.ranks)
            drop_below(w, i);
    }
}

static void accept_all(an_watch_thread *w) {
    while (w->below_count < w->most_below) {
        an_watch_connection *c = &w->below[w->below_count];
        if (!an_channel_accept(&c->channel, w->setup.listener, &w->setup.key, w->setup.rank)) return;
        c->since = c->heard = w->now;
        w->below_count++;
    }
}

/* ---- ranks above ---- */

/* This rank decides from now on. Ranks that were below it once may have turned to another, and come back: what is known
 * of them is too old to blame them. Those above that do not answer may never have done so: they are known from now on,
 * as silent since the last word from above, or nobody would be to blame. */
static void become_alone(an_watch_thread *w) {
    w->is_alone = true;
    for (int i = 0; i < w->candidate_count; i++) {
        const bool is_new = !w->entries[w->candidates[i].rank].known;
        an_watch_entry *e = an_watch_note(w, w->candidates[i].rank);
        if (is_new) e->heard = w->above.heard;
    }
    for (int i = 0; i < w->known_count; i++) {
        an_watch_entry *e = &w->entries[w->known[i]];
        if (!e->below) continue;
        e->via = e->state.rank;
        e->heard = w->now;
        e->state.still = e->state.waited = e->passed = 0;
    }
}

static void try_candidate(an_watch_thread *w, int number) {
    w->tried = number;
    w->trial.since = w->trial.heard = w->now;
    an_channel_connect(&w->trial.channel, &w->candidates[number].address, &w->setup.key, w->setup.rank);
}

/* Who does not answer is left. Who answers is kept, until a better one does. */
static void look_above(an_watch_thread *w) {
    const bool had_one = w->chosen >= 0;
    receive_all(w, &w->above, false);
    if (had_one && (w->above.channel.state != AN_CHANNEL_OPEN || w->now - w->above.heard > w->setup.report_after / 2)) {
        note_closed(w, &w->above);
        an_channel_close(&w->above.channel, "it does not answer");
        an_channel_close(&w->trial.channel, "another is tried");
        const int next = w->chosen + 1;
        w->chosen = w->tried = -1;
        if (next < w->candidate_count)
            try_candidate(w, next);
        else
            become_alone(w);
    }
    if (w->tried >= 0) {
        an_channel_turn(&w->trial.channel);
        if (w->trial.channel.state == AN_CHANNEL_OPEN) {
            an_channel_close(&w->above.channel, "a better one answers");
            w->above = w->trial;
            w->above.heard = w->now;
            w->chosen = w->tried;
            w->trial.channel.state = AN_CHANNEL_CLOSED; /* its socket is `above`'s now */
            w->is_alone = false;
            w->tried = -1;
        } else if (w->trial.channel.state == AN_CHANNEL_CLOSED || w->now - w->trial.since > w->patience) {
            const int next = w->tried + 1, end = w->chosen >= 0 ? w->chosen : w->candidate_count;
            an_channel_close(&w->trial.channel, "it does not answer");
            w->tried = -1;
            if (next < end)
                try_candidate(w, next);
            else if (w->chosen < 0 && !w->is_alone)
                become_alone(w);
        }
        if (w->tried < 0) w->next_round = w->now + w->setup.report_after / 2;
    } else if (w->chosen != 0 && w->candidate_count > 0 && w->now >= w->next_round) {
        try_candidate(w, 0);
    }
}

/* Only who decides has something to tell a supervisor, or who has reported something that has not ended. */
static void look_at_supervisor(an_watch_thread *w) {
    an_watch_connection *c = &w->supervisor;
    if (!w->setup.supervisor.sin_port || (!w->is_alone && w->reported.kind == AN_BLAME_NONE)) {
        an_channel_close(&c->channel, "another rank decides");
        return;
    }
    an_rank_message ignored;
    an_channel_turn(&c->channel);
    while (an_channel_receive(&c->channel, &ignored)) an_channel_turn(&c->channel);
    const bool waits = c->channel.state == AN_CHANNEL_CONNECTING || c->channel.state == AN_CHANNEL_GREETING;
    if (waits && w->now - c->since > w->patience) an_channel_close(&c->channel, "it does not answer");
    if (c->channel.state == AN_CHANNEL_CLOSED && (c->since == 0 || w->now - c->since > w->patience)) {
        c->since = w->now;
        an_channel_connect(&c->channel, &w->setup.supervisor, &w->setup.supervisor_key, w->setup.rank);
    }
}

/* ---- states ---- */

static bool is_of_interest(const an_watch_thread *w, const an_rank_state *s) {
    const uint32_t limit = an_watch_milliseconds(w->setup.report_after) / 4;
    return s->left || s->silent >= limit || s->still >= limit || s->waited >= limit;
}

void an_watch_send_states(an_watch_thread *w) {
    const an_rank_state *own = &w->entries[w->setup.rank].state;
    for (int i = 0; i < w->below_count; i++) send_state(&w->below[i], own);
    send_state(&w->supervisor, own);
    send_state(&w->above, own);
    for (int i = 0; i < w->known_count; i++) {
        an_watch_entry *e = &w->entries[w->known[i]];
        if (!e->below) continue;
        e->state.silent = an_watch_silence(w, e);
        const bool of_interest = is_of_interest(w, &e->state);
        if (of_interest || e->was_of_interest) send_state(&w->above, &e->state);
        e->was_of_interest = of_interest;
    }
}

void an_watch_look_at_peers(an_watch_thread *w) {
    accept_all(w);
    look_below(w);
    look_above(w);
    look_at_supervisor(w);
}

void an_watch_close(an_watch_thread *w) {
    an_watch_connection *const others[] = {&w->above, &w->trial, &w->supervisor};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) an_channel_close(&others[i]->channel, "the end");
    for (int i = 0; i < w->below_count; i++) an_channel_close(&w->below[i].channel, "the end");
}

/* ---- whom to turn to ---- */

static void add_candidates(an_watch_thread *w, int32_t rank) {
    const an_watch_address *to = &w->setup.addresses[rank];
    const bool is_near = to->leader == w->setup.addresses[w->setup.rank].leader;
    const int count = is_near ? 1 : to->count < AN_WATCH_PLACES ? to->count : AN_WATCH_PLACES;
    for (int i = 0; i < w->candidate_count; i++)
        if (w->candidates[i].rank == rank) return;
    for (int i = 0; rank != w->setup.rank && i < count && w->candidate_count < AN_WATCH_CANDIDATES; i++)
        w->candidates[w->candidate_count++] =
            (an_watch_candidate){rank,
                                 {.sin_family = AF_INET,
                                  .sin_port = to->port,
                                  .sin_addr = {is_near ? htonl(INADDR_LOOPBACK) : to->places[i]}}};
}

/* The first ranks of this host below this one, in order; who is the first itself turns to rank 0, to the second rank
 * there, and to the first ranks of the hosts before its own. If all of these hang, this rank decides, and so may
 * others: then several report the same. */
void an_watch_find_candidates(an_watch_thread *w) {
    enum { NEAR = 3, FAR = 3 };
    const an_watch_address *addresses = w->setup.addresses;
    const int32_t self = w->setup.rank, leader = addresses[self].leader;
    int near = 0, far = 0;
    for (int32_t r = leader; r < self && near < NEAR; r++)
        if (addresses[r].leader == leader) {
            add_candidates(w, r);
            near++;
        }
    if (self > 0) add_candidates(w, 0);
    if (leader != 0 && addresses[1].leader == 0) add_candidates(w, 1);
    for (int32_t r = 1; r < leader && far < FAR; r++)
        if (addresses[r].leader == r) {
            add_candidates(w, r);
            far++;
        }
}
