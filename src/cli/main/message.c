/* Error messages of the command, and numbers formatted for people. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "cli/main/cli.h"

bool cli_silent;

/* "anneal plan: " */
static void print_prefix(const cli_call *call) {
    fprintf(stderr, "anneal%s%s: ", call->command ? " " : "", call->command ? call->command->name : "");
}

void cli_tell(const char *format, ...) {
    va_list arguments;
    if (cli_silent) return;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    putc('\n', stderr);
}

void cli_log(void *user, an_log_level level, const char *text) {
    (void)user;
    if (level == AN_LOG_WARNING) cli_tell("warning: %s", text);
}

int cli_misuse(const cli_call *call, const char *format, ...) {
    va_list arguments;
    if (cli_silent) return CLI_MISUSED;
    print_prefix(call);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n(see 'anneal%s%s --help')\n", call->command ? " " : "",
            call->command ? call->command->name : "");
    return CLI_MISUSED;
}

void cli_print_trail(const cli_call *call, const an_context *ctx) {
    const char *line = call->verbose ? an_last_error_trail(ctx) : "";
    while (*line) {
        const int length = (int)strcspn(line, "\n");
        cli_tell("  %.*s", length, line);
        line += length + (line[length] == '\n');
    }
}

int cli_failure(const cli_call *call, const an_context *ctx, an_status status) {
    if (!cli_silent) print_prefix(call);
    cli_tell("%s", an_last_error(ctx));
    cli_print_trail(call, ctx);
    switch (status) {
    case AN_ERR_ARGUMENT:
    case AN_ERR_SHAPE:
    case AN_ERR_DTYPE:
    case AN_ERR_STATE:
    case AN_ERR_ORDER:
    case AN_ERR_PARSE:
    case AN_ERR_UNKNOWN:
    case AN_ERR_UNSUPPORTED:
    case AN_ERR_OVERFLOW: return CLI_MISUSED;
    default: return CLI_FAILED;
    }
}

int cli_fail(const cli_call *call, const char *format, ...) {
    va_list arguments;
    if (cli_silent) return CLI_FAILED;
    print_prefix(call);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    putc('\n', stderr);
    return CLI_FAILED;
}

int cli_finish(const cli_call *call) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return CLI_DONE;
    return cli_fail(call, "standard output could not be written");
}

cli_hint cli_did_you_mean(const char *dashes, const char *name, const char *const *names) {
    cli_hint hint = {""};
    an_nearest nearest;
    an_nearest_init(&nearest, name, strlen(name));
    for (int i = 0; names[i]; i++) an_nearest_consider(&nearest, names[i], strlen(names[i]));
    if (nearest.best) snprintf(hint.text, sizeof hint.text, "; did you mean '%s%s'?", dashes, nearest.best);
    return hint;
}

/* The prefix of the unit that gives a number below `base`. */
static const char *prefix_of(double *number, double base, const char *const *prefixes) {
    int i = 0;
    for (; *number >= base && prefixes[i + 1]; i++) *number /= base;
    return prefixes[i];
}

cli_text cli_bytes(double bytes) {
    static const char *const prefixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", NULL};
    cli_text out;
    const char *prefix = prefix_of(&bytes, 1024, prefixes);
    snprintf(out.text, sizeof out.text, "%.*f %sB", *prefix ? 2 : 0, bytes, prefix);
    return out;
}

cli_text cli_amount(double amount, const char *unit) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E", NULL};
    cli_text out;
    const char *prefix = prefix_of(&amount, 1000, prefixes);
    snprintf(out.text, sizeof out.text, "%.*f %s%s", *prefix ? 2 : 0, amount, prefix, unit);
    return out;
}

cli_text cli_count(int64_t number) {
    enum { GROUP = 3 };
    char digits[24]; /* of a 64-bit number */
    cli_text out = {""};
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number), at = 0;
    for (int i = 0; i < length; i++) {
        out.text[at++] = digits[i];
        if ((length - i - 1) % GROUP == 0 && i + 1 < length && digits[i] != '-') out.text[at++] = ',';
    }
    out.text[at] = 0;
    return out;
}

cli_text cli_waiting(double spin_seconds) {
    cli_text out;
    if (isinf(spin_seconds))
        snprintf(out.text, sizeof out.text, "spin without sleeping");
    else if (spin_seconds > 0)
        snprintf(out.text, sizeof out.text, "spin %.3g ms, then sleep", 1e3 * spin_seconds);
    else
        snprintf(out.text, sizeof out.text, "sleep immediately");
    return out;
}
