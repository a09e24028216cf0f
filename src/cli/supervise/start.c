/* Which ranks keep a job from beginning: MPI says nothing about a rank that does not get through MPI_Init. */
#include <stdio.h>
#include <string.h>

#include "base/system/clock.h"
#include "cli/supervise/ranks.h"

static const double late = 2; /* seconds: a rank that runs is heard of twice a second */

static const char *const stages[] = {
    [AN_RANK_LOADED] = "before MPI_Init", [AN_RANK_JOINING] = "inside MPI_Init", [AN_RANK_JOINED] = "after MPI_Init"};

typedef enum { ABSENT, DEAD, SILENT, WAITING } condition;

static condition condition_of(const supervise_seat *seat) {
    if (!seat->process) return ABSENT;
    if (seat->died) return DEAD;
    return seat->silent >= late && !seat->left ? SILENT : WAITING;
}

/* The ranks of one condition: "rank 2 (process 4711, inside MPI_Init)", with more of them one after another. How many
 * there are; the text grows by what fits. */
static int list(const supervise_job *job, condition c, char *text, size_t capacity) {
    int count = 0;
    for (int rank = 0; rank < job->ranks; rank++) {
        const supervise_seat *seat = &job->seats[rank];
        const size_t used = strlen(text);
        if (condition_of(seat) != c) continue;
        const char *separator = count++ > 0 ? ", " : "";
        if (c == ABSENT)
            snprintf(text + used, capacity - used, "%srank %d", separator, rank);
        else
            snprintf(text + used, capacity - used, "%srank %d (process %d, %s)", separator, rank, seat->process,
                     stages[seat->stage]);
    }
    return count;
}

/* The first condition that a rank is in says who is to blame; all others wait for these. */
void supervise_start_describe(const supervise_job *job, char text[SUPERVISE_START]) {
    static const struct {
        condition condition;
        const char *one, *several;
    } rows[] = {{DEAD, "has died", "have died"},
                {SILENT, "does not answer (a stopped process?)", "do not answer (stopped processes?)"},
                {ABSENT, "has not started", "have not started"},
                {WAITING, "makes no progress", "make no progress"}};
    char who[SUPERVISE_START - 128] = "";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int count = list(job, rows[i].condition, who, sizeof who);
        if (count == 0) continue;
        snprintf(text, SUPERVISE_START, "the ranks are still starting, without progress for %.3g s: %s %s", job->still,
                 who, count == 1 ? rows[i].one : rows[i].several);
        return;
    }
    snprintf(text, SUPERVISE_START, "the ranks are still starting, without progress for %.3g s", job->still);
}

/* "rank 1 (process 4711) has died at step 120, while …" of the rank that died first; false: it is not known, or had not
 * begun. */
static bool name_first(const supervise_job *job) {
    char place[SUPERVISE_PLACE];
    an_heartbeat heartbeat;
    if (job->first < 0 || !supervise_board_read(&job->board, job->first, &heartbeat)) return false;
    supervise_place(&heartbeat, place);
    supervise_say("rank %d (process %d) has died at step %lld, %s", job->first, job->seats[job->first].process,
                  (long long)heartbeat.step, place);
    return true;
}

/* A connection is closed before its process has ended. The order of the ends is not known before that. */
static bool is_ending(const supervise_job *job) {
    for (int rank = 0; rank < job->ranks; rank++)
        if (job->seats[rank].died && !job->seats[rank].ended && supervise_board_follows(&job->board, rank)) return true;
    return false;
}

/* A launcher kills the others soon after one has died: those that are found dead later say nothing new. */
void supervise_name_dead(supervise_job *job, bool has_ended) {
    char dead[SUPERVISE_START / 2] = "", absent[SUPERVISE_START / 2] = "";
    if (job->died > 0 || job->exited > 0 || job->is_killed) return;
    const int count = list(job, DEAD, dead, sizeof dead), missing = list(job, ABSENT, absent, sizeof absent);
    const bool is_starting = job->heard == 0;
    if (!has_ended && is_ending(job)) return;
    if (count == 0 && !(has_ended && is_starting && missing > 0)) return;
    job->died = an_clock_seconds();
    if (count > 0 && !name_first(job)) supervise_say("%s %s died", dead, count == 1 ? "has" : "have");
    if (is_starting && missing > 0) supervise_say("%s %s not started", absent, missing == 1 ? "has" : "have");
}
