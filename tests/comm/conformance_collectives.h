/* The public collectives (anneal/ranks.h) against what they promise, computed by each rank for itself. */
#ifndef TESTS_COMM_CONFORMANCE_COLLECTIVES_H
#define TESTS_COMM_CONFORMANCE_COLLECTIVES_H

#include <fenv.h>

#include "anneal/ranks.h"
#include "comm/ranks.h"

static void test_moves(an_comm *comm) {
    enum { MOST = 3000 };
    static const int64_t counts[] = {0, 1, 2, 7, 1000, MOST};
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    const int ranks = comm->ranks, rank = comm->rank;
    int64_t *all = calloc((size_t)MOST * (size_t)ranks, sizeof *all), mine[MOST];
    ctx->mesh->piece = 4099; /* so that pieces are cut, also inside of elements */
    CHECK(all && an_context_rank(ctx) == rank && an_context_ranks(ctx) == ranks);
    OK(ctx, an_ranks_barrier(ctx));
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const int64_t count = counts[c];
        for (int root = 0; root < ranks; root++) {
            for (int64_t i = 0; i < MOST; i++) mine[i] = i < count ? rank * 10000 + i : -1;
            OK(ctx, an_ranks_broadcast(ctx, mine, count, AN_DTYPE_I64, root));
            for (int64_t i = 0; i < MOST; i++) CHECK(mine[i] == (i < count ? root * 10000 + i : -1));

            for (int64_t i = 0; i < MOST; i++) mine[i] = rank * 10000 + i;
            memset(all, 0, (size_t)MOST * (size_t)ranks * sizeof *all);
            OK(ctx, an_ranks_gather(ctx, mine, rank == root ? all : NULL, count, AN_DTYPE_I64, root));
            for (int64_t i = 0; i < MOST * ranks; i++)
                CHECK(all[i] == (rank == root && i < count * ranks ? i / count * 10000 + i % count : 0));
        }
        OK(ctx, an_ranks_all_gather(ctx, mine, all, count, AN_DTYPE_I64));
        for (int64_t i = 0; i < count * ranks; i++) CHECK(all[i] == i / count * 10000 + i % count);
    }
    /* From its own place in the result, and with elements of any type. */
    uint8_t bytes[64] = {0};
    bytes[rank] = (uint8_t)(rank + 1);
    OK(ctx, an_ranks_all_gather(ctx, &bytes[rank], bytes, 1, AN_DTYPE_U8));
    for (int i = 0; i < ranks; i++) CHECK(bytes[i] == i + 1);
    free(all);
    end_context(&ctx, &part);
}

/* Numbers whose sum depends on the order. */
static double term(int rank, int64_t i) {
    return (rank % 2 ? -1 : 1) * (1.0 / (3 + rank) + 1e7 * (double)((i * 7 + rank) % 5));
}

static double sum_of(int first, int end, int64_t i) {
    int half = 1;
    if (end - first == 1) return term(first, i);
    while (half * 2 < end - first) half *= 2;
    return sum_of(first, first + half, i) + sum_of(first + half, end, i);
}

static float sum_of_f32(int first, int end, int64_t i) {
    int half = 1;
    if (end - first == 1) return (float)term(first, i);
    while (half * 2 < end - first) half *= 2;
    return sum_of_f32(first, first + half, i) + sum_of_f32(first + half, end, i);
}

/* More than a chunk, which is a mebibyte. */
static void test_sums(an_comm *comm) {
    static const int64_t counts[] = {0, 1, 5, 1000, 140000};
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    const int ranks = comm->ranks, rank = comm->rank;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const int64_t count = counts[c], all = count * ranks;
        double *a = malloc(((size_t)all + 1) * sizeof *a), *b = malloc(((size_t)count + 1) * sizeof *b);
        float *f = malloc(((size_t)count + 1) * sizeof *f);
        CHECK(a && b && f);
        for (int64_t i = 0; i < all; i++) a[i] = term(rank, i);
        for (int64_t i = 0; i < count; i++) f[i] = (float)term(rank, i);
        OK(ctx, an_ranks_reduce_scatter(ctx, a, b, count, AN_DTYPE_F64, AN_REDUCE_SUM));
        for (int64_t i = 0; i < count; i++) CHECK(b[i] == sum_of(0, ranks, rank * count + i));
        OK(ctx, an_ranks_all_reduce(ctx, a, all, AN_DTYPE_F64, AN_REDUCE_SUM));
        for (int64_t i = 0; i < all; i++) CHECK(a[i] == sum_of(0, ranks, i));
        OK(ctx, an_ranks_all_reduce(ctx, f, count, AN_DTYPE_F32, AN_REDUCE_SUM));
        for (int64_t i = 0; i < count; i++) CHECK(f[i] == sum_of_f32(0, ranks, i));
        free(a);
        free(b);
        free(f);
    }
    end_context(&ctx, &part);
}

