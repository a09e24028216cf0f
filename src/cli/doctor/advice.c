/* Advice of anneal doctor: what slows a run down on this machine, and what to do about it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/doctor/doctor.h"

static void add(doctor_advice *a, const char *format, ...) AN_PRINTF(2, 3);
static void add(doctor_advice *a, const char *format, ...) {
    va_list arguments;
    if (a->count == DOCTOR_MOST_ADVICE) return;
    va_start(arguments, format);
    vsnprintf(a->text[a->count++], sizeof a->text[0], format, arguments);
    va_end(arguments);
}

static bool is_set_to(const char *variable, const char *value) {
    const char *set = getenv(variable);
    return set && !strcasecmp(set, value);
}

/* ---- the build ---- */

static void advise_build(const doctor_facts *f, doctor_advice *a) {
#if !defined(__OPTIMIZE__)
    add(a, "This is a build without optimisation: configure with -DCMAKE_BUILD_TYPE=Release.");
#endif
#if defined(__SANITIZE_ADDRESS__)
    add(a, "This is a build with sanitizers: configure with -DANNEAL_SANITIZE=OFF.");
#endif
    if (!*an_onednn_version() && f->isa >= AN_ISA_AVX512)
        add(a, "This build has no oneDNN, so convolutions run on portable kernels: run tools/bootstrap and configure "
               "with "
               "-DANNEAL_ONEDNN=ON.");
}

/* ---- instructions ---- */

const doctor_instruction doctor_instructions[] = {
    {"avx2", AN_ISA_AVX2},       {"fma", AN_ISA_AVX2},        {"f16c", AN_ISA_AVX2},       {"avx512f", AN_ISA_AVX512},
    {"avx512bw", AN_ISA_AVX512}, {"avx512dq", AN_ISA_AVX512}, {"avx512vl", AN_ISA_AVX512}, {"avx512_bf16", AN_ISA_AMX},
    {"amx_tile", AN_ISA_AMX},    {"amx_bf16", AN_ISA_AMX},    {NULL, AN_ISA_AUTO}};

/* What the next level needs and the system does not name; "" if nothing, or if there is no next level. */
static void find_missing(const doctor_facts *f, char *missing, size_t capacity) {
    *missing = 0;
    for (const doctor_instruction *i = doctor_instructions; i->name; i++) {
        const size_t length = strlen(missing);
        if (i->isa == (an_isa)(f->isa + 1) && !doctor_has(&f->limits, i->name))
            snprintf(missing + length, capacity - length, "%s%s", length > 0 ? ", " : "", i->name);
    }
}

bool doctor_is_limited(const doctor_facts *f) {
    char missing[128];
    find_missing(f, missing, sizeof missing);
    return f->isa < AN_ISA_AMX && *f->limits.instructions && !*missing &&
           is_set_to("ANNEAL_MAX_ISA", an_isa_name(f->isa));
}

static void advise_instructions(const doctor_facts *f, doctor_advice *a) {
#if defined(__x86_64__)
    char missing[128];
    const an_isa next = (an_isa)(f->isa + 1);
    if (f->isa == AN_ISA_AMX || !*f->limits.instructions) return;
    find_missing(f, missing, sizeof missing);
    if (doctor_is_limited(f))
        add(a, "ANNEAL_MAX_ISA=%s keeps kernels from using instructions that this machine has: unset it.",
            an_isa_name(f->isa));
    else if (!*missing && next == AN_ISA_AMX)
        add(a, "The system does not let this process use AMX, so bf16 runs without tiles: use Linux 5.16 or later, and "
               "allow arch_prctl if this is a sandbox or container.");
    else if (*missing && doctor_has(&f->limits, "hypervisor"))
        add(a,
            "The instruction set %s needs %s, which this virtual machine does not expose: if the host processor has "
            "them, pass the host processor through (QEMU: -cpu host).",
            an_isa_name(next), missing);
#else
    (void)f;
    (void)a;
#endif
}

/* ---- threads ---- */

/* Variables of OpenMP runtimes that say how their own threads wait. */
static const char *const of_others[] = {"GOMP_SPINCOUNT", "KMP_BLOCKTIME"};

