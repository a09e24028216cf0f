/* The checkpoints of a run folder: their names, and which there are. */
#ifndef AN_STORE_PLACES_H
#define AN_STORE_PLACES_H

#include "base/files/file.h"
#include "base/memory.h"

#define AN_CHECKPOINTS "checkpoints"
enum { AN_CHECKPOINT_NAME = 96 };

/* What a name says of a folder: finished ones begin with "step-"; others are being written, or removed. */
typedef enum an_checkpoint_kind {
    AN_CHECKPOINT_FINISHED,
    AN_CHECKPOINT_UNFINISHED,
    AN_CHECKPOINT_REMOVED,
    AN_CHECKPOINT_KINDS
} an_checkpoint_kind;

typedef struct an_checkpoint_place {
    char name[AN_CHECKPOINT_NAME]; /* "step-00000250-3", "step-00000250-3-at-12" */
    int64_t step, generation;
    bool named;        /* by the host program, with a step of its own */
    int64_t user_step; /* that one */
} an_checkpoint_place;

/* The name of a step of a launch; user_step is NULL unless the host program named it. */
void an_checkpoint_name(char name[AN_CHECKPOINT_NAME], an_checkpoint_kind kind, int64_t step, int64_t generation,
                        const int64_t *user_step);
/* The same place under the name of another kind. */
void an_checkpoint_rename(char name[AN_CHECKPOINT_NAME], an_checkpoint_kind kind, const char *other);
/* False: it is no such name. */
bool an_checkpoint_parse(const char *name, an_checkpoint_kind *kind, an_checkpoint_place *place);

/* The finished ones in a folder of them, oldest first: by generation and then by step, as a later launch may have gone
 * back. A folder that is not there has none. O(checkpoints); released with an_release, `*capacity` elements. */
an_status an_checkpoints_list(an_context *ctx, const char *folder, an_checkpoint_place **places, size_t *count,
                              size_t *capacity);

/* Removes a folder of files, as well as it goes: what a file system keeps for others (.nfs…) stays, and is
 * tried again. For threads. */
void an_checkpoint_remove(const char *folder, const char *name);
/* What launches up to `generation` left unfinished or half removed, but for the one named. For threads. */
void an_checkpoints_tidy(const char *folder, int64_t generation, const char *but);

#endif
