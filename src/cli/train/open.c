/* Opens a trainer from the name of a config, and reports what is wrong with either. */
#include "cli/train/open.h"
#include "base/options/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/supervise/rank.h"
#include "cli/train/trace.h"

/* Mistakes in a config begin with its place and nothing before it, so that editors can go there. */
int cli_refuse(const cli_call *call, const an_context *ctx, const char *file, an_status status) {
    const char *message = an_last_error(ctx);
    const size_t length = file ? strlen(file) : 0;
    const bool in_config =
        (file && !strncmp(message, file, length) && message[length] == ':') || !strncmp(message, "--set ", 6);
    if (status == AN_ERR_MEMORY || (status == AN_ERR_UNSUPPORTED && !in_config)) return cli_failure(call, ctx, status);
    if (in_config)
        cli_tell("%s", message);
    else
        cli_fail(call, "%s", message);
    cli_print_trail(call, ctx);
    return in_config ? CLI_MISUSED : CLI_FAILED;
}

bool cli_is_pipe(const char *file) {
    struct stat found;
    const bool is_input = !strcmp(file, "/dev/stdin"); /* which may be a regular file, but is another one elsewhere */
    return stat(file, &found) == 0 && (is_input || !S_ISREG(found.st_mode)) && !S_ISDIR(found.st_mode);
}

/* What came through a pipe. It can be read once, and a config is read twice: for the context, and with it. */
static const char *read_pipe(const char *file, size_t *length) {
    enum { MOST = (1 << 20) + 1 }; /* one byte more than a config may have, so that it is refused and not cut */
    static char text[MOST];
    static size_t bytes;
    FILE *pipe = bytes == 0 ? fopen(file, "rb") : NULL;
    if (pipe) {
        bytes = fread(text, 1, sizeof text, pipe);
        fclose(pipe);
    }
    *length = bytes;
    return text;
}

static an_config_options config_options(const cli_call *call, const cli_opening *opening) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    options.file = opening->file;
    if (cli_is_pipe(opening->file)) options.text = read_pipe(opening->file, &options.length);
    options.set_count = call->set_count;
    options.sets = call->sets;
    return options;
}

static an_open_options open_options(const cli_opening *opening) {
    an_open_options options;
    an_open_options_init(&options, sizeof options);
    options.purpose = opening->planned ? AN_OPEN_PLAN : opening->plain ? AN_OPEN_PLAIN : AN_OPEN_RUN;
    options.kernels = opening->plain ? NULL : opening->kernels;
    options.fresh = opening->fresh;
    options.resume = opening->resume;
    options.extend = opening->extend;
    options.restart = opening->restart;
    options.new_bits = opening->new_bits;
    options.rank = opening->rank;
    options.ranks = opening->ranks;
    options.hosts = opening->hosts;
    return options;
}

/* What the command line says of threads and instructions goes over what the config asks for. */
static an_status set_over(an_config *config, const char *key, const char *value) {
    char setting[64];
    if (an_config_is(config, key, "auto") || an_config_is(config, key, value)) return AN_OK;
    snprintf(setting, sizeof setting, "%s=%s", key, value);
    return an_config_set(config, setting);
}

an_status cli_config_read(const cli_call *call, const cli_opening *opening, an_context *ctx, an_config **config) {
    const an_config_options options = config_options(call, opening);
    char threads[16];
    snprintf(threads, sizeof threads, "%d", opening->threads);
    an_status status = an_config_read(config, ctx, &options);
    if (status == AN_OK && opening->threads) status = set_over(*config, AN_SETTING(ranks.threads), threads);
    if (status == AN_OK && opening->isa != AN_ISA_AUTO && !opening->plain)
        status = set_over(*config, AN_SETTING(run.isa), an_isa_name(opening->isa));
    return status;
}

static int choose_context(const cli_call *call, const cli_opening *opening, an_context_options *options) {
    const an_config_options config = config_options(call, opening);
    const an_open_options open = open_options(opening);
    options->communicator = opening->comm;
    options->threads = opening->threads;
    options->isa = opening->isa;
    const an_status status = an_context_options_from_config(options, &config, &open);
    return status == AN_OK ? CLI_DONE : cli_refuse(call, NULL, opening->file, status);
}

static an_status open_trainer(const cli_opening *opening, cli_training *t) {
    const an_open_options options = open_options(opening);
    return an_trainer_open_config(&t->trainer, t->ctx, t->config, &options);
}

/* Another start of a run that this machine or build cannot carry on would be refused in the same way, so a
 * supervisor must not try: the exit code says that something else has to change first. Memory, files and other
 * processes may change by themselves. */
static int refuse_opening(const cli_call *call, const an_context *ctx, const char *file, an_status status) {
    const int code = cli_refuse(call, ctx, file, status);
    return status == AN_ERR_UNSUPPORTED ? CLI_MISUSED : code;
}

static void tell_warnings(an_config *config, int *told) {
    for (; *told < an_config_warning_count(config); ++*told) cli_tell("warning: %s", an_config_warning(config, *told));
}

/* A profile is one of rank 0. Threads of the trainer that is to be opened take part in it. */
static void open_trace(const cli_opening *opening, cli_training *t) {
    if (!opening->traces || !t->is_first) return;
    t->trace_path = opening->profile;
    if (!t->trace_path && an_config_origin_of(t->config, AN_SETTING(log.profile)) != AN_ORIGIN_NONE)
        an_config_path(t->config, AN_SETTING(log.profile), &t->trace_path);
    if (!t->trace_path) return;
    t->trace = cli_trace_create(t->ctx);
    if (t->trace) return;
    cli_tell("warning: not enough memory for a profile"); /* other ranks wait for this one */
    t->trace_path = NULL;
}

int cli_training_open(const cli_call *call, const cli_opening *opening, cli_training *training) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    *training = (cli_training){
        .call = call, .is_first = !opening->comm || opening->comm->rank == 0, .info = {.size = sizeof training->info}};
    const int code = choose_context(call, opening, &options);
    if (code != CLI_DONE) return code;
    if (!opening->plain) options.log = cli_log;
    if (!opening->planned && !opening->plain) options.heartbeat = cli_rank_heartbeat(opening->comm);
    an_status status = an_context_create(&training->ctx, &options);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    status = cli_config_read(call, opening, training->ctx, &training->config);
    int told = 0;
    if (status == AN_OK && !opening->plain) tell_warnings(training->config, &told);
    if (status == AN_OK && options.heartbeat)
        cli_rank_watch(&training->watch, training->ctx, training->config, opening->comm);
    if (status == AN_OK) open_trace(opening, training);
    if (status == AN_OK) status = open_trainer(opening, training);
    if (status == AN_OK && !opening->plain) tell_warnings(training->config, &told); /* what the data made of it */
    if (status == AN_OK) status = an_trainer_info_get(training->trainer, &training->info);
    return status == AN_OK ? CLI_DONE : refuse_opening(call, training->ctx, opening->file, status);
}

void cli_training_close(cli_training *training) {
    an_watch_destroy(&training->watch);
    an_folder_destroy(&training->folder);
    an_trainer_destroy(&training->trainer);
    an_config_destroy(&training->config);
    an_context_destroy(&training->ctx);
    cli_trace_destroy(&training->trace);
}

void cli_say(cli_training *training, const char *format, ...) {
    enum { MOST = 1024 };
    char line[MOST];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    puts(line);
    if (training->folder) an_folder_log(training->folder, line); /* what cannot be logged is on the terminal */
}
