#include "cli/checkpoint/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options/settings.h"
#include "base/text/utf8.h"
#include "cli/train/open.h"

int cli_checkpoint_open(const cli_call *call, const char *path, cli_checkpoint *opened) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    *opened = (cli_checkpoint){.call = call, .info = {.size = sizeof opened->info}, .choice = "given"};
    options.threads = 1;
    options.log = cli_log;
    an_status status = an_context_create(&opened->ctx, &options);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    status = an_checkpoint_open(&opened->checkpoint, opened->ctx, path);
    if (status == AN_OK) status = an_checkpoint_info_get(opened->checkpoint, &opened->info);
    return status == AN_OK ? CLI_DONE : cli_refuse(call, opened->ctx, NULL, status);
}

/* ---- which of a run's checkpoints ---- */

/* Paths are on the heap, as opening a checkpoint needs the stack. NULL: there is no memory. */
static char *join(const char *folder, const char *name) {
    const size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = malloc(bytes);
    if (path) snprintf(path, bytes, "%s/%s", folder, name);
    return path;
}

static bool is_folder(const char *path) {
    struct stat found;
    return path && stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* A folder of checkpoints, and not one itself. */
static bool is_run(const char *path) {
    char *checkpoints = join(path, "checkpoints"), *manifest = join(path, "manifest.json");
    const bool is = is_folder(checkpoints) && manifest && access(manifest, F_OK) != 0;
    free(checkpoints);
    free(manifest);
    return is;
}

/* What the link `best` points to, by its own name. NULL: there is none. */
static char *find_best(const char *run) {
    char *link = join(run, "best"), *target = calloc(1, CLI_PATH), *best = NULL;
    if (is_folder(link) && target && readlink(link, target, CLI_PATH - 1) > 0)
        best = *target == '/' ? strdup(target) : join(run, target);
    free(link);
    free(target);
    return best;
}

/* A name in the run's folder of checkpoints. NULL: there is no such checkpoint. */
static char *find_named(const char *run, const char *name) {
    char *inside = join(run, "checkpoints"), *path = inside ? join(inside, name) : NULL;
    free(inside);
    if (!strchr(name, '/') && is_folder(path)) return path;
    free(path);
    return NULL;
}

static int open_chosen(const cli_call *call, const char *path, const char *choice, cli_checkpoint *opened) {
    const int code = cli_checkpoint_open(call, path, opened);
    opened->choice = choice;
    if (code == CLI_DONE && opened->info.is_run)
        cli_tell("%s: the %s checkpoint is used, after step %s: %s", call->argument, choice,
                 cli_count(opened->info.step).text, opened->info.path);
    return code;
}

static int open_best(const cli_call *call, const char *run, bool must_be, cli_checkpoint *opened) {
    char *best = find_best(run);
    if (!best && must_be)
        return cli_fail(call,
                        "%s: this run has no best checkpoint: it had no evaluation, or did not save after one "
                        "(save.every). Use --checkpoint newest",
                        run);
    const int code = best ? open_chosen(call, best, "best", opened) : open_chosen(call, run, "newest", opened);
    free(best);
    return code;
}

static int open_named(const cli_call *call, const char *run, const char *name, cli_checkpoint *opened) {
    char *inside = find_named(run, name);
    const int code = cli_checkpoint_open(call, inside ? inside : name, opened);
    free(inside);
    return code;
}

int cli_checkpoint_open_model(const cli_call *call, const char *path, const char *which, cli_checkpoint *opened) {
    *opened = (cli_checkpoint){.call = call};
    if (!is_run(path)) {
        if (which)
            return cli_misuse(call, "--checkpoint chooses among the checkpoints of a run, and %s is not a run folder",
                              path);
        return cli_checkpoint_open(call, path, opened);
    }
    if (!which || !strcmp(which, "best")) return open_best(call, path, which != NULL, opened);
    if (!strcmp(which, "newest")) return open_chosen(call, path, "newest", opened);
    return open_named(call, path, which, opened);
}

void cli_checkpoint_close(cli_checkpoint *opened) {
    an_checkpoint_close(&opened->checkpoint);
    an_context_destroy(&opened->ctx);
}

an_status cli_checkpoint_config(const cli_checkpoint *opened, an_context *ctx, int set_count, const char *const *sets,
                                an_config **config) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    char *text = NULL, file[CLI_PATH + 16];
    *config = NULL;
    if (!opened->info.is_run) return AN_OK;
    an_status status = an_checkpoint_text(opened->checkpoint, "config.yaml", &text);
    if (status == AN_ERR_UNKNOWN) return AN_OK; /* a run that a program made itself */
    if (status != AN_OK) return status;
    snprintf(file, sizeof file, "%s/config.yaml", opened->info.path);
    options.file = file;
    options.text = text;
    options.length = strlen(text);
    options.stored = true;
    options.set_count = set_count;
    options.sets = sets;
    status = an_config_create(config, ctx, &options);
    an_string_release(opened->ctx, &text);
    return status;
}

