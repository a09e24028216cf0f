/* A launcher and its ranks: how they are started and ended, and what the ranks say. */
#define _GNU_SOURCE /* sockets with flags; NOLINT(bugprone-reserved-identifier) */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/regular.h"
#include "cli/supervise/ranks.h"

static const char variable[] = "ANNEAL_SUPERVISOR";
enum { CANNOT_START = 127 };

/* ---- its start ---- */

/* After fork: calls nothing that could wait for a lock. */
_Noreturn static void become_launcher(const char *path, char **arguments, char **environment, pid_t supervisor) {
    struct sigaction standard = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    sigset_t none;
    sigemptyset(&none);
    sigaction(SIGUSR1, &standard, NULL);
    sigaction(SIGPIPE, &standard, NULL);
    sigaction(SIGTTOU, &ignored, NULL);
    setsid();                                  /* which tells its processes from all others */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* it never outlives its supervisor */
    if (getppid() != supervisor) _exit(CANNOT_START);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(path, arguments, environment);
    _exit(CANNOT_START);
}

static bool open_listener(supervise_job *job) {
    char text[AN_RANK_SUPERVISOR_TEXT];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    job->listener = an_channel_listen(&address);
    if (job->listener < 0 || !an_channel_key_make(&job->key)) return false;
    an_rank_supervisor_write(&address, &job->key, text);
    return setenv(variable, text, 1) == 0;
}

bool supervise_job_start(supervise_job *job, const char *path, char **arguments, int ranks) {
    memset(job, 0, sizeof *job);
    job->listener = -1;
    job->ranks = ranks;
    const pid_t self = getpid();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (open_listener(job)) {
        job->launcher = fork();
        if (job->launcher == 0) become_launcher(path, arguments, environ, self);
    }
    if (job->launcher > 0) return true;
    supervise_say("the launcher %s cannot be started: %s", path, strerror(errno));
    supervise_job_forget(job);
    return false;
}

/* ---- its end ---- */

/* Parent and session of a process, from /proc; false: there is none of that number. */
static bool look_at_process(long process, long *parent, long *session) {
    char path[64], line[1024] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = an_regular_read(path);
    if (!file) return false;
    const bool is_read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *after = strrchr(line, ')'); /* a name may have anything in it */
    /* NOLINTNEXTLINE(cert-err34-c): of the kernel */
    return is_read && after && sscanf(after + 1, " %*c %ld %*d %ld", parent, session) == 2;
}

/* Kills children of this process, which it got from those of its job that died, and processes of the job's session. How many there were. */
static int kill_leftovers(pid_t session_of_job) {
    enum { BASE = 10 };
    int count = 0;
    DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        const long process = strtol(entry->d_name, NULL, BASE);
        long parent, session;
        if (process <= 0 || !look_at_process(process, &parent, &session)) continue;
        if (parent != (long)getpid() && session != (long)session_of_job) continue;
        kill((pid_t)process, SIGKILL);
        count++;
    }
    if (folder) closedir(folder);
    return count;
}

void supervise_job_kill(supervise_job *job) {
    static const double most = 10; /* seconds; who waits in the kernel, for a file server say, dies when that answers */
    const double end = an_clock_seconds() + most;
    if (job->launcher <= 0) return;
    kill(job->launcher, SIGKILL);
    while (kill_leftovers(job->launcher) > 0 && an_clock_seconds() < end) {
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

void supervise_job_forget(supervise_job *job) {
    supervise_job_kill(job);
    for (int i = 0; i < SUPERVISE_CONNECTIONS; i++) an_channel_close(&job->channels[i], "the end");
    if (job->listener >= 0) close(job->listener);
    unsetenv(variable);
    job->listener = -1;
    job->launcher = 0;
}

/* ---- what its ranks say ---- */

static void take_state(supervise_job *job, const an_rank_state *state) {
    job->state = *state;
    job->heard = an_clock_seconds();
}

static void take(supervise_job *job, an_channel *channel, an_rank_message *message) {
    if (!an_rank_message_check(message, job->ranks)) {
        an_channel_close(channel, "it sent a message that makes no sense");
        return;
    }
    switch ((an_rank_message_kind)message->kind) {
    case AN_RANK_STATE: take_state(job, &message->state); return;
    case AN_RANK_EXIT:
        take_state(job, &message->state);
        job->exited = job->heard;
        job->code = message->code;
        return;
    case AN_RANK_TIMEOUT: job->timed_out = true; break;
    default: break;
    }
    supervise_say("%s%s", message->text, message->kind == AN_RANK_TIMEOUT ? " (ranks.timeout): it hangs" : "");
}

/* A place whose connection is closed, or else that of somebody who has not shown the key. */
static an_channel *find_place(supervise_job *job) {
    for (int i = 0; i < SUPERVISE_CONNECTIONS; i++)
        if (job->channels[i].state == AN_CHANNEL_CLOSED) return &job->channels[i];
    for (int i = 0; i < SUPERVISE_CONNECTIONS; i++)
        if (job->channels[i].state != AN_CHANNEL_OPEN) return &job->channels[i];
    return NULL;
}

void supervise_job_listen(supervise_job *job) {
    an_rank_message message;
    for (an_channel *place; (place = find_place(job));) {
        an_channel taken;
        if (!an_channel_accept(&taken, job->listener, &job->key, AN_RANK_SUPERVISOR)) break;
        an_channel_close(place, "another one needs its place");
        *place = taken;
        an_channel_turn(place);
    }
    for (int i = 0; i < SUPERVISE_CONNECTIONS; i++) {
        an_channel_turn(&job->channels[i]);
        while (an_channel_receive(&job->channels[i], &message)) {
            take(job, &job->channels[i], &message);
            an_channel_turn(&job->channels[i]);
        }
    }
}