static void advise_threads(const doctor_facts *f, doctor_advice *a) {
    const doctor_limits *l = &f->limits;
    const char *wanted = getenv("OMP_NUM_THREADS"), *limit = getenv("OMP_THREAD_LIMIT");
    const int quota = l->quota > 0 && l->quota < l->allowed ? (int)l->quota : 0;
    const int usable = l->quota > 0 && l->quota < l->allowed ? (quota > 0 ? quota : 1) : l->allowed;
    if (f->threads > l->allowed)
        add(a, "%d threads share %d processor%s and wait for each other: set OMP_NUM_THREADS=%d, or unset it.",
            f->threads, l->allowed, l->allowed == 1 ? "" : "s", usable);
    else if (f->threads > usable)
        add(a,
            "The cgroup allows %.3g processors, but %d threads run, so all of them pause when the quota is used up: "
            "set OMP_NUM_THREADS=%d, or raise the limit (docker: --cpus, Kubernetes: resources.limits.cpu).",
            l->quota, f->threads, usable);
    else if (l->cores > 0 && f->threads > l->cores)
        add(a,
            "%d threads run on %d cores, so two threads share a core, which gains little for matrix products: try "
            "OMP_NUM_THREADS=%d OMP_PLACES=cores, and compare with 'anneal bench'.",
            f->threads, l->cores, l->cores);
    else if (f->threads < (l->cores > 0 && l->cores < usable ? l->cores : usable) && (wanted || limit))
        add(a, "%d of %d processors are used: unset %s.", f->threads, usable,
            wanted ? "OMP_NUM_THREADS" : "OMP_THREAD_LIMIT");
    if (l->allowed < l->online)
        add(a,
            "This process may use %d of %d processors: see taskset, or the batch system's option (Slurm: "
            "--cpus-per-task, "
            "Open MPI: --bind-to none).",
            l->allowed, l->online);
    if (is_set_to("OMP_WAIT_POLICY", "passive") && f->threads > 1)
        add(a, "OMP_WAIT_POLICY=passive lets threads sleep between two loops, and waking them takes time: unset it. By "
               "default, threads spin for a fraction of a millisecond before they sleep.");
    if (is_set_to("OMP_WAIT_POLICY", "active") && f->threads > 1)
        add(a, "OMP_WAIT_POLICY=active keeps the processors busy while threads wait: unset it, unless nothing else "
               "runs on this machine.");
    for (size_t i = 0; i < sizeof of_others / sizeof *of_others; i++)
        if (getenv(of_others[i]))
            add(a, "%s has no effect on anneal, which manages its own threads: unset it, or use OMP_WAIT_POLICY.",
                of_others[i]);
    if (l->nodes > 1 && f->threads > 1 && !getenv("OMP_PROC_BIND") && !getenv("GOMP_CPU_AFFINITY") &&
        !getenv("KMP_AFFINITY"))
        add(a,
            "Threads may move between %d memory nodes, away from their data: set OMP_PROC_BIND=close OMP_PLACES=cores.",
            l->nodes);
}

/* ---- the rest ---- */

static void advise_machine(const doctor_facts *f, doctor_advice *a) {
    const doctor_limits *l = &f->limits;
    const char *limit = getenv("ONEDNN_MAX_CPU_ISA") ? "ONEDNN_MAX_CPU_ISA" : "DNNL_MAX_CPU_ISA";
    if (getenv(limit)) add(a, "%s keeps oneDNN from using instructions that this machine has: unset it.", limit);
    if (l->load > l->online * 0.5)
        add(a, "Other programs keep the processors busy (load %.1f on %d): run when they have finished.", l->load,
            l->online);
    if (!strcmp(l->governor, "powersave"))
        add(a, "The CPU frequency governor is 'powersave': as root, run 'cpupower frequency-set -g performance'.");
}

/* ---- what can fail ---- */

/* HWLOC_COMPONENTS: names with a comma between two; -NAME leaves one out, and nothing but what stands before "stop" is
 * used. */
static bool hwloc_uses_opencl(void) {
    const char *word = getenv("HWLOC_COMPONENTS");
    bool is_named = false;
    while (word && *word) {
        const size_t length = strcspn(word, ",");
        if (length == 7 && !strncmp(word, "-opencl", length)) return false;
        if (length == 4 && !strncmp(word, "stop", length)) return is_named;
        is_named |= length == 6 && !strncmp(word, "opencl", length);
        word += length + (word[length] == ',');
    }
    return true;
}

void doctor_warn(const doctor_facts *f, doctor_advice *warnings) {
    warnings->count = 0;
    if (!strcmp(f->mpi.name, "Open MPI") && *f->opencl.plugin && *f->opencl.driver && hwloc_uses_opencl())
        add(warnings,
            "Open MPI's hwloc loads the OpenCL driver of %s into mpirun and into every rank. There it can block "
            "signals, "
            "so that a run cannot be stopped, and abort a run that has a memory limit: set HWLOC_COMPONENTS=-opencl "
            "before mpirun or srun starts.",
            f->opencl.driver);
}

void doctor_advise(const doctor_facts *facts, doctor_advice *advice) {
    advice->count = 0;
    advise_build(facts, advice);
    advise_instructions(facts, advice);
    advise_threads(facts, advice);
    advise_machine(facts, advice);
}
