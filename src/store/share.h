/* What rank 0 reads of a checkpoint, and every rank gets: so other ranks open only the files that they load. */
#ifndef AN_STORE_SHARE_H
#define AN_STORE_SHARE_H

#include "store/manifest.h"

/* Rank 0's bytes on every rank. *bytes of others is NULL before, and then memory of *count + 1 bytes that the caller
 * releases; a NUL follows them. `status` is what rank 0 could not read. Collective: all ranks return the same error. */
an_status an_share_bytes(an_context *ctx, an_status status, char **bytes, size_t *count);

/* an_manifest_read by rank 0, for all. Collective: all ranks return the same error. */
an_status an_manifest_share(an_manifest **manifest, an_context *ctx, const char *folder);

#endif
