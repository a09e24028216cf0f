#include "cli/supervise/link.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/process.h"
#include "base/system/thread.h"
#include "launch/launcher.h"

static const double beat = 0.5;   /* seconds from one word of this rank to the next */
static const double patience = 2; /* seconds for a connection, and for the last word */
enum { NOT_ENDING = -1, MILLISECONDS = 1000 };

/* One a process; the thread alone uses what is not atomic. */
static struct {
    struct sockaddr_in address;
    an_siphash_key key;
    char leader[AN_PROCESS_IDENTITY]; /* "": nobody knows */
    pthread_t thread;
    int wake; /* an eventfd; -1: there is no thread */
    atomic_int stage;
    atomic_int code; /* of the end; NOT_ENDING: it goes on */
    an_channel channel;
    an_rank_message word; /* with what does not change */
    int told;             /* the stage that was told last */
    double since, sent;
    bool was_open;
} own = {.wake = -1, .code = NOT_ENDING};

static void connect_again(double now) {
    own.since = now;
    an_channel_connect(&own.channel, &own.address, &own.key, own.word.state.rank);
}

/* A leader that is no more was killed: nobody would ever end this rank. */
static bool is_leader_gone(void) {
    long process;
    return own.was_open || (*own.leader && an_process_look(own.leader, &process) == AN_PROCESS_GONE);
}

static void look_at_connection(double now) {
    const an_channel_state state = own.channel.state;
    if (state == AN_CHANNEL_OPEN) own.was_open = true;
    if (state == AN_CHANNEL_CLOSED && is_leader_gone()) kill(getpid(), SIGKILL);
    if (state != AN_CHANNEL_OPEN && now - own.since > patience) an_channel_close(&own.channel, "it does not answer");
    if (own.channel.state == AN_CHANNEL_CLOSED && now - own.since > beat) connect_again(now);
}

/* Signals have one meaning, whoever sends them. */
static void receive_requests(void) {
    an_rank_message message;
    an_channel_turn(&own.channel);
    while (an_channel_receive(&own.channel, &message)) {
        const int number = message.kind == AN_RANK_STOP ? message.code : 0;
        if (number == SIGTERM || number == SIGINT || number == SIGUSR1) kill(getpid(), number);
        an_channel_turn(&own.channel);
    }
}

static void send_word(an_rank_message_kind kind, int code) {
    own.word.kind = kind;
    own.word.code = code;
    if (an_channel_send(&own.channel, &own.word)) an_channel_turn(&own.channel);
}

static void sleep_until(double seconds) {
    uint64_t count;
    struct pollfd files[] = {{.fd = own.wake, .events = POLLIN},
                             {.fd = own.channel.socket, .events = an_channel_events(&own.channel)}};
    if (!files[1].events) files[1].fd = -1;
    poll(files, sizeof files / sizeof *files, (int)(seconds * MILLISECONDS) + 1);
    if (files[0].revents && read(own.wake, &count, sizeof count) < 0) return; /* it was another's wake */
}

static void say_the_last(void) {
    const double end = an_clock_seconds() + patience;
    bool is_sent = false;
    while (own.channel.state != AN_CHANNEL_CLOSED && an_clock_seconds() < end) {
        an_channel_turn(&own.channel);
        if (!is_sent && own.channel.state == AN_CHANNEL_OPEN) {
            send_word(AN_RANK_EXIT, own.code);
            is_sent = true;
        }
        if (is_sent && own.channel.out_at == own.channel.out_count) break;
        sleep_until(beat / 10);
    }
    an_channel_close(&own.channel, "the end");
}

static void *run(void *unused) {
    connect_again(an_clock_seconds());
    while (own.code == NOT_ENDING) {
        receive_requests();
        const double now = an_clock_seconds();
        look_at_connection(now);
        if (own.channel.state == AN_CHANNEL_OPEN && (own.told != own.stage || now - own.sent >= beat)) {
            own.told = own.stage;
            own.sent = now;
            send_word(AN_RANK_HERE, own.told);
        }
        sleep_until(beat);
    }
    say_the_last();
    return unused;
}

void cli_link_begin(const char *supervisor, const char *leader) {
    an_launcher launcher = {.rank = 0};
    an_launcher_find(&launcher); /* of one process it says nothing, and that is rank 0 */
    if (!an_rank_supervisor_read(supervisor, &own.address, &own.key)) return;
    if (leader) snprintf(own.leader, sizeof own.leader, "%s", leader);
    own.word.state.rank = (int32_t)launcher.rank;
    own.word.state.process = (int32_t)getpid();
    gethostname(own.word.state.host, sizeof own.word.state.host - 1);
    own.told = -1;
    own.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (own.wake < 0 || an_thread_start(&own.thread, run, NULL) == 0) return;
    close(own.wake);
    own.wake = -1;
}

static void wake(void) {
    const uint64_t one = 1;
    if (write(own.wake, &one, sizeof one) < 0) return; /* it is awake already */
}

void cli_link_tell(an_rank_stage stage) {
    if (own.wake < 0) return;
    own.stage = (int)stage;
    wake();
}

void cli_link_end(int code) {
    if (own.wake < 0) return;
    own.code = code;
    wake();
    pthread_join(own.thread, NULL);
    close(own.wake);
    own.wake = -1;
}
