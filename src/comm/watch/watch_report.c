/* What a watch reports: who is to blame, once; that the ranks go on; that it has lasted too long. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "comm/watch/watch_inside.h"

static void report(an_watch_thread *w, an_rank_message_kind kind, const char *text) {
    an_rank_message message = {.kind = kind};
    snprintf(message.text, sizeof message.text, "%s", text);
    const bool is_told = an_channel_send(&w->supervisor.channel, &message);
    if (is_told) an_channel_turn(&w->supervisor.channel);
    w->setup.report(w->setup.report_user, kind, text, is_told);
}

static bool is_same(const an_blame *a, const an_blame *b) {
    return a->kind == b->kind && a->rank == b->rank;
}

static void find_blame(an_watch_thread *w) {
    for (int i = 0; i < w->known_count; i++) {
        an_watch_entry *e = &w->entries[w->known[i]];
        e->state.silent = an_watch_silence(w, e);
        w->listed[i] = &e->state;
    }
    an_blame_find(w->listed, w->known_count, w->setup.report_after, &w->blame);
}

/* The connection is closed, and the system knows no such process: ranks of one host have the same process numbers. */
void an_watch_find_dead(an_watch_thread *w) {
    const an_watch_address *addresses = w->setup.addresses;
    for (int i = 0; i < w->known_count && !w->found_dead; i++) {
        const an_watch_entry *e = &w->entries[w->known[i]];
        if (!e->is_closed || addresses[e->state.rank].leader != addresses[w->setup.rank].leader) continue;
        if (e->state.process <= 0 || kill(e->state.process, 0) == 0 || errno != ESRCH) continue;
        w->found_dead = true;
        if (w->setup.died) w->setup.died(w->setup.report_user, &e->state);
    }
}

static void end_report(an_watch_thread *w) {
    char text[AN_RANK_TEXT];
    if (w->reported.kind == AN_BLAME_NONE) return;
    snprintf(text, sizeof text, "the ranks go on, %.3g s after that was reported", w->now - w->begin);
    report(w, AN_RANK_GOES_ON, text);
    w->reported.kind = AN_BLAME_NONE;
    w->timed_out = false;
}

/* A blame must be the same at two looks, since the states that it is made of are not of one moment. Who has decided in
 * place of a rank that answers again has nothing more to say. */
void an_watch_decide(an_watch_thread *w) {
    const an_blame before = w->blame;
    w->blame.kind = AN_BLAME_NONE;
    if (w->setup.report_after <= 0) return;
    if (w->is_alone) find_blame(w);
    w->agreed = is_same(&before, &w->blame) && before.count == w->blame.count ? w->agreed + 1 : 0;
    if (!w->is_alone) end_report(w);
    if (w->agreed < 1) return;
    if (w->blame.kind == AN_BLAME_NONE) {
        end_report(w);
        return;
    }
    if (!is_same(&w->blame, &w->reported) || w->blame.count > w->reported.count) {
        w->begin = w->now;
        report(w, AN_RANK_STALL, w->blame.text);
    }
    w->reported = w->blame;
    if (w->setup.timeout > 0 && w->blame.seconds >= w->setup.timeout && !w->timed_out) {
        w->timed_out = true;
        report(w, AN_RANK_TIMEOUT, w->blame.text);
    }
}
