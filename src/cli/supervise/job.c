/* A launcher and its ranks: how they are started and ended, and what the ranks say. */
#define _GNU_SOURCE /* sockets with flags; NOLINT(bugprone-reserved-identifier) */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files/regular.h"
#include "base/system/clock.h"
#include "base/system/process.h"
#include "cli/supervise/ranks.h"

static const char variable[] = "ANNEAL_SUPERVISOR", leader_variable[] = "ANNEAL_LEADER";
enum { CANNOT_START = 127, OTHERS = 2 /* descriptors that are waited for, besides connections */ };

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
    char text[AN_RANK_SUPERVISOR_TEXT], identity[AN_PROCESS_IDENTITY];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    job->listener = an_channel_listen(&address);
    if (job->listener < 0 || !an_channel_key_make(&job->key)) return false;
    an_rank_supervisor_write(&address, &job->key, text);
    an_process_identify(identity);
    identity[strcspn(identity, "\n")] = 0;
    return setenv(variable, text, 1) == 0 && setenv(leader_variable, identity, 1) == 0;
}

/* Room for the links of all ranks, for the watches of as many, and for somebody who has no key. */
static bool make_room(supervise_job *job) {
    enum { STRANGERS = 8 };
    job->connection_count = 2 * job->ranks + STRANGERS;
    job->connections = calloc((size_t)job->connection_count, sizeof *job->connections);
    for (int i = 0; job->connections && i < job->connection_count; i++) job->connections[i].rank = -1;
    job->seats = calloc((size_t)job->ranks, sizeof *job->seats);
    job->files = calloc(OTHERS + (size_t)job->connection_count, sizeof *job->files);
    return job->connections && job->seats && job->files;
}

