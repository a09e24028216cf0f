/* Messages of one size over TCP between processes that share a key. Nothing here waits.
 *
 * Whoever connects sends a hello with a number of its own, and gets the other's number back. Both numbers and the
 * shared key give the key of this connection. Every message carries its place in the order and a keyed hash
 * (SipHash-2-4) over all of it, so a message that was made up, changed, repeated, left out or recorded from another
 * connection closes the connection. Messages are not secret.
 *
 * One thread uses a channel. */
#ifndef AN_LAUNCH_CHANNEL_H
#define AN_LAUNCH_CHANNEL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/siphash.h"

enum {
    AN_CHANNEL_BODY = 960, /* bytes of a message that belong to the caller */
    AN_CHANNEL_FRAME = 1024,
    AN_CHANNEL_QUEUE = 4 /* messages that may wait to be sent */
};

typedef enum an_channel_state {
    AN_CHANNEL_CLOSED,
    AN_CHANNEL_CONNECTING,
    AN_CHANNEL_GREETING, /* one side has proved that it has the key, the other not yet */
    AN_CHANNEL_OPEN
} an_channel_state;

typedef struct an_channel {
    an_channel_state state;
    int socket;
    bool accepted;    /* the other side connected */
    int32_t self;     /* who this side is, … */
    int32_t peer;     /* … and the other; known from its hello on */
    const char *note; /* once it is closed: why */
    an_siphash_key key, session;
    uint64_t nonce;
    uint64_t sent, received; /* messages of the session, to be counted by both sides */
    size_t in_count, out_count, out_at;
    unsigned char in[AN_CHANNEL_FRAME];
    unsigned char out[AN_CHANNEL_QUEUE * AN_CHANNEL_FRAME];
} an_channel;

/* A new key from the system's random numbers; false if it has none. */
bool an_channel_key_make(an_siphash_key *key);

/* A socket that listens at this address (port 0: any; `address` then says which); -1, with errno. */
int an_channel_listen(struct sockaddr_in *address);

/* Begins a connection as `self`. It is closed at once if the system refuses. */
void an_channel_connect(an_channel *channel, const struct sockaddr_in *to, const an_siphash_key *key, int32_t self);
/* Takes a connection that a listening socket has, if there is one. */
bool an_channel_accept(an_channel *channel, int listener, const an_siphash_key *key, int32_t self);

/* What poll is to wait for; 0: the channel is closed. */
short an_channel_events(const an_channel *channel);
/* Reads and writes what can be read and written now. */
void an_channel_turn(an_channel *channel);
/* A message that has come, if there is one. After false, an_channel_turn may bring the next. */
bool an_channel_receive(an_channel *channel, void *body);
/* Queues a message; false: the channel is not open, or its queue is full. */
bool an_channel_send(an_channel *channel, const void *body);
void an_channel_close(an_channel *channel, const char *why);

#endif
