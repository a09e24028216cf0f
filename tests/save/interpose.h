/* What the files of the fault library share: a call, and what a power cut would leave. */
#ifndef TESTS_SAVE_INTERPOSE_H
#define TESTS_SAVE_INTERPOSE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* The function of this name behind this library. */
#define REAL(function) ((__typeof__(&(function)))real_function(#function))
void *real_function(const char *name);

enum { KEY_BYTES = 2 * PATH_MAX + 64 };

typedef struct call {
    const char *name;
    char path[2 * PATH_MAX + 8]; /* two of a rename */
    char key[KEY_BYTES];
    long number;
    bool chosen; /* something happens to it: */
    bool half;   /* it is to write half */
    bool done;   /* it is to do its work and fail all the same */
    char *now;   /* this thread's line of $FAULT_NOW; NULL: there is none */
} call;

/* Whether a call on a path, two paths or a descriptor is looked at; errno stays. */
bool call_on_path(call *c, const char *name, int folder, const char *path);
bool call_on_two(call *c, const char *name, int from_folder, const char *from, int to_folder, const char *to);
bool call_on_descriptor(call *c, const char *name, int descriptor);
/* The path that a descriptor was opened on; NULL: it is closed. */
void call_set_path(int descriptor, const char *path);

/* Before it. True: it is not to be made, and fails with errno. */
bool call_enter(call *c);
/* After it, with what it gave: gives what the caller is to see, errno too. */
ssize_t call_leave(call *c, ssize_t result);

/* The durable shadow of the folder, in $FAULT_SHADOW; each does nothing where there is none.
 *   inodes/NUMBER     content of a file at its last fsync
 *   folders/NUMBER    entries of a folder at its last fsync: a line "type inode name" each, and a
 *   link's target after a tab */
void shadow_sync(int descriptor);
/* The inode behind a path gets no new meaning while the process lives: for what is about to lose its name. */
void shadow_pin(int folder, const char *path);

#endif
