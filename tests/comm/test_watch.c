/* Ranks that watch each other, as processes of this test: who is reported, by whom and how soon; and when nobody is.
 * No MPI: what a rank is doing, the test says. */
#define _GNU_SOURCE /* MAP_ANONYMOUS; NOLINT(bugprone-reserved-identifier) */
#include "comm/watch/watch.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "support/support.h"

enum { RANKS = 4, MOST_REPORTS = 64 };
static const double report_after = 1, margin = 5; /* the promise is report_after + 5 s */

typedef struct {
    int rank; /* that reports */
    an_rank_message_kind kind;
    char text[AN_RANK_TEXT];
} said;

/* Shared by the test and its ranks. */
typedef struct {
    an_siphash_key key;
    an_watch_address addresses[RANKS];
    atomic_int listening, ready, end;
    pid_t processes[RANKS];
    struct {
        atomic_int waits, stuck, slow, call;
        atomic_long beats;
    } ranks[RANKS];
    atomic_int said_count;
    said said[MOST_REPORTS];
    double timeout;
    atomic_int died[RANKS]; /* 1 + the rank that this one has found dead */
} shared;

static shared *all;
static int absent = -1; /* a rank that is stopped before its watch begins */

static void sleep_for(double seconds) {
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

/* ---- in a rank ---- */

static void look(const void *user, an_rank_state *state) {
    const int rank = *(const int *)user, call = all->ranks[rank].call;
    state->beats = all->ranks[rank].beats;
    state->step = 12;
    state->collectives = 41;
    state->hash = (uint64_t)call;
    state->waits = (uint32_t)all->ranks[rank].waits;
    snprintf(state->place, sizeof state->place, "backward blocks.%d (attention)", rank);
    snprintf(state->kind, sizeof state->kind, "%s", call ? "evaluation" : "step record");
    snprintf(state->waits_for, sizeof state->waits_for, "a step record");
}

static void report(void *user, an_rank_message_kind kind, const char *text, bool is_told) {
    const int number = all->said_count++;
    (void)is_told;
    if (number >= MOST_REPORTS) return;
    all->said[number].rank = *(const int *)user;
    all->said[number].kind = kind;
    snprintf(all->said[number].text, sizeof all->said[number].text, "%s", text);
}

static void note_death(void *user, const an_rank_state *state) {
    all->died[*(const int *)user] = 1 + state->rank;
}

static void be_rank(int rank, bool two_hosts) {
    an_watch_thread *watch = NULL;
    an_watch_setup setup = {.rank = rank,
                            .ranks = RANKS,
                            .addresses = all->addresses,
                            .report_after = report_after,
                            .look = look,
                            .look_user = &rank,
                            .report = report,
                            .report_user = &rank,
                            .died = note_death,
                            .key = all->key,
                            .timeout = all->timeout};
    an_watch_address *own = &all->addresses[rank];
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (an_watch_listen(NULL, false, &setup.listener, &own->port) != AN_OK) _exit(1);
    own->leader = two_hosts ? rank / 2 * 2 : 0;
    own->count = 2; /* the first of which nobody answers at */
    own->places[0] = inet_addr("127.0.0.2");
    own->places[1] = htonl(INADDR_LOOPBACK);
    all->listening++;
    while (all->listening < RANKS) sleep_for(0.005);
    if (rank == absent) raise(SIGSTOP);
    if (an_watch_start(&watch, NULL, &setup) != AN_OK) _exit(1);
    all->ready++;
    while (!all->end) { /* a slow rank takes five times as long for a beat */
        if (!all->ranks[rank].waits && !all->ranks[rank].stuck) all->ranks[rank].beats++;
        sleep_for(all->ranks[rank].slow ? 5 * 0.05 : 0.05);
    }
    an_watch_stop(&watch);
    _exit(watch ? 1 : 0);
}

/* ---- in the test ---- */

static void start(bool two_hosts, double timeout) {
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    assert_true(an_channel_key_make(&all->key));
    all->timeout = timeout;
    for (int rank = 0; rank < RANKS; rank++) {
        const pid_t process = fork();
        assert_true(process >= 0);
        if (process == 0) be_rank(rank, two_hosts);
        all->processes[rank] = process;
    }
    while (all->ready < RANKS - (absent >= 0)) sleep_for(0.01);
    sleep_for(report_after / 2);
}

static void stop(void) {
    all->end = 1;
    for (int rank = 0; rank < RANKS; rank++) {
        int status = 0;
        if (all->processes[rank] == 0) continue; /* it was killed */
        kill(all->processes[rank], SIGCONT);
        assert_int_equal(waitpid(all->processes[rank], &status, 0), all->processes[rank]);
        assert_int_equal(status, 0);
    }
    munmap(all, sizeof *all);
}

static void all_wait_but(int rank) {
    for (int i = 0; i < RANKS; i++) all->ranks[i].waits = i != rank;
}

static void show(void) {
    for (int i = 0; i < all->said_count && i < MOST_REPORTS; i++)
        print_message("rank %d, kind %d: %s\n", all->said[i].rank, (int)all->said[i].kind, all->said[i].text);
}

/* Nothing more has been said than so many reports. */
static void expect_count(int count) {
    if (all->said_count == count) return;
    show();
    stop();
    fail_msg("there are other than %d reports", count);
}

/* Waits for a report of this kind by this rank that has the text in it; earlier ones are not looked at. */
static void expect(int from, int rank, an_rank_message_kind kind, const char *text) {
    const double end = an_clock_seconds() + report_after + margin;
    while (an_clock_seconds() < end) {
        const int count = all->said_count;
        for (int i = from; i < count && i < MOST_REPORTS; i++)
            if (all->said[i].rank == rank && all->said[i].kind == kind && strstr(all->said[i].text, text)) return;
        sleep_for(0.02);
    }
    show();
    const int count = all->said_count;
    stop();
    fail_msg("no report of kind %d by rank %d with \"%s\" among %d", (int)kind, rank, text, count);
}

static void a_slow_rank_is_not_blamed(void **state) {
    (void)state;
    start(false, 0);
    all->ranks[3].slow = 1;
    all_wait_but(3);
    sleep_for(4 * report_after);
    expect_count(0);
    stop();
}

static void a_stopped_rank_is_blamed_once(void **state) {
    (void)state;
    start(false, 0);
    kill(all->processes[2], SIGSTOP);
    all_wait_but(2);
    expect(0, 0, AN_RANK_STALL, "rank 2 (process ");
    expect(0, 0, AN_RANK_STALL, "was last at step 12, \"backward blocks.2 (attention)\"");
    sleep_for(report_after);
    expect_count(1);
    kill(all->processes[2], SIGCONT);
    all_wait_but(-1);
    for (int i = 0; i < RANKS; i++) all->ranks[i].waits = 0;
    expect(1, 0, AN_RANK_GOES_ON, "go on");
    stop();
}

static void rank_0_is_watched_too(void **state) {
    (void)state;
    start(false, 0);
    kill(all->processes[0], SIGSTOP);
    all_wait_but(0);
    expect(0, 1, AN_RANK_STALL, "rank 0 (process ");
    sleep_for(report_after);
    expect_count(1); /* ranks 2 and 3 have found rank 1 */
    kill(all->processes[0], SIGCONT);
    for (int i = 0; i < RANKS; i++) all->ranks[i].waits = 0;
    expect(1, 1, AN_RANK_GOES_ON, "go on");
    sleep_for(2 * report_after);
    const int count = all->said_count;
    kill(all->processes[3], SIGSTOP); /* rank 0 decides again */
    all_wait_but(3);
    expect(count, 0, AN_RANK_STALL, "rank 3 (process ");
    kill(all->processes[3], SIGCONT);
    /* Ranks 2 and 3 were below rank 1 for some time: what it knows of them is old, and blames nobody. */
    all->ranks[3].slow = 1;
    sleep_for(3 * report_after);
    const int later = all->said_count;
    sleep_for(3 * report_after);
    expect_count(later);
    kill(all->processes[0], SIGSTOP);
    all_wait_but(0);
    expect(later, 1, AN_RANK_STALL, "rank 0 (process ");
    sleep_for(report_after);
    expect_count(later + 1);
    stop();
}

/* Nobody has heard of it, but it is known where it should be. */
static void rank_0_that_never_answered_is_blamed(void **state) {
    (void)state;
    absent = 0;
    start(false, 0);
    all_wait_but(0);
    expect(0, 1, AN_RANK_STALL, "rank 0 has not answered");
    expect(0, 1, AN_RANK_STALL, "Rank 0 was never heard of");
    absent = -1;
    stop();
}

static void a_rank_that_stands_still_is_blamed_until_the_timeout(void **state) {
    (void)state;
    start(false, 2 * report_after);
    all->ranks[1].stuck = 1;
    all_wait_but(1);
    expect(0, 0, AN_RANK_STALL, "has made no progress");
    expect(0, 0, AN_RANK_TIMEOUT, "rank 1 (process ");
    stop();
}

static void a_branch_that_depends_on_the_rank(void **state) {
    (void)state;
    start(false, 0);
    all->ranks[0].call = 1;
    all_wait_but(-1);
    expect(0, 0, AN_RANK_STALL, "rank 0 in call 41 (evaluation");
    stop();
}

/* Ranks 2 and 3 are on another host: rank 0 hears of rank 3 through rank 2, and directly when rank 2 is stopped. */
static void ranks_of_another_host(void **state) {
    (void)state;
    for (int stopped = 2; stopped < RANKS; stopped++) {
        char text[64];
        start(true, 0);
        sleep_for(2 * report_after); /* the first address of rank 0 is tried in vain */
        kill(all->processes[stopped], SIGSTOP);
        all_wait_but(stopped);
        snprintf(text, sizeof text, "rank %d (process ", stopped);
        expect(0, 0, AN_RANK_STALL, text);
        stop();
    }
}

/* Anybody may connect, say nothing or nonsense, and stay: ranks are heard all the same. */
static void strangers_are_not_heard(void **state) {
    (void)state;
    enum { STRANGERS = 64 };
    int files[STRANGERS];
    char nonsense[3000];
    memset(nonsense, 'x', sizeof nonsense);
    start(false, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = all->addresses[0].port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (int i = 0; i < STRANGERS; i++) {
        files[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(files[i], (const struct sockaddr *)&address, sizeof address) == 0 && i % 2)
            (void)!send(files[i], nonsense, sizeof nonsense, MSG_NOSIGNAL);
    }
    sleep_for(report_after);
    expect_count(0);
    kill(all->processes[2], SIGSTOP);
    all_wait_but(2);
    expect(0, 0, AN_RANK_STALL, "rank 2 (process ");
    for (int i = 0; i < STRANGERS; i++) close(files[i]);
    stop();
}

/* Its parent, this test, must have waited for it: until then the system knows it. */
static void a_dead_rank_is_found_at_once(void **state) {
    (void)state;
    for (int dead = 0; dead < RANKS; dead += 2) {
        const int finder = dead == 0 ? 1 : 0;
        start(false, 0);
        kill(all->processes[1], SIGSTOP); /* which closes no connection */
        sleep_for(report_after);
        kill(all->processes[1], SIGCONT);
        assert_int_equal(all->died[0], 0);
        kill(all->processes[dead], SIGKILL);
        assert_int_equal(waitpid(all->processes[dead], NULL, 0), all->processes[dead]);
        all->processes[dead] = 0;
        for (int i = 0; i < 100 && all->died[finder] == 0; i++) sleep_for(0.05);
        const int found = all->died[finder];
        stop();
        assert_int_equal(found, 1 + dead);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_rank_is_not_blamed),
        cmocka_unit_test(a_stopped_rank_is_blamed_once),
        cmocka_unit_test(rank_0_is_watched_too),
        cmocka_unit_test(rank_0_that_never_answered_is_blamed),
        cmocka_unit_test(a_rank_that_stands_still_is_blamed_until_the_timeout),
        cmocka_unit_test(a_branch_that_depends_on_the_rank),
        cmocka_unit_test(ranks_of_another_host),
        cmocka_unit_test(strangers_are_not_heard),
        cmocka_unit_test(a_dead_rank_is_found_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
