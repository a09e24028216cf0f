/* A supervisor's job of several ranks: what it takes for the end of a run, what it passes on, and that nothing of it is left. This program is its own launcher. */
#define _GNU_SOURCE /* O_CLOEXEC and the like; NOLINT(bugprone-reserved-identifier) */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
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

static void launch(const char *how) {
    if (!strcmp(how, "exit")) { /* rank 0 tells its code; the launcher another */
        if (fork() == 0) {
            cli_rank_begin();
            cli_rank_end(CODE);
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
    if (!strcmp(how, "stop")) {
        sigset_t set;
        int number;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, NULL);
        write_outcome("{\"end\": \"running\", \"generation\": 3}");
        if (sigwait(&set, &number) != 0) _exit(1);
        write_outcome("{\"end\": \"stopped on request\", \"step\": 7, \"generation\": 3}");
        _exit(0);
    }
    if (!strcmp(how, "timeout")) say_timeout();
    _exit(1);
}

/* ---- the supervisor ---- */

static bool has_children(void) {
    return waitpid(-1, NULL, WNOHANG) >= 0;
}

static supervise_end run(char *how, int signal, double after) {
    supervise_job job;
    supervise_signals signals;
    supervise_end end;
    char *arguments[] = {self, how, NULL};
    const supervise_job_watch watch = {.folder = ".", .launch = 2, .report_after = 1, .timeout = 100};
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

static void signals_become_usr1(void **state) {
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const supervise_end end = run((char[]){"stop"}, numbers[i], 0.5);
        assert_int_equal(end.signal, 0);
        assert_int_equal(end.code, CLI_AGAIN);
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
        cmocka_unit_test(signals_become_usr1),
        cmocka_unit_test(a_job_that_hangs_is_ended),
    };
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    if (argc > 1) launch(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
