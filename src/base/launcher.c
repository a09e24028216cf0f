#include "base/launcher.h"

#include <stdlib.h>

#include "base/context.h"

typedef struct {
    const char *name, *size, *rank; /* the variables; size NULL: the launcher has none for it */
    const char *also; /* a variable that must be there too, because others use the same names; NULL: none */
} launcher_variables;

/* A launcher says itself how many processes it started. */
static const launcher_variables launchers[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL},
    {"mpiexec of MPICH or Intel MPI", "PMI_SIZE", "PMI_RANK", NULL},
    {"mpiexec of MPICH or Intel MPI", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", NULL}, /* of this host */
    {"mpirun of MVAPICH", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", NULL},
    {"mpiexec of Cray PALS", "PALS_LOCAL_SIZE", "PALS_RANKID", NULL}, /* the size is that of this host */
    {"a PMIx launcher", NULL, "PMIX_RANK", "PMIX_NAMESPACE"},
    {"torchrun", "WORLD_SIZE", "RANK", "LOCAL_RANK"},
};

/* Slurm has variables for a job and for a step of it. In a batch script SLURM_NTASKS and SLURM_PROCID (0) are set as well, and a
 * program there is one process. Only srun starts several, and only its steps have SLURM_STEP_NUM_TASKS. */
static const launcher_variables slurm = {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_ID"};

/* A whole number from 0 on; -1: the variable is not set, or has something else in it. */
static int64_t number_of(const char *variable) {
    enum { BASE = 10 };
    char *end;
    const char *text = variable ? getenv(variable) : NULL; /* NOLINT(concurrency-mt-unsafe): read only */
    if (!text || *text < '0' || *text > '9') return -1;
    const long long number = strtoll(text, &end, BASE);
    return *end || number > INT32_MAX ? -1 : number;
}

/* Whether the launcher's variables are set. */
static bool look(const launcher_variables *v, an_launcher *l) {
    const int64_t size = number_of(v->size), rank = number_of(v->rank);
    if (rank < 0 || (v->also && !getenv(v->also))) return false; /* NOLINT(concurrency-mt-unsafe): read only */
    *l = (an_launcher){.name = v->name,
                       .variable = size > rank ? v->size : v->rank,
                       .value = size > rank ? size : rank,
                       .processes = size > rank ? size : rank + 1};
    return true;
}

/* An mpirun inside a Slurm job may start its own helpers with srun, one for each node; what they start has srun's variables too. So
 * Slurm's count only if no other launcher has set its own. */
bool an_launcher_find(an_launcher *launcher) {
    bool is_launched = false;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (!look(&launchers[i], launcher)) continue;
        if (launcher->processes > 1) return true;
        is_launched = true;
    }
    return !is_launched && look(&slurm, launcher) && launcher->processes > 1;
}

an_status an_launcher_check(an_context *ctx) {
    an_launcher l;
    if (ctx->alone || !an_launcher_find(&l)) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_UNSUPPORTED,
        "%s started several processes (%s=%lld), and each of them would train the whole model on its own. Training "
        "with several ranks is not supported yet: start one process, without a launcher or with -n 1",
        l.name, l.variable, (long long)l.value);
}
