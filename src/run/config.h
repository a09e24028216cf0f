/* The config of a run with several ranks: all have that of rank 0. */
#ifndef AN_RUN_CONFIG_H
#define AN_RUN_CONFIG_H

#include "anneal/config.h"

/* AN_OK if every rank has rank 0's config; the error says what differs. Collective. */
an_status an_run_compare_configs(an_context *ctx, an_config *config);

#endif
