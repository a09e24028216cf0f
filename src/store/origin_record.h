/* The checkpoint that a run took its weights and moments from, when it began with --restart. */
#ifndef AN_STORE_ORIGIN_RECORD_H
#define AN_STORE_ORIGIN_RECORD_H

#include "base/text/json.h"
#include "base/text/json_write.h"

typedef struct an_saved_origin {
    const char *path; /* of the manifest's text, or of the trainer; NULL: the run began with weights of its own */
    int64_t step;     /* that it was saved after */
    uint64_t hash[2]; /* of its manifest, which has the hashes of all its files */
} an_saved_origin;

/* As members of a JSON object, and back. */
void an_origin_write(an_json_writer *json, const an_saved_origin *origin);
bool an_origin_read(an_json *json, an_saved_origin *origin);

#endif
