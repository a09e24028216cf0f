/* anneal train -n: starts local ranks through the MPI that is found, for people who do not know mpirun. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/train/ranks.h"
#include "launch/launcher.h"

enum { EXIT_PATH = 512 };

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
        return allow_root();
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

/* Where rank 0 says how the run ended: launchers do not pass exit codes on reliably. False, after nothing: there is no place, and the launcher's own code has to do. */
static bool make_exit_file(char path[EXIT_PATH]) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, EXIT_PATH, "%s/anneal-exit-XXXXXX",
             folder && *folder && strlen(folder) < EXIT_PATH - 32 ? folder : "/tmp");
    const int file = mkstemp(path);
    if (file < 0) return false;
    close(file);
    return setenv(CLI_EXIT_FILE, path, 1) == 0;
}

static bool read_exit_file(const char *path, int *code) {
    FILE *file = fopen(path, "r");
    const bool found = file && fscanf(file, "%d", code) == 1; /* NOLINT(cert-err34-c): a number of our own */
    if (file) fclose(file);
    unlink(path);
    return found;
}

/* In the process that becomes the launcher. In a group of its own, so that an interrupt at the terminal does not reach it. */
static void become(const char *path, char **arguments, const sigset_t *before) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, before, NULL);
    execv(path, arguments);
    fprintf(stderr, "anneal train: %s cannot be started: %s\n", path, strerror(errno));
    _exit(CLI_FAILED);
}

/* A launcher kills its ranks soon after TERM or INT, before they can save; USR1 it passes on, and that asks them to stop with a checkpoint. A second request is meant. */
static int wait_for(pid_t launcher, const sigset_t *set) {
    int requests = 0, state, number;
    while (waitpid(launcher, &state, WNOHANG) == 0) {
        number = sigwaitinfo(set, NULL);
        if (number == SIGINT || number == SIGTERM || number == SIGUSR1) kill(launcher, requests++ ? SIGTERM : SIGUSR1);
    }
    return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
}

static int run_launcher(const cli_call *call, const char *path, char **arguments) {
    char exit_file[EXIT_PATH];
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGCHLD);
    const bool has_file = make_exit_file(exit_file);
    fflush(NULL);
    sigprocmask(SIG_BLOCK, &set, &before);
    const pid_t launcher = fork();
    if (launcher == 0) become(path, arguments, &before);
    int code =
            launcher < 0 ? cli_fail(call, "%s cannot be started: %s", path, strerror(errno)) : wait_for(launcher, &set),
        own;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (has_file && read_exit_file(exit_file, &own)) code = own;
    return code;
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
    return run_launcher(call, launcher.path, arguments);
}
