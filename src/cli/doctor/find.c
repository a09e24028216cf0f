/* Libraries and launchers on this machine. They are looked for by name; none is loaded. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"

const char *const doctor_variables[DOCTOR_VARIABLES] = {
    "OMP_NUM_THREADS", "OMP_THREAD_LIMIT",   "OMP_DYNAMIC",       "OMP_PROC_BIND",  "OMP_PLACES",
    "OMP_WAIT_POLICY", "OMP_STACKSIZE",      "GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT", "KMP_AFFINITY",
    "KMP_BLOCKTIME",   "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA",  "ANNEAL_MAX_ISA"};

/* The first of `folders` below `root`, with a colon between two, that has a file. */
static bool find_below(const char *root, const char *folders, const char *name, char *path, size_t capacity) {
    while (folders && *folders) {
        const int length = (int)strcspn(folders, ":");
        if (length > 0 && snprintf(path, capacity, "%s%.*s/%s", root, length, folders, name) < (int)capacity &&
            access(path, R_OK) == 0)
            return true;
        folders += length + (folders[length] == ':');
    }
    *path = 0;
    return false;
}

static bool find_in(const char *folders, const char *name, char *path, size_t capacity) {
    return find_below("", folders, name, path, capacity);
}

static const char library_folders[] =
    "/usr/lib:/usr/lib64:/usr/local/lib:/usr/local/lib64:/lib:/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu";

void doctor_mpi_find(doctor_mpi *mpi) {
    static const char *const launchers[] = {"mpirun", "mpiexec", "srun"};
    static const struct {
        const char *library, *name;
    } libraries[] = {{"libmpi.so.40", "Open MPI"},
                     {"libmpich.so.12", "MPICH"},
                     {"libmpi.so.12", "MPICH or Intel MPI"},
                     {"libmpi_cray.so.12", "Cray MPICH"}};
    char beside[512];
    *mpi = (doctor_mpi){.name = ""};
    for (int i = 0; i < 3 && !*mpi->launcher; i++)
        find_in(getenv("PATH"), launchers[i], mpi->launcher, sizeof mpi->launcher);
    const char *slash = strrchr(mpi->launcher, '/');
    const int length = slash ? (int)(slash - mpi->launcher) : 0;
    snprintf(beside, sizeof beside, "%.*s/../lib:%.*s/../lib64", length, mpi->launcher, length, mpi->launcher);
    const char *const places[] = {getenv("LD_LIBRARY_PATH"), length > 0 ? beside : NULL, library_folders};
    for (int place = 0; place < 3; place++)
        for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
            if (!find_in(places[place], libraries[i].library, mpi->library, sizeof mpi->library)) continue;
            mpi->name = libraries[i].name;
            return;
        }
}

/* ---- OpenCL ---- */

/* The first file of a folder whose name ends with .icd: it names a driver. False: there is no such folder. */
static bool find_driver_in(const char *folder, char *path, size_t capacity) {
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) { /* NOLINT(concurrency-mt-unsafe): nobody else reads it */
        const char *end = strrchr(entry->d_name, '.');
        if (end && !strcmp(end, ".icd") && snprintf(path, capacity, "%s/%s", folder, entry->d_name) > 0) break;
    }
    return directory && closedir(directory) == 0;
}

/* OCL_ICD_VENDORS is a folder in place of the usual one, an .icd, or a library, which may be a name without a path. */
static void find_driver(const char *root, char *path, size_t capacity) {
    const char *vendors = getenv("OCL_ICD_VENDORS");
    char folder[512];
    const bool is_given = vendors && *vendors;
    snprintf(folder, sizeof folder, "%s%s", is_given ? "" : root, is_given ? vendors : "/etc/OpenCL/vendors");
    *path = 0;
    if (find_driver_in(folder, path, capacity) || !is_given) return;
    if (!strchr(vendors, '/') || access(vendors, R_OK) == 0) snprintf(path, capacity, "%s", vendors);
}

void doctor_opencl_find(const char *root, doctor_opencl *opencl) {
    const char *plugins = getenv("HWLOC_PLUGINS_PATH");
    if (plugins && *plugins)
        find_in(plugins, "hwloc_opencl.so", opencl->plugin, sizeof opencl->plugin);
    else
        find_below(root, library_folders, "hwloc/hwloc_opencl.so", opencl->plugin, sizeof opencl->plugin);
    find_driver(root, opencl->driver, sizeof opencl->driver);
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
