/* Whole training steps of a config on the ranks that mpirun starts, timed when it is asked for: bench/train.c on
 * several of them.
 *
 *     mpirun -n 2 ranks-openmpi CONFIG THREADS [KEY=VALUE]...      threads are those of a rank
 *
 * How it is asked: serve.h. Rank 0 is asked, and tells the others. A pass is a step.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <anneal/mpi.h>
#include <anneal/open.h>

#include "serve.h"

/* Rank 0 says whether there is another step, all learn it. Between their turns the ranks sleep: a blocking call of MPI
 * would spin, and take the cores from the program whose turn it is. A millisecond is nothing to a step. */
static bool is_next(bool next) {
    int word = next, done = 0;
    MPI_Request request;
    MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) poll(NULL, 0, 1);
    MPI_Wait(&request, MPI_STATUS_IGNORE); /* returns at once */
    return word;
}

static an_status pass(void *user) {
    is_next(true);
    return an_trainer_step(user, NULL);
}

static an_status serve(an_trainer *trainer, int rank) {
    an_status status = AN_OK;
    if (rank == 0) {
        status = bench_serve(pass, trainer);
        if (status == AN_OK) is_next(false); /* a step that fails does so on every rank */
    } else {
        while (status == AN_OK && is_next(false)) status = an_trainer_step(trainer, NULL);
    }
    return status;
}

static an_status run(an_context *ctx, int rank, const an_config_options *options) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_open_options anew;
    an_open_options_init(&anew, sizeof anew);
    anew.fresh = true; /* whatever run has the config's folder */
    an_status status = an_config_create(&config, ctx, options);
    if (status == AN_OK) status = an_trainer_open_config(&trainer, ctx, config, &anew);
    if (status == AN_OK) status = serve(trainer, rank);
    if (status != AN_OK) fprintf(stderr, "ranks: rank %d: %s: %s\n", rank, an_status_name(status), an_last_error(ctx));
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    return status;
}

int main(int argc, char **argv) {
    enum { CONFIG = 1, THREADS, SETTINGS };
    int rank;
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_config_options config_options;
    an_config_options_init(&config_options, sizeof config_options);
    if (argc < SETTINGS) {
        fprintf(stderr, "usage: ranks CONFIG THREADS [KEY=VALUE]...\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    options.threads = (int)strtol(argv[THREADS], NULL, 10);
    config_options.file = argv[CONFIG];
    config_options.sets = (const char *const *)argv + SETTINGS;
    config_options.set_count = argc - SETTINGS;
    an_status status = an_context_create_mpi(&ctx, MPI_COMM_WORLD, &options);
    if (status == AN_OK)
        status = run(ctx, rank, &config_options);
    else
        fprintf(stderr, "ranks: rank %d: %s: %s\n", rank, an_status_name(status), an_last_error(ctx));
    an_context_destroy(&ctx);
    MPI_Finalize();
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
