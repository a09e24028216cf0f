/* A learning-rate range test, and what its picture needs to know. */
#ifndef AN_CLI_FIND_LR_TEST_H
#define AN_CLI_FIND_LR_TEST_H

#include <stdio.h>

#include "cli/find_lr/curve.h"

typedef enum find_lr_end {
    FIND_LR_DONE,      /* all rates were tried */
    FIND_LR_ROSE,      /* the smoothed loss exceeded FIND_LR_DIVERGED times its lowest value */
    FIND_LR_NOT_FINITE /* the loss or a gradient was not finite */
} find_lr_end;

typedef struct find_lr_test {
    const char *config; /* its file */
    double from, to;    /* rates */
    int64_t steps;
    double config_rate; /* optimizer.lr of the config */
    find_lr_curve curve;
    find_lr_end end;
    int proposal; /* a point of the curve; -1: none */
} find_lr_test;

/* The curve as an SVG picture. */
void find_lr_draw(FILE *file, const find_lr_test *test);

#endif
