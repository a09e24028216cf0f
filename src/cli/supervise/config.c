/* What a supervisor reads of the config that its training process will read again. */
#include "base/options/settings.h"
#include "cli/supervise/supervise.h"
#include "cli/train/open.h"

int supervise_config(const cli_call *call, an_status (*read)(void *user, an_context *ctx, an_config *config),
                     void *user) {
    an_context_options alone;
    an_context_options_init(&alone, sizeof alone);
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    an_config *config = NULL;
    alone.threads = 1;
    an_status status = an_context_create(&ctx, &alone);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    options.file = call->argument;
    options.set_count = call->set_count;
    options.sets = call->sets;
    status = an_config_create(&config, ctx, &options);
    if (status == AN_OK) status = read(user, ctx, config);
    const int code = status == AN_OK ? CLI_DONE : cli_refuse(call, ctx, call->argument, status);
    an_config_destroy(&config);
    an_context_destroy(&ctx);
    return code;
}

typedef struct {
    double *report_after, *timeout;
} limits;

static an_status read_limits(void *user, an_context *ctx, an_config *config) {
    const limits *l = user;
    (void)ctx;
    const an_status status = an_config_seconds(config, AN_SETTING(ranks.report_after), l->report_after);
    return status == AN_OK ? an_config_seconds(config, AN_SETTING(ranks.timeout), l->timeout) : status;
}

int supervise_limits(const cli_call *call, double *report_after, double *timeout) {
    return supervise_config(call, read_limits, &(limits){report_after, timeout});
}
