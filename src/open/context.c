/* Whether a context is the one that a config asks for. */
#include "base/context.h"
#include "anneal/ranks.h"
#include "open/open.h"

an_status an_open_check_context(an_config *config, an_context *ctx, an_open_purpose purpose) {
    static const char remedy[] = "create it with the options from an_context_options_from_config, or set";
    an_context_options said; /* threads 0 and isa AUTO: the config leaves them to the machine */
    an_context_options_init(&said, sizeof said);
    AN_TRY_RETURN(an_config_fill(config, "", an_context_options, &said));
    const an_isa isa = said.isa;
    if (an_context_ranks(ctx) > 1 && ctx->shares_memory && !said.shares_memory)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "%s: ranks.shared_memory is off, but the context has shares_memory; %s ranks.shared_memory to on",
            an_config_place(config, AN_SETTING(ranks.shared_memory)), remedy);
    if (said.threads != 0 && said.threads != an_context_threads(ctx))
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT, "%s: ranks.threads is %d, but the context has %d; %s ranks.threads to auto",
            an_config_place(config, AN_SETTING(ranks.threads)), said.threads, an_context_threads(ctx), remedy);
    if (purpose != AN_OPEN_PLAIN && isa != AN_ISA_AUTO && isa != an_context_isa(ctx))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: run.isa is %s, but the context has %s; %s run.isa to auto",
                        an_config_place(config, AN_SETTING(run.isa)), an_isa_name(isa),
                        an_isa_name(an_context_isa(ctx)), remedy);
    return AN_OK;
}
