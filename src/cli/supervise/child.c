/* The training process of a supervisor: how it is started, and the memory that both share. */
#define _GNU_SOURCE /* memfd_create, seals; NOLINT(bugprone-reserved-identifier) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/supervise/supervise.h"

static const char variable[] = "ANNEAL_HEARTBEAT"; /* holds the number of the descriptor */
/* A file whose size nobody can change never raises SIGBUS. */
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, CANNOT_START = 127 };

/* ---- the supervisor's side ---- */

static an_heartbeat *make_heartbeat(int *file) {
    *file = memfd_create("anneal-heartbeat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*file < 0) return NULL;
    if (ftruncate(*file, sizeof(an_heartbeat)) != 0 || fcntl(*file, F_ADD_SEALS, SEALS) != 0) return NULL;
    an_heartbeat *heartbeat = mmap(NULL, sizeof *heartbeat, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    if (heartbeat == MAP_FAILED) return NULL;
    an_heartbeat_init(heartbeat, sizeof *heartbeat);
    return heartbeat;
}

/* After fork: calls nothing that could wait for a lock. A group of its own keeps the terminal's signals from it, which
 * the supervisor turns into the one that it should get. */
_Noreturn static void become_training(char **arguments, char **environment, int file, pid_t supervisor) {
    struct sigaction standard = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    sigset_t none;
    sigemptyset(&none);
    sigaction(SIGUSR1, &standard, NULL);
    sigaction(SIGTTOU, &ignored, NULL); /* it may write to the terminal from its group */
    setpgid(0, 0);
    prctl(PR_SET_PTRACER, supervisor, 0, 0,
          0); /* where only ancestors may look at stacks: who asks is the supervisor's child */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);        /* it never outlives its supervisor … */
    if (getppid() != supervisor) _exit(CANNOT_START); /* … which may have died before that was said */
    if (fcntl(file, F_SETFD, 0) != 0) _exit(CANNOT_START);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve("/proc/self/exe", arguments, environment);
    _exit(CANNOT_START);
}

bool supervise_start(supervise_child *child, char **arguments) {
    char number[16];
    int file = -1;
    *child = (supervise_child){.heartbeat = make_heartbeat(&file)};
    const pid_t self = getpid();
    if (child->heartbeat) {
        snprintf(number, sizeof number, "%d", file);
        child->pid = setenv(variable, number, 1) == 0 ? fork() : -1;
        if (child->pid == 0) become_training(arguments, environ, file, self);
    }
    const int error = errno;
    if (file >= 0) close(file);
    if (child->pid > 0) return true;
    supervise_say("the training process cannot be started: %s", strerror(error));
    supervise_forget(child);
    return false;
}

void supervise_forget(supervise_child *child) {
    if (child->heartbeat) munmap(child->heartbeat, sizeof *child->heartbeat);
    *child = (supervise_child){0};
}

/* ---- the training process's side ---- */

/* The variable may come from anybody. */
static bool is_heartbeat(int file) {
    struct stat state;
    const int seals = fcntl(file, F_GET_SEALS); /* negative: it is no file that has them */
    return seals >= 0 && (seals & SEALS) == SEALS && fstat(file, &state) == 0 && S_ISREG(state.st_mode) &&
           state.st_size == (off_t)sizeof(an_heartbeat);
}

an_heartbeat *cli_heartbeat(void) {
    enum { BASE = 10, FIRST = 3, MOST = 1 << 20 }; /* 0 to 2 are the standard ones */
    const char *value = getenv(variable);
    char *end;
    if (!value) return NULL;
    const long number = strtol(value, &end, BASE);
    const int file = end != value && !*end && number >= FIRST && number < MOST ? (int)number : -1;
    an_heartbeat *heartbeat = MAP_FAILED;
    if (file >= 0 && is_heartbeat(file)) {
        heartbeat = mmap(NULL, sizeof *heartbeat, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
    }
    if (heartbeat == MAP_FAILED || heartbeat->size != sizeof *heartbeat)
        fprintf(stderr, "warning: %s=%s does not name a supervisor's heartbeat and is ignored\n", variable, value);
    prctl(PR_SET_NAME, "anneal", 0, 0, 0); /* or it and its threads would be called after /proc/self/exe */
    unsetenv(variable);                    /* it is used once, and not by programs that this one may start */
    return heartbeat == MAP_FAILED || heartbeat->size != sizeof *heartbeat ? NULL : heartbeat;
}
