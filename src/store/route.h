/* Which bytes go between the ranks that own the state and the ranks that have the files of a checkpoint.
 *
 * File i of W belongs to rank ⌊i·P/W⌋ of P, which writes it, or reads it, so that a rank has at most ⌈W/P⌉ files. What
 * is on the grid of pages belongs to the ranks of the ownership map (exec/shards.h), of which there are as many for a
 * page as the map has groups: a writer takes it from its own group, and a reader gives it to the owner in each. What is
 * not, such as frozen parameters and run states, every rank has: its writer takes its own, and a reader gives it to
 * all. Without a map that is so for everything.
 *
 * Files go in chunks. In round k, chunk k of the files of every rank is on its way, so that all ranks that have files
 * work at the same time. A route has the transfers of one rank, by round, hops, file, place in the file and owner. Both
 * sides of a transfer have it in this order, so messages between two ranks need no number. A rank that begins and ends
 * the messages of one round before those of the next cannot wait for ever: in the lowest round that any rank is in,
 * every message has both its sides.
 *
 * What a load gives to all goes round in a ring, from the rank that has the file to the next and so on, so that each
 * rank sends as much as any other. `hops` says how far it has come, and those that have come less far go first: all
 * ranks begin with their own.
 *
 * It follows from the layout, the map and the number of ranks alone. O(tensors + files + transfers of this rank),
 * never O(ranks · tensors). */
#ifndef AN_STORE_ROUTE_H
#define AN_STORE_ROUTE_H

#include "anneal/experimental.h"
#include "exec/params.h"
#include "exec/shards.h"
#include "store/layout.h"

enum { AN_ROUTE_ALL = -1 };

/* A part of a tensor that lies in one chunk of a file. */
typedef struct an_transfer {
    size_t tensor, file; /* of the layout */
    int64_t at;          /* byte of the tensor */
    int64_t offset;      /* byte of the file */
    int64_t place;       /* byte of the memory in which its holder has the files of a save */
    int64_t bytes, round;
    int owner;  /* the rank that has it in its store; AN_ROUTE_ALL: each does */
    int holder; /* the rank that has the file */
    int hops;   /* of what goes to all: from its holder to this rank */
} an_transfer;

typedef enum an_route_way { AN_ROUTE_SAVE, AN_ROUTE_LOAD } an_route_way;

typedef struct an_route_options {
    int ranks, rank;
    const an_shards *shards; /* NULL: every rank has everything */
    an_route_way way;
    int64_t chunk; /* bytes */
} an_route_options;

typedef struct an_route {
    an_context *ctx;
    int ranks, rank;
    int64_t chunk;
    an_file_range files;    /* of this rank */
    an_transfer *transfers; /* of this rank: what it owns, and what is in its files */
    size_t count;
    size_t maximum;            /* of them in one round */
    an_comm_request *requests; /* two for each of these: a message that comes, and one that goes */
} an_route;

/* The pieces of the layout are in the order of files and of bytes in them. */
an_status an_route_create(an_route **route, const an_save_layout *layout, const an_route_options *options);
void an_route_destroy(an_route **route);

/* What a route takes, to the byte. */
int64_t an_route_bytes(const an_route *route);

/* The transfers of one round, from `first` on: how many there are. */
size_t an_route_round(const an_route *route, size_t first);

/* Where the bytes of a transfer are in a store that has them. */
char *an_route_memory(const an_save_layout *layout, const an_params *params, const an_transfer *transfer);

/* ---- the rules ---- */

static inline int an_route_holder(size_t file, size_t files, int ranks) {
    return (int)(file * (size_t)ranks / files);
}

/* The files of a rank. */
static inline an_file_range an_route_files(size_t files, int rank, int ranks) {
    const size_t r = (size_t)rank, p = (size_t)ranks;
    return (an_file_range){(r * files + p - 1) / p, ((r + 1) * files + p - 1) / p};
}

/* save.writers: auto */
static inline int64_t an_route_writers(int ranks, int hosts) {
    enum { MOST_EACH = 64 }; /* from here on a file for every rank is more than a file system likes */
    return ranks <= MOST_EACH ? ranks : hosts;
}

#endif