bool supervise_job_start(supervise_job *job, const char *path, char **arguments, int ranks) {
    memset(job, 0, sizeof *job);
    job->listener = -1;
    job->ranks = ranks;
    job->first = -1;
    supervise_board_open(&job->board, ranks);
    const pid_t self = getpid();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (make_room(job) && open_listener(job)) {
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

/* Kills children of this process, which it got from those of its job that died, and processes of the job's
 * session. How many there were. */
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
    static const double maximum =
        10; /* seconds; who waits in the kernel, for a file server say, dies when that answers */
    const double end = an_clock_seconds() + maximum;
    if (job->launcher <= 0) return;
    job->is_killed = true;
    kill(job->launcher, SIGKILL);
    while (kill_leftovers(job->launcher) > 0 && an_clock_seconds() < end) {
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

void supervise_job_forget(supervise_job *job) {
    supervise_job_kill(job);
    for (int i = 0; job->connections && i < job->connection_count; i++)
        an_channel_close(&job->connections[i].channel, "the end");
    if (job->listener >= 0) close(job->listener);
    free(job->connections);
    free(job->seats);
    free(job->files);
    job->files = NULL;
    job->connections = NULL;
    job->seats = NULL;
    unsetenv(variable);
    unsetenv(leader_variable);
    supervise_board_close(&job->board);
    job->listener = -1;
    job->launcher = 0;
}

/* ---- what its ranks say ---- */

static void take_state(supervise_job *job, const an_rank_state *state) {
    job->state = *state;
    job->heard = an_clock_seconds();
}

/* A rank ends. What rank 0 says is the end of the job. */
static void take_exit(supervise_job *job, const an_rank_message *message) {
    supervise_seat *seat = &job->seats[message->state.rank];
    seat->left = true;
    seat->failed = message->code != CLI_DONE && message->code != CLI_AGAIN;
    if (seat->failed && job->failed == 0) job->failed = an_clock_seconds();
    if (message->state.rank > 0) return;
    if (job->heard == 0) job->state = message->state; /* it never trained */
    job->exited = an_clock_seconds();
    job->code = message->code;
}

static void take_here(supervise_job *job, supervise_connection *c, const an_rank_message *message) {
    supervise_seat *seat = &job->seats[message->state.rank];
    const an_rank_stage stage = (an_rank_stage)message->code;
    if (seat->process != message->state.process || seat->stage != stage) job->still = 0;
    c->rank = message->state.rank;
    seat->process = message->state.process;
    if (message->state.rank == 0) job->leader = seat->process;
    supervise_board_follow(&job->board, message->state.rank, seat->process);
    seat->stage = stage;
    seat->silent = 0;
}

static void take(supervise_job *job, supervise_connection *c, an_rank_message *message) {
    if (!an_rank_message_check(message, job->ranks)) {
        an_channel_close(&c->channel, "it sent a message that makes no sense");
        return;
    }
    switch ((an_rank_message_kind)message->kind) {
    case AN_RANK_STATE: take_state(job, &message->state); return;
    case AN_RANK_HERE: take_here(job, c, message); return;
    case AN_RANK_EXIT: take_exit(job, message); return;
    case AN_RANK_STOP: return;
    case AN_RANK_TIMEOUT: job->timed_out = true; break;
    default: break;
    }
    supervise_say("%s%s", message->text, message->kind == AN_RANK_TIMEOUT ? " (ranks.timeout): it hangs" : "");
}

/* A place whose connection is closed, or else that of somebody who has not shown the key. */
static supervise_connection *find_place(supervise_job *job) {
    for (int i = 0; i < job->connection_count; i++)
        if (job->connections[i].channel.state == AN_CHANNEL_CLOSED) return &job->connections[i];
    for (int i = 0; i < job->connection_count; i++)
        if (job->connections[i].channel.state != AN_CHANNEL_OPEN) return &job->connections[i];
    return NULL;
}

static void accept_all(supervise_job *job) {
    for (supervise_connection *place; (place = find_place(job));) {
        an_channel taken;
        if (!an_channel_accept(&taken, job->listener, &job->key, AN_RANK_SUPERVISOR)) break;
        an_channel_close(&place->channel, "another one needs its place");
        *place = (supervise_connection){.channel = taken, .rank = -1};
    }
}

/* The system closes the connections of a process that dies. */
static void look_at_closed(supervise_job *job, supervise_connection *c) {
    if (c->channel.state != AN_CHANNEL_CLOSED || c->rank < 0) return;
    job->seats[c->rank].died = !job->seats[c->rank].left;
    c->rank = -1;
}

static void ask_to_stop(const supervise_job *job, supervise_connection *c) {
    const an_rank_message message = {.kind = AN_RANK_STOP, .code = job->stop};
    if (!job->stop || c->is_told || c->rank < 0 || !an_channel_send(&c->channel, &message)) return;
    c->is_told = true;
    an_channel_turn(&c->channel);
}

/* What this process kills itself has not died. */
static void note_ends(supervise_job *job) {
    if (job->is_killed) return;
    for (int rank; (rank = supervise_board_next_end(&job->board)) >= 0;) job->seats[rank].ended = ++job->ended;
}

/* The first whose process ended without a word, unless another had failed before it: launchers kill the others then. */
static void find_first(supervise_job *job) {
    int earliest = INT_MAX;
    for (int32_t rank = 0; rank < job->ranks; rank++) {
        const supervise_seat *seat = &job->seats[rank];
        if (seat->ended == 0 || seat->ended >= earliest || (seat->left && !seat->failed)) continue;
        earliest = seat->ended;
        job->first = seat->left ? -1 : rank;
    }
}

/* The last word of a rank comes before its end: what is read after the end was noted has it. */
void supervise_job_listen(supervise_job *job) {
    an_rank_message message;
    note_ends(job);
    accept_all(job);
    for (int i = 0; i < job->connection_count; i++) {
        supervise_connection *c = &job->connections[i];
        an_channel_turn(&c->channel);
        while (an_channel_receive(&c->channel, &message)) {
            take(job, c, &message);
            an_channel_turn(&c->channel);
        }
        ask_to_stop(job, c);
        look_at_closed(job, c);
    }
    find_first(job);
}

void supervise_job_stop(supervise_job *job, int number) {
    if (!job->stop) job->stop = number;
    supervise_job_listen(job);
}

void supervise_job_sleep(const supervise_job *job, int signals, double seconds) {
    enum { MILLISECONDS = 1000 };
    struct pollfd *files = job->files;
    files[0] = (struct pollfd){.fd = signals, .events = POLLIN};
    files[1] = (struct pollfd){.fd = job->listener, .events = POLLIN};
    for (int i = 0; i < job->connection_count; i++) {
        const an_channel *channel = &job->connections[i].channel;
        const short events = an_channel_events(channel);
        files[OTHERS + i] = (struct pollfd){.fd = events ? channel->socket : -1, .events = events};
    }
    poll(files, OTHERS + (nfds_t)job->connection_count, (int)(seconds * MILLISECONDS) + 1);
}
