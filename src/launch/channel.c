#define _GNU_SOURCE /* accept4; NOLINT(bugprone-reserved-identifier) */
#include "launch/channel.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

typedef enum { HELLO = 1, WELCOME, MESSAGE } frame_kind;

/* What goes over the wire, as it lies in memory: both sides are the same program, which ranks check when they start. */
typedef struct {
    uint32_t magic, kind;
    int32_t from, reserved;
    uint64_t number;   /* of a message, from 1; 0 in a greeting */
    uint64_t nonce[2]; /* in a greeting: of the side that connects, and of the other */
    uint64_t zeros[2];
    unsigned char body[AN_CHANNEL_BODY];
    uint64_t hash; /* of all before it */
} frame;
_Static_assert(sizeof(frame) == AN_CHANNEL_FRAME, "a frame has its size without gaps");

static const uint32_t magic = 0x31776e61; /* "anw1": 1 is the version of this layout */

static bool get_random(void *bytes, size_t count) {
    return getrandom(bytes, count, 0) == (ssize_t)count;
}

bool an_channel_key_make(an_siphash_key *key) {
    return get_random(key, sizeof *key);
}

/* ---- frames ---- */

/* The key of a connection. What is hashed differs for its two words, and is as long as nothing else that is
 * hashed under the shared key. */
static an_siphash_key make_session(const an_siphash_key *key, uint64_t first, uint64_t second) {
    uint64_t words[3] = {first, second, 0};
    an_siphash_key session;
    session.words[0] = an_siphash(key, words, sizeof words);
    words[2] = 1;
    session.words[1] = an_siphash(key, words, sizeof words);
    return session;
}

static uint64_t hash_of(const frame *f, const an_siphash_key *key) {
    return an_siphash(key, f, offsetof(frame, hash));
}

static bool queue(an_channel *c, frame *f, const an_siphash_key *key) {
    if (c->out_at > 0) {
        memmove(c->out, c->out + c->out_at, c->out_count - c->out_at);
        c->out_count -= c->out_at;
        c->out_at = 0;
    }
    if (c->out_count + sizeof *f > sizeof c->out) return false;
    f->magic = magic;
    f->from = c->self;
    f->hash = hash_of(f, key);
    memcpy(c->out + c->out_count, f, sizeof *f);
    c->out_count += sizeof *f;
    return true;
}

/* ---- greetings ---- */

static void get_hello(an_channel *c, const frame *f) {
    frame answer = {.kind = WELCOME, .nonce = {f->nonce[0], c->nonce}};
    c->peer = f->from;
    c->session = make_session(&c->key, f->nonce[0], c->nonce);
    queue(c, &answer, &c->key);
}

static void get_welcome(an_channel *c, const frame *f) {
    if (f->nonce[0] != c->nonce) {
        an_channel_close(c, "it answers another hello");
        return;
    }
    c->peer = f->from;
    c->session = make_session(&c->key, c->nonce, f->nonce[1]);
    c->state = AN_CHANNEL_OPEN;
}

/* A whole frame has come. A greeting is used up here; a message stays for an_channel_receive. The side that was
 * connected to knows only from the first message that this hello is no old one. */
static void look_at_frame(an_channel *c) {
    frame f;
    memcpy(&f, c->in, sizeof f);
    const bool expects_greeting = c->state != AN_CHANNEL_OPEN && c->peer < 0;
    const uint32_t kind = !expects_greeting ? MESSAGE : c->accepted ? HELLO : WELCOME;
    const uint64_t number = expects_greeting ? 0 : c->received + 1;
    if (f.magic != magic || f.kind != kind || f.from < 0 || (!expects_greeting && f.from != c->peer) ||
        f.from == c->self || f.number != number || f.hash != hash_of(&f, expects_greeting ? &c->key : &c->session)) {
        c->in_count = 0;
        an_channel_close(c, "it sent something that is no message of this run");
        return;
    }
    if (kind == MESSAGE) {
        c->state = AN_CHANNEL_OPEN;
        return;
    }
    c->in_count = 0;
    (c->accepted ? get_hello : get_welcome)(c, &f);
}

/* ---- sockets ---- */

