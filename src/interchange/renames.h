/* model.init.rename: maps the names of tensors in a file to names in the model. */
#ifndef AN_INTERCHANGE_RENAMES_H
#define AN_INTERCHANGE_RENAMES_H

#include "anneal/train.h"

enum { AN_NAME_BYTES = 1024 };

typedef struct an_renaming an_renaming;

typedef struct an_renamings {
    an_context *ctx;
    int count;
    an_renaming *rules; /* in the order given */
    struct pcre2_real_match_context_8 *limits;
} an_renamings;

an_status an_renamings_create(an_renamings *names, an_context *ctx, int count, const an_load_rename *renames);
void an_renamings_destroy(an_renamings *names); /* also after an_renamings_create failed */
/* The name that a tensor of the file has in the model; "", which none has, if it is longer than any. */
an_status an_renamings_apply(const an_renamings *names, const char *name, char out[AN_NAME_BYTES]);
/* Warns of rules that no tensor matched. */
void an_renamings_tell(const an_renamings *names, const char *path);

#endif
