/* anneal train -n: starts local ranks through the MPI that is found, for people who do not know mpirun. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/supervise/ranks.h"
#include "cli/train/ranks.h"
#include "launch/launcher.h"

/* The launchers of an MPI, and how they say in --version whose they are. */
static const struct {
    const char *mpi, *name;
    const char *launchers[4];
    const char *version;
    const char *words[8];
} kinds[] = {
    /* Open MPI binds two ranks to a core each; ranks divide the cores themselves. */
    {"openmpi",
     "Open MPI",
     {"mpirun.openmpi", "mpirun", "mpiexec"},
     "Open MPI",
     {"--quiet", "--oversubscribe", "--bind-to", "none"}},
    {"mpich", "MPICH", {"mpirun.mpich", "mpiexec.hydra", "mpirun"}, "HYDRA", {NULL}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static bool find_in_path(const char *name, char path[CLI_LAUNCHER_PATH]) {
    for (const char *folder = getenv("PATH"); folder && *folder;) {
        const int length = (int)strcspn(folder, ":");
        if (length > 0 && snprintf(path, CLI_LAUNCHER_PATH, "%.*s/%s", length, folder, name) < CLI_LAUNCHER_PATH &&
            access(path, X_OK) == 0)
            return true;
        folder += length + (folder[length] == ':');
    }
    return false;
}

/* Whether a launcher says that it is of this kind. A name with the kind in it needs no question. */
static bool is_of(const char *name, int kind) {
    char command[64], line[512];
    bool found = false;
    if (strchr(name, '.')) return true;
    snprintf(command, sizeof command, "%s --version 2>/dev/null", name);
    FILE *pipe = popen(command, "re"); /* NOLINT(cert-env33-c): one of the names above */
    while (pipe && fgets(line, sizeof line, pipe)) found = found || strstr(line, kinds[kind].version);
    if (pipe) pclose(pipe);
    return found;
}

/* Open MPI refuses to start anything as root, which in a container everybody is. */
static bool allow_root(void) {
    static const char *const variables[] = {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                            "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"};
    if (geteuid() != 0) return true;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (setenv(variables[i], "1", 0) != 0) return false;
    return true;
}

/* Launchers look at the machine through hwloc, whose plugin for OpenCL opens every driver there is. One that starts
 * threads of its own takes the launcher's signals, and opening them takes seconds. */
static bool leave_opencl(void) {
    return setenv("HWLOC_COMPONENTS", "-opencl", 0) == 0;
}

static void add(cli_launcher *l, const char *word) {
    l->words[l->word_count++] = word;
}

static bool take(cli_launcher *l, int kind, int64_t ranks) {
    for (int i = 0; kinds[kind].launchers[i]; i++) {
        if (!find_in_path(kinds[kind].launchers[i], l->path) || !is_of(kinds[kind].launchers[i], kind)) continue;
        l->mpi = kinds[kind].mpi;
        snprintf(l->number, sizeof l->number, "%lld", (long long)ranks);
        add(l, kinds[kind].launchers[i]);
        for (int word = 0; kinds[kind].words[word]; word++) add(l, kinds[kind].words[word]);
        add(l, "-n");
        add(l, l->number);
        return allow_root() && leave_opencl();
    }
    return false;
}

int cli_launcher_find(const cli_call *call, const char *mpi, int64_t ranks, cli_launcher *launcher) {
    const char *plugins = an_mpi_version();
    *launcher = (cli_launcher){0};
    for (int kind = 0; kind < KINDS; kind++) {
        if ((mpi && strcmp(mpi, kinds[kind].mpi) != 0) || !strstr(plugins, kinds[kind].name)) continue;
        if (take(launcher, kind, ranks)) return CLI_DONE;
    }
    return cli_fail(call,
                    "-n %lld needs %s, and none was found: this anneal was built with plugins for %s, and mpirun of "
                    "the same MPI must be in PATH ('anneal doctor' shows what there is)",
                    (long long)ranks, mpi ? mpi : "an MPI", *plugins ? plugins : "no MPI");
}

/* ---- becoming it ---- */

/* execv promises not to write to what it is given. */
static char *as_argument(const char *text) {
    return (char *)(uintptr_t)text;
}

static bool is_in(const char *const *names, const char *name) {
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

/* ---- running it ---- */

/* Plain ranks are a job as a supervisor has it, which is not started again. */
static int run_launcher(const cli_call *call, const char *path, char **arguments, int64_t ranks) {
    enum { KILLED = 128 };
    supervise_job job;
    supervise_signals signals;
    supervise_end end;
    supervise_job_watch watch = {.folder = NULL};
    const int code = supervise_limits(call, &watch.report_after, &watch.timeout);
    if (code != CLI_DONE) return code;
    fflush(NULL);
    supervise_name = call->command->name;
    supervise_block(&signals);
    signals.is_plain = true;
    if (!supervise_job_start(&job, path, arguments, (int)ranks)) return CLI_FAILED;
    supervise_job_wait(&job, &signals, &watch, &end);
    if (signals.ended_by) return KILLED + signals.ended_by;
    if (end.hung) return CLI_FAILED;
    return end.signal ? KILLED + end.signal : end.code;
}

int cli_launch(const cli_call *call, const char *mpi, int64_t ranks, const char *const *without) {
    enum { MOST = CLI_LAUNCHER_WORDS + 2 * (CLI_MOST_OPTIONS + CLI_MOST_SETS) + 8, PATH = 4096 };
    static char self[PATH], names[CLI_MOST_OPTIONS][64];
    const cli_option *options = call->command->options;
    char *arguments[MOST], **at = arguments;
    cli_launcher launcher;
    an_launcher other;
    if (an_launcher_find(&other) && other.processes > 1)
        return cli_misuse(call, "-n starts ranks, but %s has already started several processes (%s=%lld); leave -n out",
                          other.name, other.variable, (long long)other.value);
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) return cli_fail(call, "/proc/self/exe cannot be read: %s", strerror(errno));
    self[length] = 0;
    const int code = cli_launcher_find(call, mpi, ranks, &launcher);
    if (code != CLI_DONE) return code;
    for (int i = 0; i < launcher.word_count; i++) *at++ = as_argument(launcher.words[i]);
    *at++ = self;
    *at++ = as_argument(call->command->name);
    for (int i = 0; options[i].name; i++) {
        if (!call->values[i] || is_in(without, options[i].name)) continue;
        snprintf(names[i], sizeof names[i], "--%s", options[i].name);
        *at++ = names[i];
        if (options[i].argument) *at++ = as_argument(call->values[i]);
    }
    if (call->verbose) *at++ = as_argument("--verbose");
    for (int i = 0; i < call->set_count; i++) {
        *at++ = as_argument("--set");
        *at++ = as_argument(call->sets[i]);
    }
    *at++ = as_argument("--");
    *at++ = as_argument(call->argument);
    *at = NULL;
    return run_launcher(call, launcher.path, arguments, ranks);
}
