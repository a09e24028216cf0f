/* Libraries and launchers on this machine. They are looked for by name; none is loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

const char *const doctor_variables[DOCTOR_VARIABLES] = {
    "OMP_NUM_THREADS", "OMP_THREAD_LIMIT",   "OMP_DYNAMIC",       "OMP_PROC_BIND",  "OMP_PLACES",
    "OMP_WAIT_POLICY", "OMP_STACKSIZE",      "GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT", "KMP_AFFINITY",
    "KMP_BLOCKTIME",   "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};

/* The first of `folders`, with a colon between two, that has a file. */
static bool find_in(const char *folders, const char *name, char *path, size_t capacity) {
    while (folders && *folders) {
        const int length = (int)strcspn(folders, ":");
        if (length > 0 && snprintf(path, capacity, "%.*s/%s", length, folders, name) < (int)capacity &&
            access(path, R_OK) == 0)
            return true;
        folders += length + (folders[length] == ':');
    }
    *path = 0;
    return false;
}

void doctor_mpi_find(doctor_mpi *mpi) {
    static const char *const launchers[] = {"mpirun", "mpiexec", "srun"};
    static const struct {
        const char *library, *name;
    } libraries[] = {{"libmpi.so.40", "Open MPI"},
                     {"libmpich.so.12", "MPICH"},
                     {"libmpi.so.12", "MPICH or Intel MPI"},
                     {"libmpi_cray.so.12", "Cray MPICH"}};
    static const char standard[] = "/usr/lib:/usr/lib64:/usr/local/lib:/usr/local/lib64:/lib:/usr/lib/x86_64-linux-gnu:"
                                   "/usr/lib/aarch64-linux-gnu";
    char beside[512];
    *mpi = (doctor_mpi){.name = ""};
    for (int i = 0; i < 3 && !*mpi->launcher; i++)
        find_in(getenv("PATH"), launchers[i], mpi->launcher, sizeof mpi->launcher);
    const char *slash = strrchr(mpi->launcher, '/');
    const int length = slash ? (int)(slash - mpi->launcher) : 0;
    snprintf(beside, sizeof beside, "%.*s/../lib:%.*s/../lib64", length, mpi->launcher, length, mpi->launcher);
    const char *const places[] = {getenv("LD_LIBRARY_PATH"), length > 0 ? beside : NULL, standard};
    for (int place = 0; place < 3; place++)
        for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
            if (!find_in(places[place], libraries[i].library, mpi->library, sizeof mpi->library)) continue;
            mpi->name = libraries[i].name;
            return;
        }
}

void doctor_openmp_find(char *name, size_t capacity) {
    static const char *const runtimes[] = {"/libomp.", "/libiomp5.",
                                           "/libgomp."}; /* the first serves, if two are there */
    char line[1024];
    size_t best = sizeof runtimes / sizeof *runtimes;
    FILE *file = fopen("/proc/self/maps", "r");
    *name = 0;
    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < best; i++) {
            const char *found = strstr(line, runtimes[i]);
            if (!found) continue;
            snprintf(name, capacity, "%.*s", (int)strcspn(found + 1, "\n"), found + 1);
            best = i;
        }
    if (file) fclose(file);
}
