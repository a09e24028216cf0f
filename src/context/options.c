/* Options of a context that a config says: threads, instruction set, and whether ranks share memory. */
#include <string.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/ranks.h"
#include "base/context.h"
#include "base/guard.h"
#include "base/structs.h"
#include "config/config.h"

/* The instructions that a run began with are kept for ever; AUTO where there is none to carry on, or
 * this machine has them not. */
static an_isa isa_of_run(an_context *ctx, an_config *config, const an_open_options *open) {
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    an_checkpoint *checkpoint = NULL;
    const char *path = open ? open->resume : NULL;
    an_isa found = AN_ISA_AUTO;
    if (open && (open->purpose != AN_OPEN_RUN || open->fresh)) return found;
    const bool restarts =
        open && open->restart != AN_RESTART_NONE; /* a new run has its own, from its first launch on */
    if ((!path || restarts) && an_config_path(config, AN_SETTING(run.dir), &path) != AN_OK) return found;
    if (an_checkpoint_open(&checkpoint, ctx, path) != AN_OK) return found;
    if (an_checkpoint_info_get(checkpoint, &info) == AN_OK && info.is_run)
        for (int isa = AN_ISA_BASE; isa <= (int)an_context_isa(ctx); isa++)
            if (!strcmp(info.isa, an_isa_name((an_isa)isa))) found = (an_isa)isa;
    an_checkpoint_close(&checkpoint);
    return found;
}

/* The instructions that the run began with, as rank 0 finds them in its folder. */
static an_status find_isa(an_context *ctx, an_config *config, const an_open_options *open, an_isa *isa) {
    int64_t found = *isa;
    if (found == AN_ISA_AUTO && an_context_rank(ctx) == 0) found = isa_of_run(ctx, config, open);
    AN_TRY_RETURN(an_ranks_broadcast(ctx, &found, 1, AN_DTYPE_I64, 0));
    *isa = found > AN_ISA_AUTO && found <= AN_ISA_AMX ? (an_isa)found : AN_ISA_AUTO;
    return AN_OK;
}

/* A config is read with a context; this one is for that alone. It has the ranks of the real one, so rank 0
 * can read for all of them. */
an_status an_context_options_from_config(an_context_options *options, const an_config_options *config_options,
                                         const an_open_options *open) {
    AN_GUARD;
    AN_NEED_IN(NULL, options, config_options);
    an_context_options alone, own, said;
    an_context *ctx = NULL;
    AN_TRY_RETURN(an_context_options_read(NULL, &own, options));
    an_context_options_init(&alone, sizeof alone);
    an_context_options_init(&said, sizeof said); /* what the config leaves open stays 0 or AUTO */
    an_config *config = NULL;
    alone.threads = 1;
    alone.allocator = own.allocator;
    alone.communicator = own.communicator;
    an_status status = an_context_create(&ctx, &alone);
    if (status != AN_OK) return status;
    ctx->adds_later = true;
    status = an_config_read(&config, ctx, config_options);
    if (status == AN_OK) status = an_ranks_agree(ctx, an_config_fill(config, "", an_context_options, &said));
    if (status == AN_OK) status = find_isa(ctx, config, open, &said.isa);
    if (status == AN_OK) {
        if (own.threads == 0) own.threads = said.threads;
        own.shares_memory = own.shares_memory && said.shares_memory;
        if (own.isa == AN_ISA_AUTO) own.isa = said.isa;
        status = an_context_options_write(NULL, options, &own);
    } else {
        status = AN_ERROR(NULL, status, "%s", an_last_error(ctx));
    }
    an_config_destroy(&config);
    an_context_destroy(&ctx);
    return status;
}
