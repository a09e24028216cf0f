#include "comm/watch/blame.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MILLISECONDS = 1000, LISTED = 6, GROUPS = 4 };

typedef struct {
    const an_rank_state *const *states;
    int count;
    uint32_t limit;  /* report_after */
    uint32_t begins; /* a wait shorter than this may be any wait of a step */
} table;

/* ---- who is what ---- */

static bool is_silent(const table *t, const an_rank_state *s) {
    return !s->left && s->silent >= t->limit;
}

static bool is_left(const table *t, const an_rank_state *s) {
    (void)t;
    return s->left;
}

static bool is_waiting(const table *t, const an_rank_state *s) {
    return !s->left && !is_silent(t, s) && s->waits && s->waited >= t->begins;
}

static bool is_still(const table *t, const an_rank_state *s) {
    return !s->left && !is_silent(t, s) && !s->waits && s->still >= t->limit;
}

/* Makes progress, or may do so for all that is known: its state may be old, but not yet so old that it is silent. */
static bool is_moving(const table *t, const an_rank_state *s) {
    enum { OLD = 3 };
    if (s->left || is_silent(t, s)) return false;
    return s->silent >= t->limit / OLD || !(is_still(t, s) || (s->waits && s->waited >= t->limit / 2));
}

typedef bool condition(const table *t, const an_rank_state *s);

static int count_of(const table *t, condition *is, int *first) {
    int count = 0;
    for (int i = 0; i < t->count; i++)
        if (is(t, t->states[i]) && count++ == 0) *first = i;
    return count;
}

static uint32_t longest_wait(const table *t) {
    uint32_t longest = 0;
    for (int i = 0; i < t->count; i++)
        if (is_waiting(t, t->states[i]) && t->states[i]->waited > longest) longest = t->states[i]->waited;
    return longest;
}

/* How long no rank has made progress. */
static uint32_t shortest_pause(const table *t) {
    uint32_t shortest = UINT32_MAX;
    for (int i = 0; i < t->count; i++) {
        const an_rank_state *s = t->states[i];
        const uint32_t pause = s->silent > s->still ? s->silent : s->still;
        if (!s->left && pause < shortest) shortest = pause;
    }
    return shortest;
}

/* ---- words ---- */

typedef struct {
    char *text;
    size_t length;
} writing;

AN_PRINTF(2, 3) static void add(writing *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(w->text + w->length, AN_RANK_TEXT - w->length, format, arguments);
    va_end(arguments);
    if (n > 0) w->length += (size_t)n < AN_RANK_TEXT - w->length ? (size_t)n : AN_RANK_TEXT - w->length - 1;
}

/* "rank 2", "ranks 0, 1 and 3", "ranks 0, 1, 2, 3, 4, 5 and 58 more" */
static void add_ranks(writing *w, const table *t, condition *is, int total) {
    int listed = 0;
    add(w, total == 1 ? "rank" : "ranks");
    for (int i = 0; i < t->count && listed < LISTED; i++) {
        if (!is(t, t->states[i])) continue;
        const bool last = listed > 0 && listed + 1 == total;
        add(w, "%s %d", listed == 0 ? "" : last ? " and" : ",", t->states[i]->rank);
        listed++;
    }
    if (total > listed) add(w, " and %d more", total - listed);
}

static void add_process(writing *w, const an_rank_state *s) {
    if (s->process > 0) add(w, " (process %d on %s)", s->process, *s->host ? s->host : "an unknown host");
}

static void add_place(writing *w, const an_rank_state *s) {
    if (s->step > 0) add(w, "step %lld, ", (long long)s->step);
    add(w, "\"%s\"", *s->place ? s->place : "start");
}

static double seconds_of(uint32_t milliseconds) {
    return (double)milliseconds / MILLISECONDS;
}

static void add_waiters(writing *w, const table *t, bool one) {
    int first = 0;
    const int waiting = count_of(t, is_waiting, &first);
    if (waiting == 0) return;
    const an_rank_state *s = t->states[first];
    add(w, ". ");
    const size_t at = w->length;
    add_ranks(w, t, is_waiting, waiting);
    w->text[at] = 'R';
    add(w, " wait%s for %s: rank %d for \"%s\", since %.3g s", waiting == 1 ? "s" : "", one ? "it" : "them", s->rank,
        s->waits_for, seconds_of(s->waited));
}

/* ---- kinds of blame ---- */

typedef struct {
    an_blame_kind kind;
    condition *is;
    const char *one, *several; /* what such ranks have done */
    const char *why;           /* what it can mean */
    const char *where;
} single;

/* In this order: a rank that does not answer may be why another makes no progress. */
static const single singles[] = {
    {AN_BLAME_SILENT, is_silent, "has not answered", "have not answered",
     " (a stopped process, a host that is down, or a cut network)", "was last at"},
    {AN_BLAME_STILL, is_still, "has made no progress", "have made no progress", "", "is at"},
    {AN_BLAME_LEFT, is_left, "has ended its run", "have ended their run", "", "was last at"},
};

