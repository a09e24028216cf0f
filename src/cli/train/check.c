/* anneal train --check: runs the real program next to a plain one, step by step, and shows where they differ. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/train/open.h"

enum { SHOWN = 10 };

/* How far the weights of a parameter are apart. */
typedef struct {
    const char *name;
    double difference; /* its norm, over that of the plain weights */
} distance;

static double relative(double a, double b) {
    return a == b ? 0 : fabs(a - b) / fmax(fabs(a), fabs(b));
}

static int by_difference(const void *a, const void *b) {
    const double x = ((const distance *)a)->difference, y = ((const distance *)b)->difference;
    return (x < y) - (x > y);
}

/* A parameter of a trainer as f64; NULL: there is no memory, or it cannot be read. The caller frees it. */
static double *weights_of(an_trainer *trainer, int64_t index, an_param_info *info) {
    an_params *params = an_trainer_params(trainer);
    if (an_params_info(params, index, info) != AN_OK) return NULL;
    double *values = malloc((size_t)info->elements * sizeof *values);
    an_array array = {.data = values, .dtype = info->dtype, .ndims = info->ndims};
    for (int d = 0; d < info->ndims; d++) array.dims[d] = info->dims[d];
    if (!values || an_params_get(params, info->name, AN_PART_WEIGHT, &array) != AN_OK) {
        free(values);
        return NULL;
    }
    if (info->dtype == AN_DTYPE_F32) /* widened in place, from the last on */
        for (int64_t i = info->elements; i-- > 0;) values[i] = (double)((float *)values)[i];
    return values;
}

static bool measure(an_trainer *real, an_trainer *plain, int64_t index, distance *d) {
    an_param_info info, same;
    an_param_info_init(&info, sizeof info);
    an_param_info_init(&same, sizeof same);
    double *a = weights_of(real, index, &info), *b = weights_of(plain, index, &same);
    const bool good = a && b;
    double difference = 0, size = 0;
    for (int64_t i = 0; good && i < info.elements; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    *d = (distance){info.name, size > 0 ? sqrt(difference / size) : sqrt(difference)};
    free(a);
    free(b);
    return good;
}

static int show_parameters(cli_training *real, cli_training *plain) {
    const int64_t count = an_params_count(an_trainer_params(real->trainer));
    distance *all = calloc((size_t)count + 1, sizeof *all);
    bool good = all != NULL;
    for (int64_t i = 0; good && i < count; i++) good = measure(real->trainer, plain->trainer, i, &all[i]);
    if (!good) {
        free(all);
        return cli_fail(real->call, "not enough memory to compare the weights");
    }
    qsort(all, (size_t)count, sizeof *all, by_difference);
    printf("\nweights with the largest relative differences\n");
    for (int64_t i = 0; i < count && i < SHOWN; i++) printf("  %9.2e  %s\n", all[i].difference, all[i].name);
    free(all);
    return CLI_DONE;
}

static int take_steps(cli_training *real, cli_training *plain, int64_t steps) {
    double worst = 0;
    printf("%8s%14s%14s%12s%14s%14s%12s\n", "step", "loss", "plain", "difference", "norm", "plain", "difference");
    for (int64_t i = 0; i < steps && an_trainer_next_step(real->trainer) < an_trainer_steps(real->trainer); i++) {
        an_step_metrics a, b;
        an_step_metrics_init(&a, sizeof a);
        an_step_metrics_init(&b, sizeof b);
        an_status status = an_trainer_step(real->trainer, &a);
        if (status != AN_OK) return cli_refuse(real->call, real->ctx, NULL, status);
        status = an_trainer_step(plain->trainer, &b);
        if (status != AN_OK) return cli_refuse(real->call, plain->ctx, NULL, status);
        const double difference = relative(a.loss, b.loss);
        worst = difference > worst ? difference : worst;
        printf("%8lld%14.6f%14.6f%12.1e%14.6f%14.6f%12.1e\n", (long long)a.step, a.loss, b.loss, difference, a.norm,
               b.norm, relative(a.norm, b.norm));
        fflush(stdout);
    }
    printf("\nlargest difference in the loss: %.1e\n", worst);
    return CLI_DONE;
}

int cli_check(const cli_call *call, const cli_opening *opening, int64_t steps) {
    cli_training real, plain = {0};
    cli_opening beside = *opening;
    beside.plain = true;
    beside.isa = AN_ISA_BASE;
    cli_opening anew = *opening;
    anew.fresh = true;
    int code = cli_training_open(call, &anew, &real);
    if (code == CLI_DONE) code = cli_training_open(call, &beside, &plain);
    if (code == CLI_DONE) {
        const an_dtype precision = real.info.precision == AN_DTYPE_NONE ? real.info.dtype : real.info.precision;
        printf("%s, %s, compared with %s, base instructions and no fusion\n\n", an_dtype_name(precision),
               an_isa_name(an_context_isa(real.ctx)), an_dtype_name(plain.info.dtype));
        code = take_steps(&real, &plain, steps);
    }
    if (code == CLI_DONE) code = show_parameters(&real, &plain);
    cli_training_close(&plain);
    cli_training_close(&real);
    return code == CLI_DONE ? cli_finish(call) : code;
}