/* Sums do not depend on how a rank rounds. */
static void test_rounding(an_comm *comm) {
    static const int directions[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    double data[100];
    for (int64_t i = 0; i < 100; i++) data[i] = term(comm->rank, i);
    fesetround(directions[comm->rank % 3]);
    OK(ctx, an_ranks_all_reduce(ctx, data, 100, AN_DTYPE_F64, AN_REDUCE_SUM));
    CHECK(fegetround() == directions[comm->rank % 3]);
    fesetround(FE_TONEAREST);
    for (int64_t i = 0; i < 100; i++) CHECK(data[i] == sum_of(0, comm->ranks, i));
    end_context(&ctx, &part);
}

static void test_reductions(an_comm *comm) {
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    const int ranks = comm->ranks, rank = comm->rank;
    int32_t i32[2] = {INT32_MAX, rank == 0 ? INT32_MIN : rank}, wrapped;
    int64_t i64[2] = {-rank, (int64_t)rank << 40};
    double f64[3] = {rank, -rank, rank == ranks - 1 ? (double)NAN : 1};
    float f32[3] = {(float)rank, (float)-rank, rank == 0 ? NAN : 1};
    OK(ctx, an_ranks_all_reduce(ctx, i32, 1, AN_DTYPE_I32, AN_REDUCE_SUM));
    wrapped = (int32_t)((uint32_t)INT32_MAX * (uint32_t)ranks);
    CHECK(i32[0] == wrapped);
    OK(ctx, an_ranks_all_reduce(ctx, i32 + 1, 1, AN_DTYPE_I32, AN_REDUCE_MIN));
    CHECK(i32[1] == INT32_MIN);
    OK(ctx, an_ranks_all_reduce(ctx, i64, 1, AN_DTYPE_I64, AN_REDUCE_MIN));
    OK(ctx, an_ranks_all_reduce(ctx, i64 + 1, 1, AN_DTYPE_I64, AN_REDUCE_SUM));
    CHECK(i64[0] == -(ranks - 1) && i64[1] == (int64_t)(ranks * (ranks - 1) / 2) << 40);
    OK(ctx, an_ranks_all_reduce(ctx, f64, 3, AN_DTYPE_F64, AN_REDUCE_MAX));
    CHECK(f64[0] == ranks - 1 && f64[1] == 0 && isnan(f64[2]));
    OK(ctx, an_ranks_all_reduce(ctx, f32, 3, AN_DTYPE_F32, AN_REDUCE_MIN));
    CHECK(f32[0] == 0 && f32[1] == (float)-(ranks - 1) && isnan(f32[2]));
    end_context(&ctx, &part);
}

/* A mistake of one rank is the same error on all, and the next call works. */
static void test_disagreements(an_comm *comm) {
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    const int rank = comm->rank, ranks = comm->ranks, last = ranks - 1;
    double data[16] = {0};
    char words[128];
    FAILS(ctx, an_ranks_all_reduce(ctx, rank == last ? NULL : data, 4, AN_DTYPE_F64, AN_REDUCE_SUM), AN_ERR_ARGUMENT,
          "an_ranks_all_reduce: data is NULL");
    FAILS(ctx, an_ranks_all_reduce(ctx, data, 4, AN_DTYPE_BF16, AN_REDUCE_SUM), AN_ERR_DTYPE, "bf16");
    FAILS(ctx, an_ranks_all_reduce(ctx, data, 4, AN_DTYPE_F64, (an_reduce_kind)9), AN_ERR_ARGUMENT, "9");
    FAILS(ctx, an_ranks_broadcast(ctx, data, -1, AN_DTYPE_F64, 0), AN_ERR_ARGUMENT, "-1");
    FAILS(ctx, an_ranks_broadcast(ctx, data, 1, AN_DTYPE_F64, ranks), AN_ERR_ARGUMENT, "root");
    FAILS(ctx, an_ranks_broadcast(ctx, data, 1, (an_dtype)99, 0), AN_ERR_ARGUMENT, "99");
    FAILS(ctx, an_ranks_all_gather(ctx, data, data, INT64_MAX, AN_DTYPE_F64), AN_ERR_OVERFLOW, "an_ranks_all_gather");
    if (ranks > 1) {
        snprintf(words, sizeof words,
                 "rank 0 called an_ranks_barrier, but rank %d called an_ranks_broadcast of 3 f64 with root 1", last);
        FAILS(ctx, rank == last ? an_ranks_broadcast(ctx, data, 3, AN_DTYPE_F64, 1) : an_ranks_barrier(ctx),
              AN_ERR_ORDER, words);
        snprintf(words, sizeof words, "an_ranks_all_reduce of 4 f64, max");
        FAILS(ctx, an_ranks_all_reduce(ctx, data, 4, AN_DTYPE_F64, rank == last ? AN_REDUCE_MAX : AN_REDUCE_MIN),
              AN_ERR_ORDER, words);
        FAILS(ctx, an_ranks_all_gather(ctx, data, data, rank == last ? 1 : 0, AN_DTYPE_F64), AN_ERR_ORDER,
              "an_ranks_all_gather of 0 f64");
    }
    OK(ctx, an_ranks_barrier(ctx));
    FAILS(NULL, an_ranks_barrier(NULL), AN_ERR_ARGUMENT, "ctx");
    end_context(&ctx, &part);
}

#endif