int cli_checkpoint_context(const cli_checkpoint *opened, an_config *config, an_isa isa, an_context **ctx) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    int64_t threads = 0;
    if (!an_config_is(config, AN_SETTING(ranks.threads), "auto"))
        an_config_count(config, AN_SETTING(ranks.threads), &threads);
    options.threads = (int)threads;
    options.alone = true; /* nothing is trained: several processes may each look at a checkpoint */
    options.isa = isa;
    for (int own = AN_ISA_BASE; isa == AN_ISA_AUTO && own <= AN_ISA_AMX; own++)
        if (!strcmp(an_isa_name((an_isa)own), opened->info.isa)) options.isa = (an_isa)own;
    an_status status = an_context_create(ctx, &options);
    if (status != AN_OK && isa == AN_ISA_AUTO && options.isa != AN_ISA_AUTO) {
        options.isa = AN_ISA_AUTO;
        status = an_context_create(ctx, &options);
        if (status == AN_OK)
            fprintf(stderr,
                    "warning: this machine does not have %s, which the run was computed with, so the last digits may "
                    "differ\n",
                    opened->info.isa);
    }
    return status == AN_OK ? CLI_DONE : cli_failure(opened->call, NULL, status);
}

/* ---- elements ---- */

bool cli_piece_create(cli_piece *piece) {
    enum { LARGEST = 8 }; /* bytes of an element of any type */
    piece->raw = malloc((size_t)CLI_PIECE * LARGEST);
    piece->numbers = malloc(CLI_PIECE * sizeof *piece->numbers);
    return piece->raw && piece->numbers;
}

void cli_piece_destroy(cli_piece *piece) {
    free(piece->raw);
    free(piece->numbers);
}

static double half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double brain(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float number;
    memcpy(&number, &wide, sizeof number);
    return (double)number;
}

static double number_at(an_dtype dtype, const char *raw, int64_t i) {
    switch (dtype) {
    case AN_DTYPE_F32: return (double)((const float *)(const void *)raw)[i];
    case AN_DTYPE_F64: return ((const double *)(const void *)raw)[i];
    case AN_DTYPE_F16: return half(((const uint16_t *)(const void *)raw)[i]);
    case AN_DTYPE_BF16: return brain(((const uint16_t *)(const void *)raw)[i]);
    case AN_DTYPE_I32: return ((const int32_t *)(const void *)raw)[i];
    case AN_DTYPE_I64: return (double)((const int64_t *)(const void *)raw)[i];
    case AN_DTYPE_U8: return ((const uint8_t *)raw)[i];
    default: return 0;
    }
}

an_status cli_piece_read(cli_piece *piece, const cli_checkpoint *from, int64_t index,
                         const an_checkpoint_tensor *tensor, int64_t begin, int64_t count) {
    const an_status status = an_checkpoint_read(from->checkpoint, index, begin, count, piece->raw);
    for (int64_t i = 0; status == AN_OK && tensor->dtype != AN_DTYPE_NONE && i < count; i++)
        piece->numbers[i] = number_at(tensor->dtype, piece->raw, i);
    return status;
}

/* ---- texts ---- */

cli_shape cli_shape_of(const an_checkpoint_tensor *tensor) {
    cli_shape shape = {"["};
    size_t at = 1;
    for (int d = 0; d < tensor->ndims && at < sizeof shape.text - 32; d++)
        at += (size_t)snprintf(shape.text + at, sizeof shape.text - at, "%s%lld", d ? ", " : "",
                               (long long)tensor->dims[d]);
    snprintf(shape.text + at, sizeof shape.text - at, "]");
    return shape;
}

/* ---- weights ---- */

int cli_weights_choose(const cli_call *call, const char *value, an_model_weights *weights) {
    static const struct {
        const char *word;
        an_model_weights weights;
    } words[] = {{"raw", AN_MODEL_WEIGHTS_RAW}, {"ema", AN_MODEL_WEIGHTS_AVERAGE}};
    *weights = AN_MODEL_WEIGHTS_AUTO;
    if (!value) return CLI_DONE;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].word, value)) {
            *weights = words[i].weights;
            return CLI_DONE;
        }
    return cli_misuse(call, "--weights takes raw or ema, not '%s'", value);
}

cli_name cli_name_of(const char *name) {
    enum { ESCAPED = 4, SPARE = sizeof "..." };
    static const char digits[] = "0123456789abcdef";
    cli_name out = {""};
    size_t used = 0;
    while (*name) {
        const bool shown = an_utf8_is_shown(name) && *name != '\\';
        const size_t bytes = shown ? an_utf8_length_in_text(name) : ESCAPED;
        const unsigned char c = (unsigned char)*name;
        const char escaped[ESCAPED] = {'\\', 'x', digits[c >> 4], digits[c & 15]};
        if (used + bytes > sizeof out.text - SPARE) break;
        memcpy(out.text + used, shown ? name : escaped, bytes);
        used += bytes;
        name += shown ? bytes : 1;
    }
    snprintf(out.text + used, sizeof out.text - used, "%s", *name ? "..." : "");
    return out;
}