static void describe_single(const table *t, const single *kind, an_blame *blame, int first) {
    const an_rank_state *s = t->states[first];
    const bool one = blame->count == 1;
    writing w = {.text = blame->text};
    add_ranks(&w, t, kind->is, blame->count);
    if (one) add_process(&w, s);
    add(&w, " %s", one ? kind->one : kind->several);
    if (kind->kind != AN_BLAME_LEFT)
        add(&w, " for %.3g s%s", seconds_of(kind->kind == AN_BLAME_SILENT ? s->silent : s->still), kind->why);
    add(&w, ". Rank %d", s->rank);
    if (!one) add_process(&w, s);
    if (s->process > 0) {
        add(&w, " %s ", kind->where);
        add_place(&w, s);
    } else {
        add(&w, " was never heard of");
    }
    add_waiters(&w, t, one);
}

/* Ranks in the same collective call, after the same calls. */
typedef struct {
    const an_rank_state *first;
    int count;
} group;

static bool is_same_call(const an_rank_state *a, const an_rank_state *b) {
    return a->collectives == b->collectives && a->hash == b->hash;
}

/* The smallest first, as it is where the mistake is sought; of equal ones that of the lowest rank. More groups than
 * there is room for are not listed. */
static int find_groups(const table *t, group groups[GROUPS]) {
    int count = 0;
    for (int i = 0; i < t->count; i++) {
        const an_rank_state *s = t->states[i];
        int g = 0;
        if (s->left) continue;
        while (g < count && !is_same_call(groups[g].first, s)) g++;
        if (g == GROUPS) continue;
        if (g == count) groups[count++] = (group){.first = s};
        groups[g].count++;
    }
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && groups[j].count < groups[j - 1].count; j--) {
            const group swapped = groups[j];
            groups[j] = groups[j - 1];
            groups[j - 1] = swapped;
        }
    return count;
}

static void describe_groups(const table *t, const group *groups, int count, an_blame *blame) {
    writing w = {.text = blame->text};
    add(&w, "ranks wait for each other in different collective calls, since %.3g s", blame->seconds);
    for (int g = 0; g < count; g++) {
        const an_rank_state *s = groups[g].first;
        int listed = 0;
        add(&w, "%s rank%s", g == 0 ? ":" : ";", groups[g].count == 1 ? "" : "s");
        for (int i = 0; i < t->count && listed < LISTED; i++)
            if (!t->states[i]->left && is_same_call(t->states[i], s))
                add(&w, "%s%d", listed++ == 0 ? " " : ", ", t->states[i]->rank);
        if (groups[g].count > listed) add(&w, " and %d more", groups[g].count - listed);
        add(&w, " in call %llu (%s, %llu bytes) at ", (unsigned long long)s->collectives, s->kind,
            (unsigned long long)s->bytes);
        add_place(&w, s);
    }
    add(&w, ". Every rank must make the same collective calls (step, evaluation, save, export) in the same order: look "
            "for one that depends on the rank");
}

static void describe_messages(const table *t, an_blame *blame) {
    const an_rank_state *s = t->states[0];
    writing w = {.text = blame->text};
    add(&w,
        "all ranks wait in the same collective call %llu (%s) since %.3g s: messages between them do not arrive. "
        "Rank %d waits for \"%s\" at ",
        (unsigned long long)s->collectives, s->kind, blame->seconds, s->rank, s->waits_for);
    add_place(&w, s);
    if (t->count > 1) add(&w, ", rank %d for \"%s\"", t->states[1]->rank, t->states[1]->waits_for);
}

static bool find_single(const table *t, an_blame *blame) {
    int first = 0;
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++) {
        blame->count = count_of(t, singles[i].is, &first);
        /* Ranks end their run one after the other, and are not blamed for that by those that wait for a moment. */
        if (blame->count == 0 || (singles[i].kind == AN_BLAME_LEFT && longest_wait(t) < t->limit)) continue;
        blame->kind = singles[i].kind;
        blame->rank = t->states[first]->rank;
        describe_single(t, &singles[i], blame, first);
        return true;
    }
    return false;
}

void an_blame_find(const an_rank_state *const *states, int count, double report_after, an_blame *blame) {
    enum { SHORTER = 5 };
    const uint32_t limit = (uint32_t)(report_after * MILLISECONDS);
    const table t = {.states = states, .count = count, .limit = limit, .begins = limit / SHORTER};
    group groups[GROUPS];
    int first = 0;
    const bool none_moves = count_of(&t, is_moving, &first) == 0, some_wait = longest_wait(&t) > 0;
    *blame = (an_blame){.kind = AN_BLAME_NONE};
    if (count_of(&t, is_left, &first) == count || (!some_wait && !none_moves)) return;
    blame->seconds = seconds_of(some_wait ? longest_wait(&t) : shortest_pause(&t));
    if (find_single(&t, blame) || !none_moves || longest_wait(&t) < t.limit) return;
    const int calls = find_groups(&t, groups);
    if (calls == 0) return;
    blame->kind = calls > 1 ? AN_BLAME_DIFFERENT : AN_BLAME_MESSAGES;
    blame->count = calls > 1 ? groups[0].count : count;
    blame->rank = groups[0].first->rank;
    if (calls > 1)
        describe_groups(&t, groups, calls, blame);
    else
        describe_messages(&t, blame);
}