static void begin(an_channel *c, int socket, const an_siphash_key *key, int32_t self, an_channel_state state) {
    const int yes = 1;
    memset(c, 0, offsetof(an_channel, in));
    c->socket = socket;
    c->state = state;
    c->self = self;
    c->peer = -1;
    c->key = *key;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (!get_random(&c->nonce, sizeof c->nonce)) an_channel_close(c, "the system has no random numbers");
}

int an_channel_listen(struct sockaddr_in *address) {
    enum { BACKLOG = 128 };
    socklen_t length = sizeof *address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener < 0) return -1;
    if (bind(listener, (const struct sockaddr *)address, sizeof *address) == 0 && listen(listener, BACKLOG) == 0 &&
        getsockname(listener, (struct sockaddr *)address, &length) == 0)
        return listener;
    const int error = errno;
    close(listener);
    errno = error;
    return -1;
}

void an_channel_connect(an_channel *channel, const struct sockaddr_in *to, const an_siphash_key *key, int32_t self) {
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    begin(channel, file, key, self, AN_CHANNEL_CONNECTING);
    if (file < 0 || (connect(file, (const struct sockaddr *)to, sizeof *to) != 0 && errno != EINPROGRESS)) {
        an_channel_close(channel, strerrordesc_np(errno));
        return;
    }
    frame hello = {.kind = HELLO, .nonce = {channel->nonce}};
    queue(channel, &hello, &channel->key);
}

bool an_channel_accept(an_channel *channel, int listener, const an_siphash_key *key, int32_t self) {
    const int file = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (file < 0) return false;
    begin(channel, file, key, self, AN_CHANNEL_GREETING);
    channel->accepted = true;
    return true;
}

void an_channel_close(an_channel *channel, const char *why) {
    if (channel->state == AN_CHANNEL_CLOSED) return;
    if (channel->socket >= 0) close(channel->socket);
    channel->socket = -1;
    channel->state = AN_CHANNEL_CLOSED;
    channel->note = why;
}

short an_channel_events(const an_channel *channel) {
    if (channel->state == AN_CHANNEL_CLOSED) return 0;
    const bool has_room = channel->in_count < sizeof channel->in;
    const bool has_more = channel->out_at < channel->out_count;
    return (short)((has_room ? POLLIN : 0) | (has_more ? POLLOUT : 0));
}

static bool is_later(int error) {
    return error == EAGAIN || error == EINTR || error == ENOTCONN || error == EINPROGRESS;
}

static void write_some(an_channel *c) {
    while (c->state != AN_CHANNEL_CLOSED && c->out_at < c->out_count) {
        const ssize_t n = send(c->socket, c->out + c->out_at, c->out_count - c->out_at, MSG_NOSIGNAL);
        if (n < 0 && is_later(errno)) return;
        if (n <= 0) {
            an_channel_close(c, n < 0 ? strerrordesc_np(errno) : "nothing can be sent");
            return;
        }
        c->out_at += (size_t)n;
        if (c->state == AN_CHANNEL_CONNECTING) c->state = AN_CHANNEL_GREETING;
    }
}

static void read_some(an_channel *c) {
    while (c->state != AN_CHANNEL_CLOSED && c->state != AN_CHANNEL_CONNECTING && c->in_count < sizeof c->in) {
        const ssize_t n = recv(c->socket, c->in + c->in_count, sizeof c->in - c->in_count, 0);
        if (n < 0 && is_later(errno)) return;
        if (n <= 0) {
            an_channel_close(c, n < 0 ? strerrordesc_np(errno) : "the connection was closed");
            return;
        }
        c->in_count += (size_t)n;
        if (c->in_count == sizeof c->in) look_at_frame(c);
    }
}

void an_channel_turn(an_channel *channel) {
    write_some(channel);
    read_some(channel);
    write_some(channel);
}

/* ---- messages ---- */

bool an_channel_receive(an_channel *channel, void *body) {
    if (channel->in_count < sizeof channel->in) return false; /* look_at_frame has checked what is complete */
    memcpy(body, channel->in + offsetof(frame, body), AN_CHANNEL_BODY);
    channel->received++;
    channel->in_count = 0;
    return true;
}

bool an_channel_send(an_channel *channel, const void *body) {
    frame f = {.kind = MESSAGE, .number = channel->sent + 1};
    if (channel->state != AN_CHANNEL_OPEN) return false;
    memcpy(f.body, body, sizeof f.body);
    if (!queue(channel, &f, &channel->session)) return false;
    channel->sent++;
    return true;
}
