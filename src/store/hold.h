/* Checkpoints that are being read. A run that is under way removes its old checkpoints, while another process may be
 * reading one.
 *
 * A reader holds the manifest with a shared lock, and a run that finds a reader leaves the checkpoint until a later
 * save. This is a courtesy, and no result depends on it: where a file system has no locks, a checkpoint is removed
 * under its reader, who gets an error; where it keeps the lock of a dead reader, one checkpoint more stays. */
#ifndef AN_STORE_HOLD_H
#define AN_STORE_HOLD_H

#include <stdbool.h>

enum { AN_HOLD_NONE = -1 };

/* For a reader: keeps the checkpoint from being removed until it is let go. False: it does not exist, or is being
 * removed. */
bool an_hold_begin(int *hold, const char *folder);
/* For a run, before it removes the checkpoint: false if somebody reads it. */
bool an_hold_take(int *hold, const char *folder);
void an_hold_end(int *hold);

#endif
