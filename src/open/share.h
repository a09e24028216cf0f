/* What rank 0 reads from files and every rank gets. */
#ifndef AN_OPEN_SHARE_H
#define AN_OPEN_SHARE_H

#include "anneal/config.h"
#include "anneal/ranks.h"

/* Rank 0's bytes on every rank. *bytes of others is NULL before, and then memory of *count + 1 bytes that the caller
 * releases; a NUL follows them. Collective. */
an_status an_open_share(an_context *ctx, char **bytes, size_t *count);

/* That every rank has rank 0's config. Collective. */
an_status an_open_compare_configs(an_config *config, an_context *ctx);

#endif
