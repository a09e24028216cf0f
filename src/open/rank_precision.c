/* ranks.precision: what ranks send each other. */
#include "base/status.h"
#include "open/open.h"

/* Weights travel as ops read them: another type would move more bytes for the same results, or change the results. */
static an_status check_params(an_config *config, an_context *ctx, an_dtype read) {
    const an_dtype asked = config->settings->ranks.precision.params;
    if (asked == AN_DTYPE_NONE || asked == read) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: ranks.precision.params is %s, but the products of this run read parameters in %s; set it to "
                    "auto, or change train.precision",
                    an_config_place(config, AN_SETTING(ranks.precision.params)), an_dtype_name(asked),
                    an_dtype_name(read));
}

an_status an_open_rank_precision(an_config *config, an_context *ctx, an_dtype parameters, an_trainer_options *options) {
    const an_dtype low = options->precision;
    AN_TRY_RETURN(check_params(config, ctx, low == AN_DTYPE_NONE ? parameters : low));
    if (!options->reduces_bf16 || parameters == AN_DTYPE_F32) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: ranks.precision.reduce is bf16, but the gradients of this run are %s; set it to f32",
                    an_config_place(config, AN_SETTING(ranks.precision.reduce)), an_dtype_name(parameters));
}
