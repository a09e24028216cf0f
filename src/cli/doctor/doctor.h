/* What anneal doctor finds out about a machine, and the advice that follows from it. */
#ifndef AN_CLI_DOCTOR_DOCTOR_H
#define AN_CLI_DOCTOR_DOCTOR_H

#include "cli/bench/machine.h"
#include "cli/main/cli.h"

/* ---- what the system lets a process have ---- */

typedef struct doctor_limits {
    char processor[96];      /* "": not known */
    char instructions[2048]; /* names with a space on each side, as the system says them */
    int online;              /* processors, as the system counts them */
    int allowed;             /* of them for this process */
    int cores;               /* that the allowed ones are on; 0: not known */
    int nodes;               /* of memory; 0: not known */
    double quota;            /* of the cgroup, in processors; 0: none */
    double load;             /* processors that were wanted in the last minute */
    int64_t memory, memory_available;
    int64_t memory_limit; /* of the cgroup; 0: none */
    char governor[32];    /* of the frequency; "": not known */
} doctor_limits;

/* Reads proc and sys below `root`, which is "" but for tests. What cannot be read stays 0. */
void doctor_limits_read(const char *root, doctor_limits *limits);
/* Whether the system names an instruction set. */
bool doctor_has(const doctor_limits *limits, const char *instruction);

/* ---- libraries and variables ---- */

typedef struct doctor_mpi {
    char launcher[256]; /* its path; "": none was found */
    char library[256];
    const char *name; /* "Open MPI"; "" as long as it is not known */
} doctor_mpi;

/* What Open MPI's hwloc loads into every process that it starts, if it is not told otherwise. */
typedef struct doctor_opencl {
    char plugin[256]; /* hwloc's, by its path; "": none was found */
    char driver[256]; /* the first one that OpenCL would load; "": none was found */
} doctor_opencl;

enum { DOCTOR_VARIABLES = 16 };
/* Variables that change how fast a run is; NULL at the end. */
extern const char *const doctor_variables[DOCTOR_VARIABLES];

void doctor_mpi_find(doctor_mpi *mpi);
/* Looks below `root`, which is "" but for tests, and where HWLOC_PLUGINS_PATH and OCL_ICD_VENDORS say. */
void doctor_opencl_find(const char *root, doctor_opencl *opencl);
/* The name of the OpenMP runtime in this process, as in "libgomp.so.1.0.0"; "" if none is seen. */
void doctor_openmp_find(char *name, size_t capacity);

/* ---- advice ---- */

typedef struct doctor_facts {
    doctor_limits limits;
    doctor_mpi mpi;
    doctor_opencl opencl;
    char openmp[64];
    int threads; /* of a context */
    double spin; /* seconds, of a thread without work */
    an_isa isa;
    bool is_measured;
    cli_machine machine;
} doctor_facts;

enum { DOCTOR_MOST_ADVICE = 16 };
typedef struct doctor_advice {
    char text[DOCTOR_MOST_ADVICE][512];
    int count;
} doctor_advice;

/* The instruction sets that kernels ask for, with the lowest level that needs them; a name of NULL ends it. */
typedef struct doctor_instruction {
    const char *name;
    an_isa isa;
} doctor_instruction;
extern const doctor_instruction doctor_instructions[];

/* What would make it faster, the most important first. */
void doctor_advise(const doctor_facts *facts, doctor_advice *advice);
/* What can make a run fail on this machine. */
void doctor_warn(const doctor_facts *facts, doctor_advice *warnings);
/* Whether ANNEAL_MAX_ISA, and not the machine, is the reason that there is no higher level. */
bool doctor_is_limited(const doctor_facts *facts);

#endif
