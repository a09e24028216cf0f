/* A simulation that trains a stand-in for its most expensive part while it runs, and then uses it.
 *
 *     cmake -B build -DCMAKE_PREFIX_PATH=<where anneal is installed>
 *     cmake --build build && build/surrogate surrogate.yaml
 *
 * CELLS cells each hold three substances that react with each other (a stiff system, integrated with many small steps)
 * and drift to their neighbours. For the first part of the run every cell is computed exactly, and the results train a
 * network: what three amounts become within one time step. Then the network answers, and the program watches how far it
 * is off.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <anneal/predict.h>
#include <anneal/train.h>

enum { CELLS = 256, SPECIES = 3, TEACHING = 3000, USING = 200, SUBSTEPS = 60 };

/* The reactions of one cell during a time step: exact, and slow. */
static void react(const double *before, double *after) {
    double a = before[0], b = before[1], c = before[2];
    const double dt = 0.05 / SUBSTEPS;
    for (int i = 0; i < SUBSTEPS; i++) {
        const double slow = 0.4 * a, fast = 30 * b * c, square = 30 * b * b;
        a += dt * (-slow + fast);
        b += dt * (slow - fast - square);
        c += dt * square;
    }
    after[0] = a;
    after[1] = b;
    after[2] = c;
}

/* Amounts drift to the neighbours, and a source moves around, so that the cells go on to see new states. */
static void drift(double *cells, int step) {
    static double next[CELLS * SPECIES];
    for (int i = 0; i < CELLS; i++)
        for (int s = 0; s < SPECIES; s++) {
            const int left = (i + CELLS - 1) % CELLS, right = (i + 1) % CELLS;
            next[i * SPECIES + s] =
                0.98 * cells[i * SPECIES + s] + 0.01 * (cells[left * SPECIES + s] + cells[right * SPECIES + s]);
        }
    const int source = step * 7 % CELLS;
    next[source * SPECIES] = 1;
    next[source * SPECIES + 1] = 0.3 * (1 + sin(0.01 * step));
    next[source * SPECIES + 2] = 0.2;
    memcpy(cells, next, sizeof next);
}

static int fail(const char *message) {
    fprintf(stderr, "surrogate: %s\n", message);
    return EXIT_FAILURE;
}

/* Trains while the simulation runs: its arrays are handed over as they are. */
static an_status teach(an_trainer *trainer, double *cells) {
    static double after[CELLS * SPECIES], change[CELLS * SPECIES];
    for (int step = 0; step < TEACHING; step++) {
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        for (int i = 0; i < CELLS; i++) react(cells + i * SPECIES, after + i * SPECIES);
        for (int i = 0; i < CELLS * SPECIES; i++)
            change[i] = 10 * (after[i] - cells[i]); /* near 1 is easiest to learn */
        const an_status status = an_trainer_step_on_f64(trainer, CELLS, cells, change, &metrics);
        if (status != AN_OK) return status;
        if (step % 500 == 0 || step == TEACHING - 1)
            printf("step %4d  loss %.3e  rate %.1e\n", step + 1, metrics.loss, metrics.rate);
        memcpy(cells, after, sizeof after);
        drift(cells, step);
    }
    return AN_OK;
}

/* Uses what was learned, beside the exact reactions, and tells the relative error of a time step. */
static an_status use(an_predictor *predictor, double *cells, double *worst) {
    static double change[CELLS * SPECIES], exact[CELLS * SPECIES];
    double error = 0, size = 0;
    for (int step = 0; step < USING; step++) {
        const an_status status = an_predictor_run_f64(predictor, CELLS, cells, change);
        if (status != AN_OK) return status;
        for (int i = 0; i < CELLS; i++) react(cells + i * SPECIES, exact + i * SPECIES);
        for (int i = 0; i < CELLS * SPECIES; i++) {
            cells[i] += change[i] / 10;
            error += (cells[i] - exact[i]) * (cells[i] - exact[i]);
            size += exact[i] * exact[i];
        }
        drift(cells, TEACHING + step);
    }
    *worst = sqrt(error / size);
    return AN_OK;
}

int main(int argc, char **argv) {
    static double cells[CELLS * SPECIES];
    an_context *ctx = NULL;
    an_trainer *trainer = NULL;
    an_predictor *predictor = NULL;
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    double error = 0;
    if (argc != 2) return fail("usage: surrogate CONFIG");
    for (int i = 0; i < CELLS; i++) cells[i * SPECIES] = 0.5 + 0.5 * cos(0.05 * i);

    options.max_samples = CELLS;
    an_status status = an_context_create(&ctx, NULL);
    if (status == AN_OK) status = an_trainer_open(&trainer, ctx, argv[1], NULL);
    if (status == AN_OK) status = teach(trainer, cells);
    if (status == AN_OK) status = an_predictor_create(&predictor, trainer, &options);
    if (status != AN_OK) {
        fail(an_last_error(ctx));
    } else if ((status = use(predictor, cells, &error)) != AN_OK) {
        fail(an_last_error(NULL));
    } else {
        printf("\nthe network in the place of the reactions, for %d steps of %d cells: relative error %.2e\n", USING,
               CELLS, error);
    }
    an_predictor_destroy(&predictor);
    an_trainer_destroy(&trainer);
    an_context_destroy(&ctx);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
