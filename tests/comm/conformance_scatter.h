/* The gradients of leaves, on the ranks that own them: steps of a scattering (tests/comm/scatters.h). */
#ifndef TESTS_COMM_CONFORMANCE_SCATTER_H
#define TESTS_COMM_CONFORMANCE_SCATTER_H

#include "comm/ranks.h"
#include "comm/scatters.h"

/* Short messages, which a library may keep, and long ones, which wait for their receiver; whole rounds, and a last
 * one with fewer leaves than ranks. */
static void test_scatter(an_comm *comm) {
    static const scatter_setting settings[] = {
        {.leaves = {0, 7, 7}, .dtype = AN_DTYPE_F32, .bucket_pages = 1, .in_flight = 2, .waits_after = 2},
        {.leaves = {0, 8, 8}, .dtype = AN_DTYPE_F64, .in_flight = 1, .waits_after = 1},
        {.leaves = {0, 9, 9}, .dtype = AN_DTYPE_F32, .is_bf16 = true, .waits_after = 3},
        {.leaves = {3, 8, 12}, .dtype = AN_DTYPE_F32},
        {.leaves = {0, 1, 1}, .dtype = AN_DTYPE_F64, .waits_after = 2},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        an_comm *part;
        an_context *ctx = context_on(comm, &part, NULL);
        scatter_test t;
        scatter_run(&t, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &settings[i]);
        if (*t.problem) fprintf(stderr, "%s\n", t.problem);
        CHECK(!*t.problem);
        end_context(&ctx, &part);
    }
}

#endif
