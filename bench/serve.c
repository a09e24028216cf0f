#include "serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_TEXT = 256 };

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static an_status answer(an_status (*pass)(void *user), void *user, int64_t warm, int64_t passes, double *took) {
    an_status status = AN_OK;
    for (int64_t i = 0; i < warm && status == AN_OK; i++) status = pass(user);
    for (int64_t i = 0; i < passes && status == AN_OK; i++) {
        const double begin = seconds();
        status = pass(user);
        took[i] = seconds() - begin;
    }
    if (status != AN_OK) return status;
    qsort(took, (size_t)passes, sizeof *took, by_value);
    printf("%.9f\n", took[passes / 2]);
    fflush(stdout);
    return AN_OK;
}

an_status bench_serve(an_status (*pass)(void *user), void *user) {
    char line[MOST_TEXT];
    an_status status = AN_OK;
    printf("ready\n");
    fflush(stdout);
    while (status == AN_OK && fgets(line, sizeof line, stdin)) {
        char *rest;
        const int64_t warm = strtoll(line, &rest, 10), passes = strtoll(rest, NULL, 10);
        double *took = passes > 0 ? calloc((size_t)passes, sizeof *took) : NULL;
        status = took ? answer(pass, user, warm, passes, took) : AN_ERR_ARGUMENT;
        free(took);
    }
    return status;
}
