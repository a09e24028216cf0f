/* A supervisor's job of several ranks: what it takes for the end of a run, what it passes on, and that nothing of it
 * is left. This program is its own launcher. */
#define _GNU_SOURCE /* O_CLOEXEC and the like; NOLINT(bugprone-reserved-identifier) */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "cli/supervise/link.h"
#include "cli/supervise/rank.h"
#include "cli/supervise/ranks.h"
#include "support/support.h"

enum { CODE = 75, PATH = 4096 };
static char self[PATH];

static void sleep_for(double seconds) {
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

static void write_outcome(const char *text) {
    FILE *file = fopen("outcome.json", "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* ---- the launcher ---- */

/* A rank that says that the job hangs, as a watch would. */
static void say_timeout(void) {
    an_channel channel;
    struct sockaddr_in address;
    an_siphash_key key;
    an_rank_message message = {.kind = AN_RANK_TIMEOUT};
    snprintf(message.text, sizeof message.text, "rank 2 does not answer");
    if (!an_rank_supervisor_read(getenv("ANNEAL_SUPERVISOR"), &address, &key)) _exit(1);
    an_channel_connect(&channel, &address, &key, 1);
    while (channel.state != AN_CHANNEL_OPEN && channel.state != AN_CHANNEL_CLOSED) an_channel_turn(&channel);
    if (!an_channel_send(&channel, &message)) _exit(1);
    an_channel_turn(&channel);
    sleep_for(1000);
}

/* A rank whose launcher passes no signal on. */
static void wait_for_stop(void) {
    sigset_t set;
    int number;
    signal(SIGUSR1, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    if (fork() > 0) {
        wait(NULL);
        _exit(0);
    }
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    cli_rank_begin();
    write_outcome("{\"end\": \"running\", \"generation\": 3}");
    if (sigwait(&set, &number) != 0) _exit(1);
    if (number == (int)strtol(getenv("EXPECTED"), NULL, 10))
        write_outcome("{\"end\": \"stopped on request\", \"step\": 7, \"generation\": 3}");
    cli_link_end(CODE);
    _exit(0);
}

/* Rank 0 waits in MPI_Init, rank 1 is stopped before it, rank 2 dies there if it is told to, and rank 3 never
 * starts. */
static void start_without_some(void) {
    for (int rank = 0; rank < 3; rank++) {
        char text[2] = {(char)('0' + rank)};
        if (fork() > 0) continue;
        setenv("PMI_SIZE", "4", 1);
        setenv("PMI_RANK", text, 1);
        cli_rank_begin();
        if (rank != 1) cli_link_tell(AN_RANK_JOINING);
        sleep_for(0.4);
        if (rank == 1) raise(SIGSTOP);
        if (rank == 2 && getenv("DIES")) raise(SIGKILL);
        sleep_for(1000);
    }
    sleep_for(1000);
}

static void launch(const char *how) {
    if (!strcmp(how, "exit")) { /* rank 0 tells its code; the launcher another */
        if (fork() == 0) {
            cli_rank_begin();
            cli_link_end(CODE);
            _exit(0);
        }
        wait(NULL);
        _exit(3);
    }
    if (!strcmp(how, "orphans")) { /* one in another session, one whose parent dies at once */
        if (fork() == 0) {
            setsid();
            sleep_for(1000);
        }
        if (fork() == 0) {
            if (fork() == 0) sleep_for(1000);
            _exit(0);
        }
        sleep_for(1000);
    }
    if (!strcmp(how, "die")) { /* a rank is left */
        if (fork() == 0) sleep_for(1000);
        raise(SIGKILL);
    }
    if (!strcmp(how, "stop")) wait_for_stop();
    if (!strcmp(how, "leave")) { /* a rank that has lost its launcher before it could say that it dies with it */
        if (fork() > 0) _exit(0);
        while (getppid() != 1 && getppid() != (pid_t)strtol(getenv("LEADER"), NULL, 10)) sleep_for(0.01);
        cli_rank_begin();
        prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
        sleep_for(1000);
    }
    if (!strcmp(how, "start")) start_without_some();
    if (!strcmp(how, "timeout")) say_timeout();
    if (!strcmp(how, "fail")) _exit((int)strtol(getenv("EXPECTED"), NULL, 10));
    _exit(1);
}

/* ---- the supervisor ---- */

static bool has_children(void) {
    return waitpid(-1, NULL, WNOHANG) >= 0;
}

static double timeout = 100;

static supervise_end run(char *how, int signal, double after) {
    supervise_job job;
    supervise_signals signals;
    supervise_end end;
    char *arguments[] = {self, how, NULL};
    const supervise_job_watch watch = {.folder = ".", .launch = 2, .report_after = 1, .timeout = timeout};
    unlink("outcome.json");
    supervise_block(&signals);
    assert_true(supervise_job_start(&job, self, arguments, 4));
    if (signal) {
        sleep_for(after);
        raise(signal);
    }
    supervise_job_wait(&job, &signals, &watch, &end);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left */
    assert_null(getenv("ANNEAL_SUPERVISOR"));
    return end;
}

static void the_outcome_is_that_of_this_launch(void **state) {
    static const struct {
        const char *text;
        bool has_one;
        int code;
    } rows[] = {
        {"{\"end\": \"done\", \"step\": 30, \"generation\": 3}", true, CLI_DONE},
        {"{\"end\": \"stopped early\", \"generation\": 3}", true, CLI_DONE},
        {"{\"end\": \"time limit\", \"generation\": 4}", true, CLI_AGAIN},
        {"{\"end\": \"failed\", \"generation\": 3, \"error\": \"a disk is full\"}", true, CLI_FAILED},
        {"{\"end\": \"running\", \"generation\": 3}", false, 0},
        {"{\"end\": \"done\", \"generation\": 2}", false, 0}, /* of the launch before */
        {"{\"end\": \"done\", \"generation\": 3", false, 0},
        {"{\"end\": \"never\", \"generation\": 3}", false, 0},
        {"{\"end\": 3, \"generation\": \"done\"}", false, 0},
        {"", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code = 0;
        write_outcome(rows[i].text);
        assert_int_equal(supervise_outcome(".", 2, &code), rows[i].has_one);
        if (rows[i].has_one) assert_int_equal(code, rows[i].code);
    }
    int code;
    unlink("outcome.json");
    assert_false(supervise_outcome(".", 0, &code));
}

static void rank_0_tells_its_code(void **state) {
    (void)state;
    const supervise_end end = run((char[]){"exit"}, 0, 0);
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.code, CODE);
}

static void nothing_is_left(void **state) {
    (void)state;
    supervise_job job;
    char *arguments[] = {self, (char[]){"orphans"}, NULL};
    assert_true(supervise_job_start(&job, self, arguments, 4));
    sleep_for(0.3);
    supervise_job_forget(&job);
    assert_false(has_children());
    const supervise_end end = run((char[]){"die"}, 0, 0);
    assert_int_equal(end.signal, SIGKILL);
    assert_false(end.hung);
}

/* Also one that comes before a rank has started. */
static void signals_reach_ranks_without_the_launcher(void **state) {
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1};
    for (size_t i = 0; i < 2 * sizeof numbers / sizeof *numbers; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", numbers[i / 2]);
        setenv("EXPECTED", text, 1);
        const supervise_end end = run((char[]){"stop"}, numbers[i / 2], i % 2 ? 0.5 : 0);
        assert_int_equal(end.signal, 0);
        assert_int_equal(end.code, CLI_AGAIN);
    }
}

/* What this process says while it runs a job. */
static void run_and_read(char *how, char *said, size_t capacity, supervise_end *end) {
    FILE *file = tmpfile();
    const int before = dup(STDERR_FILENO);
    assert_non_null(file);
    dup2(fileno(file), STDERR_FILENO);
    *end = run(how, 0, 0);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    said[fread(said, 1, capacity - 1, file)] = 0;
    fclose(file);
}

static void ranks_that_do_not_start_are_named(void **state) {
    (void)state;
    char said[4096];
    supervise_end end;
    timeout = 3;
    run_and_read((char[]){"start"}, said, sizeof said, &end);
    assert_true(end.hung);
    assert_non_null(strstr(said, "without progress for 3"));
    assert_non_null(strstr(said, ": rank 1 (process "));
    assert_non_null(strstr(said, ", before MPI_Init) does not answer"));
    assert_non_null(strstr(said, "(ranks.timeout): it hangs"));
    timeout = 100;
    setenv("DIES", "", 1);
    const double begin = an_clock_seconds();
    run_and_read((char[]){"start"}, said, sizeof said, &end);
    assert_true(an_clock_seconds() - begin < 30);
    assert_int_equal(end.signal, SIGKILL);
    assert_false(end.hung);
    assert_non_null(strstr(said, "rank 2 (process "));
    assert_non_null(strstr(said, ", inside MPI_Init) has died"));
    assert_non_null(strstr(said, "rank 3 has not started"));
    unsetenv("DIES");
}

/* Even one that is nobody's child any more. */
static void a_rank_ends_with_its_leader(void **state) {
    (void)state;
    int files[2];
    char byte;
    assert_int_equal(pipe(files), 0);
    const pid_t leader = fork();
    if (leader == 0) {
        supervise_job job;
        char text[16], *arguments[] = {self, (char[]){"leave"}, NULL};
        snprintf(text, sizeof text, "%d", (int)getpid());
        setenv("LEADER", text, 1);
        if (!supervise_job_start(&job, self, arguments, 1)) _exit(1);
        while (!job.seats[0].process) supervise_job_listen(&job);
        raise(SIGKILL);
    }
    close(files[1]);
    assert_int_equal(read(files[0], &byte, 1), 0); /* all that had the other end are gone */
    close(files[0]);
    assert_int_equal(waitpid(leader, NULL, 0), leader);
}

/* Codes that are none of a rank's are no signals: there are 64. */
static void a_launcher_that_fails_is_named(void **state) {
    (void)state;
    static const char *const codes[] = {"255", "213", "127"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char said[4096], words[64];
        supervise_end end;
        setenv("EXPECTED", codes[i], 1);
        run_and_read((char[]){"fail"}, said, sizeof said, &end);
        snprintf(words, sizeof words, "the launcher failed (exit code %s)", codes[i]);
        assert_int_equal(end.signal, 0);
        assert_int_equal(end.code, CLI_FAILED);
        assert_non_null(strstr(said, words));
    }
}

static void a_job_that_hangs_is_ended(void **state) {
    (void)state;
    const supervise_end end = run((char[]){"timeout"}, 0, 0);
    assert_true(end.hung);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_outcome_is_that_of_this_launch),
        cmocka_unit_test(rank_0_tells_its_code),
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(signals_reach_ranks_without_the_launcher),
        cmocka_unit_test(ranks_that_do_not_start_are_named),
        cmocka_unit_test(a_rank_ends_with_its_leader),
        cmocka_unit_test(a_launcher_that_fails_is_named),
        cmocka_unit_test(a_job_that_hangs_is_ended),
    };
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    if (argc > 1) launch(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
