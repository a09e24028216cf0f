/* The weights that ranks own, on every rank: rounds of a gathering (tests/comm/gathers.h). */
#ifndef TESTS_COMM_CONFORMANCE_GATHER_H
#define TESTS_COMM_CONFORMANCE_GATHER_H

#include "comm/gathers.h"
#include "comm/ranks.h"

/* Short messages, which a library may keep, and long ones, which wait for their receiver. */
static void test_gather(an_comm *comm) {
    static const gather_setting settings[] = {
        {.page_bytes = {256, 128}, .in_flight = 1, .is_in_place = true},
        {.page_bytes = {1 << 14, 1 << 13}, .in_flight = 2, .message_bytes = 50000},
        {.page_bytes = {256, 128}, .in_flight = 2, .uses_window = true},
        {.page_bytes = {1 << 14, 1 << 13}, .in_flight = 1, .uses_window = true, .is_in_place = true},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        an_comm *part;
        an_context *ctx = context_on(comm, &part, NULL);
        gather_test t;
        gather_run(&t, ctx, &settings[i]);
        if (*t.problem) fprintf(stderr, "%s\n", t.problem);
        CHECK(!*t.problem);
        end_context(&ctx, &part);
    }
}

#endif
