#include "launch/launcher.h"

#include <stdlib.h>

typedef struct {
    const char *name, *mpi;
    const char *size, *rank; /* the variables; size NULL: the launcher has none for it */
    const char *also;        /* a variable that must be there too, because others use the same names; NULL: none */
    bool is_exact;           /* the size is that of all hosts, not of this one */
} launcher_variables;

/* A launcher says itself how many processes it started, on all hosts or on this one; PMIx says only
 * which rank a process is. */
static const launcher_variables launchers[] = {
    {"mpirun of Open MPI", "openmpi", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL, true},
    {"mpiexec of MPICH or Intel MPI", "mpich", "PMI_SIZE", "PMI_RANK", NULL, true},
    {"mpiexec of MPICH or Intel MPI", "mpich", "MPI_LOCALNRANKS", "MPI_LOCALRANKID", NULL, false},
    {"mpirun of MVAPICH", "mpich", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", NULL, true},
    {"mpiexec of Cray PALS", "mpich", "PALS_LOCAL_SIZE", "PALS_RANKID", NULL, false},
    {"a PMIx launcher", "openmpi", NULL, "PMIX_RANK", "PMIX_NAMESPACE", false},
    {"torchrun", NULL, "WORLD_SIZE", "RANK", "LOCAL_RANK", true},
};

/* Slurm has variables for a job and for a step of it. In a batch script SLURM_NTASKS and SLURM_PROCID (0) are set as
 * well, and a program there is one process. Only srun starts several, and only its steps have SLURM_STEP_NUM_TASKS. */
static const launcher_variables slurm = {"srun", "", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_ID", true};

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
                       .mpi = v->mpi,
                       .variable = size > rank ? v->size : v->rank,
                       .value = size > rank ? size : rank,
                       .rank = rank,
                       .processes = size > rank ? size : rank + 1,
                       .is_exact = v->is_exact && size > rank};
    return true;
}

/* An mpirun inside a Slurm job may start its own helpers with srun, one for each node; what they start has srun's
 * variables too. So Slurm's count only if no other launcher has set its own. */
bool an_launcher_find(an_launcher *launcher) {
    bool is_alone = false, is_maybe = false;
    an_launcher maybe, found;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        if (!look(&launchers[i], &found)) continue;
        *launcher = found;
        if (found.is_exact && found.processes > 1) return true;
        is_alone = is_alone || found.is_exact;
        if (found.is_exact || (is_maybe && maybe.processes >= found.processes)) continue;
        is_maybe = true;
        maybe = found;
    }
    if (is_alone) return false;
    if (look(&slurm, launcher)) {
        if (is_maybe) launcher->mpi = maybe.mpi; /* srun --mpi=pmix */
        return launcher->processes > 1;
    }
    if (is_maybe) *launcher = maybe;
    return is_maybe;
}
