/* Processes that a launcher started, by the variables that it sets: several are refused, one trains. */
#include <stdlib.h>

#include "anneal/open.h"
#include "open/support.h"

static const char config[] = "run: {dir: launched, steps: 2}\n"
                             "model: {type: mlp, hidden: [4]}\n"
                             "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}\n"
                             "batch: {global: 8}\n";

enum { MOST = 8 };
/* Pairs of names and values; NULL ends them. */
typedef struct {
    const char *pairs[2 * MOST + 1];
    const char *words; /* of the refusal; NULL: it may train */
} launch;

static const launch launches[] = {
    {{"OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "0"},
     "mpirun of Open MPI started several processes (OMPI_COMM_WORLD_SIZE=4)"},
    {{"OMPI_COMM_WORLD_SIZE", "1", "OMPI_COMM_WORLD_RANK", "0", "PMIX_RANK", "0", "PMIX_NAMESPACE", "a"}, NULL},
    {{"PMI_SIZE", "2", "PMI_RANK", "1", "PMI_FD", "6"}, "PMI_SIZE=2"},
    {{"PMI_SIZE", "1", "PMI_RANK", "0", "MPI_LOCALNRANKS", "1", "MPI_LOCALRANKID", "0"}, NULL},
    {{"MPI_LOCALNRANKS", "2", "MPI_LOCALRANKID", "0"}, "MPI_LOCALNRANKS=2"},
    {{"MV2_COMM_WORLD_SIZE", "8", "MV2_COMM_WORLD_RANK", "3"}, "MVAPICH"},
    {{"PALS_RANKID", "5", "PALS_LOCAL_SIZE", "1"}, "PALS_RANKID=5"},
    {{"PALS_RANKID", "0", "PALS_LOCAL_SIZE", "2"}, "PALS_LOCAL_SIZE=2"},
    {{"PMIX_RANK", "1", "PMIX_NAMESPACE", "slurm.pmix.1.0"}, "PMIX_RANK=1"},
    /* Rank 0 of srun --mpi=pmix knows only from Slurm that it is not alone. */
    {{"PMIX_RANK", "0", "PMIX_NAMESPACE", "a", "SLURM_PROCID", "0", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4"},
     "SLURM_STEP_NUM_TASKS=4"},
    {{"PMIX_RANK", "0", "PMIX_NAMESPACE", "a", "SLURM_PROCID", "0", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "1"},
     NULL},
    {{"WORLD_SIZE", "2", "RANK", "0", "LOCAL_RANK", "0", "MASTER_ADDR", "a"},
     "ranks find each other through MPI, which torchrun does not start. Use mpirun or srun, or 'anneal train CONFIG -n "
     "2'"},
    {{"WORLD_SIZE", "1", "RANK", "0", "LOCAL_RANK", "0", "MASTER_ADDR", "a"}, NULL},
    {{"WORLD_SIZE", "2"}, NULL}, /* anybody may call a variable so */
    /* A batch script of a job with four tasks is one process; a step that srun started is not. */
    {{"SLURM_JOB_ID", "7", "SLURM_NTASKS", "4", "SLURM_PROCID", "0", "SLURM_LOCALID", "0"}, NULL},
    {{"SLURM_NTASKS", "4", "SLURM_PROCID", "0", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4"}, "srun"},
    {{"SLURM_NTASKS", "4", "SLURM_PROCID", "0", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "1"}, NULL},
    /* mpirun -n 1 in a job of four nodes: srun started its helpers. */
    {{"SLURM_PROCID", "2", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4", "PMI_SIZE", "1", "PMI_RANK", "0"}, NULL},
    {{"OMPI_COMM_WORLD_SIZE", "many", "OMPI_COMM_WORLD_RANK", "0"}, NULL},
    {{"OMPI_COMM_WORLD_SIZE", "", "OMPI_COMM_WORLD_RANK", ""}, NULL},
    {{"PMI_SIZE", "99999999999999999999", "PMI_RANK", "0"}, NULL},
};

static void set(const launch *l, bool on) {
    for (int i = 0; l->pairs[i]; i += 2)
        assert_int_equal(on ? setenv(l->pairs[i], l->pairs[i + 1], 1) : unsetenv(l->pairs[i]), 0);
}

static void test_several_processes_are_refused(void **state) {
    (void)state;
    write_sums();
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        an_trainer *trainer = NULL;
        set(&launches[i], true);
        if (launches[i].words)
            refused(config, AN_ERR_UNSUPPORTED, launches[i].words);
        else
            trainer = open_run(config);
        an_trainer_destroy(&trainer);
        set(&launches[i], false);
    }
}

static void test_a_plan_is_no_training(void **state) {
    an_trainer *trainer = NULL;
    an_config *parsed = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    (void)state;
    write_sums();
    write_text("run.yaml", config);
    options.file = "run.yaml";
    open.purpose = AN_OPEN_PLAN;
    set(&launches[0], true);
    OK(ctx, an_config_create(&parsed, ctx, &options));
    OK(ctx, an_trainer_open_config(&trainer, ctx, parsed, &open));
    set(&launches[0], false);
    an_trainer_destroy(&trainer);
    an_config_destroy(&parsed);
}

/* A trainer without a config is refused as well, and neither is where the host says that each process is meant to
 * train. */
static void test_the_host_may_train_alone(void **state) {
    an_context *hosts[2] = {NULL};
    float inputs[8 * 4] = {0}, targets[8 * 2] = {0};
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    (void)state;
    set(&launches[0], true);
    OK(NULL, an_context_create(&hosts[0], &options));
    options.alone = true;
    OK(NULL, an_context_create(&hosts[1], &options));
    for (int i = 0; i < 2; i++) {
        an_graph *graph = NULL;
        an_dataset *data = NULL;
        an_trainer *trainer = NULL;
        an_trainer_options train;
        an_trainer_options_init(&train, sizeof train);
        const an_array arrays[] = {array_of(inputs, AN_DTYPE_F32, 2, (const int64_t[]){8, 4}),
                                   array_of(targets, AN_DTYPE_F32, 2, (const int64_t[]){8, 2})};
        static const char *const names[] = {"x", "y"};
        an_array_source source;
        an_array_source_init(&source, sizeof source);
        source.array_count = 2;
        source.arrays = arrays;
        source.names = names;
        an_batch_options batch;
        an_batch_options_init(&batch, sizeof batch);
        batch.global = 4;
        train.batch = &batch;
        OK(hosts[i], small_mlp(&graph, hosts[i]));
        OK(hosts[i], an_dataset_create_arrays(&data, hosts[i], &source));
        if (i == 0)
            FAILS(hosts[i], an_trainer_create(&trainer, graph, data, NULL, &train), AN_ERR_UNSUPPORTED, "Open MPI");
        else
            OK(hosts[i], an_trainer_create(&trainer, graph, data, NULL, &train));
        an_trainer_destroy(&trainer);
        an_dataset_destroy(&data);
        an_graph_destroy(&graph);
        an_context_destroy(&hosts[i]);
    }
    set(&launches[0], false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_several_processes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_plan_is_no_training, setup, teardown),
        cmocka_unit_test(test_the_host_may_train_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
