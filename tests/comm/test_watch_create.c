/* A watch of a context: what it needs, what it leaves behind, and what a rank that stands still looks like from
 * outside. */
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "anneal/heartbeat.h"
#include "anneal/watch.h"
#include "base/heartbeat.h"
#include "base/system/clock.h"
#include "support/support.h"

static an_heartbeat heartbeat;
static ledger memory;

static an_context *make_context(bool with_heartbeat) {
    an_context *ctx = NULL;
    an_allocator allocator = {sizeof allocator, ledger_allocate, ledger_release, &memory};
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_heartbeat_init(&heartbeat, sizeof heartbeat);
    options.threads = 1;
    options.allocator = &allocator;
    options.heartbeat = with_heartbeat ? &heartbeat : NULL;
    OK(NULL, an_context_create(&ctx, &options));
    return ctx;
}

static void it_needs_a_heartbeat_and_good_options(void **state) {
    (void)state;
    an_watch *watch = NULL;
    an_watch_options options;
    an_watch_options_init(&options, sizeof options);
    assert_true(options.report_after == 10 && options.timeout == 900);
    an_context *ctx = make_context(false);
    assert_int_equal(an_watch_create(&watch, ctx, &options), AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(ctx), "heartbeat"));
    an_context_destroy(&ctx);
    ctx = make_context(true);
    options.report_after = -1;
    assert_int_equal(an_watch_create(&watch, ctx, &options), AN_ERR_ARGUMENT);
    options.report_after = (double)NAN;
    assert_int_equal(an_watch_create(&watch, ctx, &options), AN_ERR_ARGUMENT);
    options.report_after = 1;
    options.supervisor = "somewhere";
    assert_int_equal(an_watch_create(&watch, ctx, &options), AN_ERR_ARGUMENT);
    assert_null(watch);
    an_context_destroy(&ctx);
    assert_int_equal(memory.held, 0);
}

/* The n-th allocation fails, for every n. */
static void without_memory_there_is_none(void **state) {
    (void)state;
    an_context *ctx = make_context(true);
    an_watch *watch = NULL;
    const size_t before = memory.held;
    int failures = 0;
    memory.once = true;
    for (;; failures++) {
        memory.fail_at = memory.calls + failures + 1;
        const an_status status = an_watch_create(&watch, ctx, NULL);
        memory.fail_at = 0;
        if (status == AN_OK) break;
        assert_int_equal(status, AN_ERR_MEMORY);
        assert_null(watch);
        assert_int_equal(memory.held, before);
    }
    assert_true(failures > 0);
    an_watch_destroy(&watch);
    assert_null(watch);
    assert_int_equal(memory.held, before);
    an_context_destroy(&ctx);
}

typedef struct {
    atomic_int stalls, ends;
    char text[1024];
} heard;

static void hear(void *user, an_watch_event event, const char *text, bool is_told) {
    heard *h = user;
    assert_false(is_told);
    if (event == AN_WATCH_STALL) {
        snprintf(h->text, sizeof h->text, "%s", text);
        h->stalls++;
    } else {
        h->ends++;
    }
}

static void a_process_alone_is_watched_too(void **state) {
    (void)state;
    static heard h;
    an_context *ctx = make_context(true);
    an_watch *watch = NULL;
    an_watch_options options;
    an_watch_options_init(&options, sizeof options);
    options.report_after = 0.5;
    options.report = hear;
    options.user = &h;
    OK(ctx, an_watch_create(&watch, ctx, &options));
    double end = an_clock_seconds() + 1.5;
    while (an_clock_seconds() < end) { /* it gets on */
        an_heartbeat_say_place(ctx, AN_HEARTBEAT_FORWARD, "blocks.0", "attention");
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_int_equal(h.stalls, 0);
    end = an_clock_seconds() + 60;
    while (h.stalls == 0 && an_clock_seconds() < end) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(h.stalls, 1);
    assert_non_null(strstr(h.text, "rank 0 (process "));
    assert_non_null(strstr(h.text, "is at \"forward blocks.0 (attention)\""));
    end = an_clock_seconds() + 60;
    while (h.ends == 0 && an_clock_seconds() < end) {
        an_heartbeat_beat(ctx, AN_HEARTBEAT_OWNER);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_int_equal(h.ends, 1);
    an_watch_destroy(&watch);
    an_context_destroy(&ctx);
    assert_int_equal(memory.held, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_needs_a_heartbeat_and_good_options),
        cmocka_unit_test(without_memory_there_is_none),
        cmocka_unit_test(a_process_alone_is_watched_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
