/* The threads of a context: every task runs once and is over when the call returns, a small step starts none, idle ones
 * sleep, and nobody waits for a thread that has not come. */
#define _GNU_SOURCE /* sched_getcpu, cpu_set_t; NOLINT(bugprone-reserved-identifier) */
#include <ctype.h>
#include <dirent.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parallel.h"
#include "base/system/clock.h"
#include "support/support.h"

enum { THREADS = 4, MOST_TASKS = 200 };

static an_context *context_of(int threads) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    options.threads = threads;
    OK(NULL, an_context_create(&ctx, &options));
    return ctx;
}

/* ---- threads of this process, as the system sees them ---- */

/* How many there are; with `state`, those in this state only ('S' sleeps). */
static int threads_now(char state) {
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(folder);
    for (const struct dirent *d; (d = readdir(folder));) {
        char path[300], text[200] = "";
        if (!isdigit((unsigned char)d->d_name[0])) continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", d->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue; /* it has just ended */
        const size_t length = fread(text, 1, sizeof text - 1, file);
        text[length] = 0;
        fclose(file);
        const char *end = strrchr(text, ')');
        count += end && (!state || end[2] == state);
    }
    closedir(folder);
    return count;
}

/* Threads that are not the library's, without the one that looks: an emulator and a sanitizer have some
 * of their own, which sleep. */
static int others;

static void wait_for(int count, char state) {
    while (threads_now(state) != others + count) usleep(1000);
}

/* ---- tasks ---- */

typedef struct {
    an_context *ctx;
    atomic_int runs[MOST_TASKS];
    atomic_int inside[THREADS]; /* tasks that a thread number has at once */
    atomic_int wrong;
} job;

static void count_task(void *user, int64_t index, int thread) {
    job *j = user;
    if (thread < 0 || thread >= THREADS || atomic_fetch_add(&j->inside[thread], 1) != 0) atomic_fetch_add(&j->wrong, 1);
    atomic_fetch_add(&j->runs[index], 1);
    atomic_fetch_sub(&j->inside[thread], 1);
}

static void nested_task(void *user, int64_t index, int thread) {
    job *j = user;
    (void)index, (void)thread;
    for (int i = 0; i < 2; i++) an_parallel(j->ctx, 1, count_task, &(job){.ctx = j->ctx});
    an_parallel(j->ctx, THREADS, count_task, &(job){.ctx = j->ctx}); /* on this thread, as number 0 */
    atomic_fetch_add(&j->runs[index], 1);
}

static void check_runs(const job *j, int64_t count, int expected) {
    assert_int_equal(j->wrong, 0);
    for (int64_t i = 0; i < MOST_TASKS; i++) assert_int_equal(j->runs[i], i < count ? expected : 0);
}

static void test_every_task_runs_once(void **state) {
    static const char *const policies[] = {"active", "passive", NULL};
    (void)state;
    for (int p = 0; p < 3; p++) {
        if (policies[p])
            setenv("OMP_WAIT_POLICY", policies[p], 1);
        else
            unsetenv("OMP_WAIT_POLICY");
        an_context *ctx = context_of(p == 0 ? 2 : THREADS); /* more threads that spin than cores would take long */
        for (int64_t count = 0; count <= MOST_TASKS; count += count < 8 ? 1 : 64) {
            static job j;
            j = (job){.ctx = ctx};
            for (int repeat = 0; repeat < 300; repeat++) an_parallel(ctx, count, count_task, &j);
            check_runs(&j, count, 300);
        }
        static job nested;
        nested = (job){.ctx = ctx};
        an_parallel(ctx, MOST_TASKS, nested_task, &nested);
        check_runs(&nested, MOST_TASKS, 1);
        an_context_destroy(&ctx);
    }
}

/* A thread that is just going to sleep may miss a call, and then the others do its tasks: nothing may wait for all of
 * them without an end. Such a region is asked for again. */
static bool all_come(const atomic_int *threads, int all) {
    const double until = an_clock_seconds() + 0.1;
    while (*threads != all && an_clock_seconds() < until) sched_yield();
    return *threads == all;
}

typedef struct {
    atomic_int begun, over, longer;
} slow_job;

/* Two threads have one task each, and the one that was called has the longer one. */
static void slow_task(void *user, int64_t index, int thread) {
    slow_job *j = user;
    (void)index;
    atomic_fetch_add(&j->begun, 1);
    if (thread != 0 && all_come(&j->begun, 2)) {
        usleep(20000);
        atomic_fetch_add(&j->longer, 1);
    } else
        all_come(&j->begun, 2);
    atomic_fetch_add(&j->over, 1);
}

static void test_every_task_is_over_when_the_call_returns(void **state) {
    static const char *const policies[] = {"active", "passive"};
    (void)state;
    alarm(60); /* of one that hangs */
    for (int p = 0; p < 2; p++) {
        setenv("OMP_WAIT_POLICY", policies[p], 1);
        an_context *ctx = context_of(2);
        for (int seen = 0; seen < 3;) {
            slow_job j = {0};
            an_parallel(ctx, 2, slow_task, &j);
            assert_int_equal(j.over, 2);
            seen += j.longer == 1;
        }
        an_context_destroy(&ctx);
    }
    alarm(0);
    unsetenv("OMP_WAIT_POLICY");
}

