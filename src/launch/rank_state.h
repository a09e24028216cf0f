/* What ranks tell each other and their supervisor about themselves, to explain a hang (comm/watch/watch.h). */
#ifndef AN_LAUNCH_RANK_STATE_H
#define AN_LAUNCH_RANK_STATE_H

#include <stdbool.h>

#include "anneal/heartbeat.h"
#include "launch/channel.h"

enum { AN_RANK_HOST = 64, AN_RANK_SUPERVISOR = INT32_MAX /* who it is in a channel */ };

/* A rank at one moment. Its layout is fixed: it is sent as it lies in memory. Times are in milliseconds, as
 * each rank has its own clock. */
typedef struct an_rank_state {
    int32_t rank;
    int32_t process;
    int64_t beats;       /* of its heartbeat, … */
    int64_t owner_beats; /* … and those of the thread that calls the library */
    int64_t step;
    uint64_t collectives; /* entered so far, … */
    uint64_t hash;        /* … all of them in order, … */
    uint64_t bytes;       /* … and the size of the last */
    uint32_t waits;       /* 1: for other ranks, and its heartbeat stands still meanwhile */
    uint32_t waited;      /* how long, in the same wait */
    uint32_t still;       /* how long its heartbeat has stood still */
    uint32_t silent;      /* how long ago it was last heard of; set by whoever passes the state on */
    uint32_t left;        /* 1: it is no longer watched, as its run has ended */
    char host[AN_RANK_HOST];
    char place[AN_HEARTBEAT_TEXT];     /* "backward blocks.3.attention (attention)" */
    char kind[AN_HEARTBEAT_TEXT];      /* of the last collective: "step record" */
    char waits_for[AN_HEARTBEAT_TEXT]; /* "the gradients of blocks.3 from rank 2" */
} an_rank_state;

typedef enum an_rank_message_kind {
    AN_RANK_STATE,
    AN_RANK_STALL,   /* text: which rank the others wait for, and where it is */
    AN_RANK_GOES_ON, /* text: the stall that was reported has ended */
    AN_RANK_TIMEOUT, /* text: the stall has lasted too long, and the run must end */
    AN_RANK_EXIT,    /* state: of a rank that ends with `code` */
    /* state: of a rank as its process starts, before and after it has joined the others; `code`: how far it is */
    AN_RANK_HERE,
    AN_RANK_STOP, /* to a rank: stop with a checkpoint, as if signal `code` had come */
    AN_RANK_MESSAGES
} an_rank_message_kind;

/* How far a rank is that has begun to start. */
typedef enum an_rank_stage { AN_RANK_LOADED, AN_RANK_JOINING, AN_RANK_JOINED, AN_RANK_STAGES } an_rank_stage;

enum { AN_RANK_TEXT = AN_CHANNEL_BODY - 8 };

typedef struct an_rank_message {
    uint32_t kind;
    int32_t code;
    union {
        an_rank_state state;
        char text[AN_RANK_TEXT];
    };
} an_rank_message;
_Static_assert(sizeof(an_rank_message) == AN_CHANNEL_BODY, "a message is the body of a channel's");

/* Whether this is a message that ranks of such a run send. Texts are terminated and have no control characters
 * afterwards. */
bool an_rank_message_check(an_rank_message *message, int32_t ranks);

/* Where a supervisor listens, as a text that goes through the environment of its processes: "127.0.0.1:40123:"
 * and the key in 32 digits. */
enum { AN_RANK_SUPERVISOR_TEXT = 64 };
void an_rank_supervisor_write(const struct sockaddr_in *address, const an_siphash_key *key,
                              char text[AN_RANK_SUPERVISOR_TEXT]);
bool an_rank_supervisor_read(const char *text, struct sockaddr_in *address, an_siphash_key *key);

#endif
