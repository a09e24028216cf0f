/* Launches of a run. Each start has a generation, a number that increases by one. The files that it creates have it
 * in their names, and before it changes anything of the run, it checks whether a later launch has started. No file
 * lock is relied on: shared file systems may drop locks, or keep those of dead processes. */
#ifndef AN_STORE_LAUNCH_H
#define AN_STORE_LAUNCH_H

#include "base/files/file.h"

/* Takes the next generation of a run folder, which is made if it is not there. Refused (AN_ERR_STATE) where a process
 * of this machine is at work in it. */
an_status an_launch_claim(an_context *ctx, const char *folder, int64_t *generation);

/* AN_ERR_STATE where a process of this machine is at work in the folder. */
an_status an_launch_check_free(an_context *ctx, const char *folder);

/* AN_ERR_TAKEN_OVER if a later launch has started. O(launches that have not been tidied away): one or two. */
an_status an_launch_check(const char *folder, int64_t generation, an_note note);

/* How often this launch was asked to stop: lines after the first of its file, which `anneal stop` adds. The file is
 * opened each time, so that a shared file system asks its server; and a request is for one launch and never meets the
 * next. 0 if it cannot be read. */
#define AN_LAUNCH_STOP "stop"
int an_launch_requests(const char *folder, int64_t generation);

#endif