/* In a process forked from one with threads, none of them ever comes. So they are like threads that get no core. */
static void test_nobody_waits_for_a_thread_that_has_not_come(void **state) {
    (void)state;
    an_context *ctx = context_of(THREADS);
    static job j;
    j = (job){.ctx = ctx};
    an_parallel(ctx, MOST_TASKS, count_task, &j);
    wait_for(THREADS - 1, 'S'); /* and holds no lock while this process is copied */
    const pid_t child = fork();
    if (child == 0) {
        alarm(60); /* of one that hangs */
        an_parallel(ctx, MOST_TASKS, count_task, &j);
        for (int64_t i = 0; i < MOST_TASKS; i++)
            if (j.runs[i] != 2) _exit(1);
        an_context_destroy(&ctx);
        _exit(0);
    }
    int result = -1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    an_context_destroy(&ctx);
}

/* ---- when threads are there, and what they do ---- */

static void test_threads_start_with_work_and_end_with_the_context(void **state) {
    (void)state;
    static job j;
    an_context *ctx = context_of(THREADS);
    j = (job){.ctx = ctx};
    an_parallel(ctx, 1, count_task, &j);
    assert_int_equal(threads_now(0), others + 1);
    an_parallel(ctx, 2, count_task, &j);
    assert_int_equal(threads_now(0), others + THREADS);
    wait_for(THREADS - 1, 'S'); /* the one that looks runs */
    an_context_destroy(&ctx);
    wait_for(1, 0);
}

/* OMP_NUM_THREADS may be any number; scratch for a million threads would be what a run fails at. */
static void test_not_more_threads_than_can_be_asked_for(void **state) {
    enum { MOST = 4096 };
    const int before = omp_get_max_threads();
    (void)state;
    omp_set_num_threads(1000000);
    an_context *ctx = context_of(0);
    omp_set_num_threads(before);
    assert_int_equal(an_context_threads(ctx), MOST);
    an_context_destroy(&ctx);
}

static void test_how_threads_wait(void **state) {
    (void)state;
    unsetenv("OMP_WAIT_POLICY");
    an_context *ctx = context_of(1);
    assert_true(an_context_spin(ctx) > 0 && an_context_spin(ctx) < 1e-3);
    an_context_destroy(&ctx);
    ctx = context_of(omp_get_num_procs() + 1);
    assert_true(an_context_spin(ctx) == 0);
    an_context_destroy(&ctx);
    setenv("OMP_WAIT_POLICY", "Passive", 1);
    ctx = context_of(1);
    assert_true(an_context_spin(ctx) == 0);
    an_context_destroy(&ctx);
    setenv("OMP_WAIT_POLICY", "ACTIVE", 1);
    ctx = context_of(omp_get_num_procs() + 1);
    assert_true(isinf(an_context_spin(ctx)));
    an_context_destroy(&ctx);
    unsetenv("OMP_WAIT_POLICY");
}

/* ---- places ---- */

typedef struct {
    atomic_int arrived; /* a bit a thread */
    cpu_set_t sets[THREADS];
} places_job;

/* All threads have one task each: a task waits until all have begun. */
static void place_task(void *user, int64_t index, int thread) {
    places_job *j = user;
    (void)index;
    sched_getaffinity(0, sizeof j->sets[0], &j->sets[thread]);
    atomic_fetch_or(&j->arrived, 1 << thread);
    all_come(&j->arrived, (1 << THREADS) - 1);
}

/* Threads of a host that is bound to a place are not all there: each has the place that OpenMP would give it. */
static void test_places(void **state) {
    (void)state;
    const int places = omp_get_num_places();
    if (omp_get_proc_bind() == omp_proc_bind_false || places < 1) {
        print_message("OMP_PROC_BIND is not set\n");
        skip();
    }
    an_context *ctx = context_of(THREADS);
    static places_job j;
    while (j.arrived != (1 << THREADS) - 1) an_parallel(ctx, THREADS, place_task, &j);
    for (int t = 1; t < THREADS; t++) {
        const int away = THREADS > places ? t * places / THREADS : t;
        int processors[CPU_SETSIZE];
        cpu_set_t expected;
        CPU_ZERO(&expected);
        omp_get_place_proc_ids(away, processors);
        for (int i = 0; i < omp_get_place_num_procs(away); i++) CPU_SET((size_t)processors[i], &expected);
        assert_true(CPU_EQUAL(&j.sets[t], &expected));
    }
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_start_with_work_and_end_with_the_context),
        cmocka_unit_test(test_every_task_runs_once),
        cmocka_unit_test(test_every_task_is_over_when_the_call_returns),
        cmocka_unit_test(test_nobody_waits_for_a_thread_that_has_not_come),
        cmocka_unit_test(test_not_more_threads_than_can_be_asked_for),
        cmocka_unit_test(test_how_threads_wait),
        cmocka_unit_test(test_places),
    };
    others = threads_now(0) - 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
