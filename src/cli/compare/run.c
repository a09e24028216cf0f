#include "cli/compare/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/regular.h"
#include "base/system/process.h"
#include "base/text/json.h"

enum { MOST_BYTES = 1 << 20 }; /* of a config, a summary and a line of metrics, which are all smaller */

/* Its place; the number of results if the run has none of that name. */
static int place_of(const compare_run *run, const char *name) {
    int i = 0;
    while (i < run->result_count && strcmp(run->results[i].name, name) != 0) i++;
    return i;
}

const compare_result *compare_run_find(const compare_run *run, const char *name) {
    const int place = place_of(run, name);
    return place < run->result_count ? &run->results[place] : NULL;
}

/* ---- results ---- */

int compare_direction(const char *name) {
    static const struct {
        const char *name;
        int direction;
    } known[] = {
#define AN_METRIC(name, member, needs, better, detail, suits) {#name, better},
#include "base/metrics.def"
#undef AN_METRIC
    };
    if (!strncmp(name, COMPARE_BEST, strlen(COMPARE_BEST))) name += strlen(COMPARE_BEST);
    if (!strncmp(name, "val_", 4)) name += 4;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) return known[i].direction;
    return 0;
}

/* A new result has no value (NaN). NULL: there are too many of them, or the name is too long. */
static compare_result *make_result(compare_run *run, const char *name) {
    const int place = place_of(run, name);
    if (place == COMPARE_MOST_RESULTS || strlen(name) >= COMPARE_NAME) return NULL;
    compare_result *r = &run->results[place];
    if (place == run->result_count) {
        *r = (compare_result){.value = (double)NAN};
        snprintf(r->name, sizeof r->name, "%s", name);
        run->result_count++;
    }
    return r;
}

/* The last value counts, as metrics come in the order of steps; and of evaluations the best one, too. */
static void set_result(compare_run *run, const char *name, double value) {
    const int sign = compare_direction(name);
    const compare_result *step = compare_run_find(run, "step");
    char best_name[2 * COMPARE_NAME];
    compare_result *last = make_result(run, name);
    if (last) last->value = value;
    if (!last || !sign || strncmp(name, "val_", 4) != 0 || !isfinite(value)) return;
    snprintf(best_name, sizeof best_name, COMPARE_BEST "%s", name);
    compare_result *best = make_result(run, best_name);
    if (!best || sign * best->value >= sign * value) return;
    best->value = value;
    best->step = step && step->value > 0 && step->value < 0x1p62 ? (int64_t)step->value : 0;
}

/* ---- files ---- */

static int cannot_read(const cli_call *call, const char *path) {
    return cli_fail(call, "%s: cannot be read: %s", path,
                    errno == EINVAL ? "it is not a regular file" : strerror(errno));
}

static void join(char *path, size_t size, const compare_run *run, const char *name) {
    snprintf(path, size, "%s/%s", run->path, name);
}

/* A whole file, with a NUL behind it; *text is NULL if there is none. */
static int read_text(const cli_call *call, const char *path, char **text, size_t *length) {
    *text = NULL;
    *length = 0;
    FILE *file = an_regular_read(path);
    if (!file) return errno == ENOENT || errno == ENOTDIR ? CLI_DONE : cannot_read(call, path);
    char *bytes = malloc(MOST_BYTES + 1);
    if (bytes) *length = fread(bytes, 1, MOST_BYTES, file);
    const bool failed = ferror(file) != 0, is_whole = bytes && *length < MOST_BYTES;
    fclose(file);
    if (bytes && !failed && is_whole) {
        bytes[*length] = 0;
        *text = bytes;
        return CLI_DONE;
    }
    free(bytes);
    if (!bytes) return cli_fail(call, "out of memory");
    return failed ? cannot_read(call, path) : cli_fail(call, "%s: is too long to be read", path);
}

/* ---- what they say ---- */

/* The string of a member of the outermost object; false: there is none. */
static bool find_string(char *text, size_t length, const char *wanted, char *value, size_t size) {
    an_json json;
    an_json_string key, string;
    an_json_init(&json, text, length);
    if (!an_json_object(&json)) return false;
    while (an_json_member(&json, &key)) {
        if (!strcmp(key.bytes, wanted) && an_json_peek(&json) == '"') {
            if (!an_json_string_value(&json, &string)) return false;
            snprintf(value, size, "%s", string.bytes);
            return true;
        }
        if (!an_json_skip(&json)) return false;
    }
    return false;
}

/* The numbers of a line of metrics. */
static bool take_line(compare_run *run, char *text, size_t length) {
    an_json json;
    an_json_string key;
    an_json_init(&json, text, length);
    if (!an_json_object(&json)) return false;
    while (an_json_member(&json, &key)) {
        double value;
        const int first = an_json_peek(&json);
        if (first == '-' || (first >= '0' && first <= '9')) {
            if (!an_json_real(&json, &value)) return false;
            set_result(run, key.bytes, value);
        } else if (!an_json_skip(&json))
            return false;
    }
    return an_json_end(&json);
}

static int read_metrics(const cli_call *call, compare_run *run) {
    char path[4200];
    int64_t number = 0;
    int code = CLI_DONE;
    join(path, sizeof path, run, "metrics.jsonl");
    FILE *file = an_regular_read(path);
    if (!file) return errno == ENOENT ? CLI_DONE : cannot_read(call, path);
    char *line = malloc(MOST_BYTES);
    if (!line) code = cli_fail(call, "out of memory");
    while (line && code == CLI_DONE && fgets(line, MOST_BYTES, file)) {
        const size_t length = strlen(line);
        number++;
        if (length == 0 || line[length - 1] != '\n') break; /* a run is just writing it */
        if (!take_line(run, line, length - 1))
            code = cli_fail(call, "%s:%lld: this is not a JSON object", path, (long long)number);
    }
    if (code == CLI_DONE && ferror(file)) code = cannot_read(call, path);
    free(line);
    fclose(file);
    return code;
}

/* One that says that it is running, and whose process has ended, was killed. */
static void check_running(compare_run *run, int64_t launch) {
    char name[64], file[4200], identity[AN_PROCESS_IDENTITY];
    long process;
    snprintf(name, sizeof name, "launches/%lld", (long long)launch);
    join(file, sizeof file, run, name);
    an_process_read(file, identity, sizeof identity);
    if (an_process_look(identity, &process) == AN_PROCESS_GONE && process > 0)
        snprintf(run->end, sizeof run->end, "died");
}

static void find_end(compare_run *run, char *text, size_t length) {
    an_json json;
    an_json_string key, string;
    int64_t launch = 0;
    an_json_init(&json, text, length);
    if (!an_json_object(&json)) return;
    while (an_json_member(&json, &key)) {
        if (!strcmp(key.bytes, "end") && an_json_string_value(&json, &string))
            snprintf(run->end, sizeof run->end, "%s", string.bytes);
        else if (!strcmp(key.bytes, "generation"))
            an_json_count(&json, &launch);
        else
            an_json_skip(&json);
    }
    if (!strcmp(run->end, "running") && launch > 0) check_running(run, launch);
}

int compare_run_read(const cli_call *call, const char *path, compare_run *run) {
    char file[4200], *text;
    size_t length;
    *run = (compare_run){.path = path, .end = "unfinished"};
    const char *slash = strrchr(path, '/');
    run->name = slash && slash[1] ? slash + 1 : path;
    join(file, sizeof file, run, "config.yaml");
    int code = read_text(call, file, &run->config, &length);
    if (code != CLI_DONE) return code;
    if (!run->config) return cli_fail(call, "'%s' has no config.yaml; give a run folder (run.dir)", path);
    code = read_metrics(call, run);
    if (code != CLI_DONE) return code;
    join(file, sizeof file, run, "outcome.json");
    code = read_text(call, file, &text, &length);
    if (code == CLI_DONE && text) find_end(run, text, length);
    free(text);
    if (code != CLI_DONE) return code;
    join(file, sizeof file, run, "summary.json");
    code = read_text(call, file, &text, &length);
    if (code == CLI_DONE && text) find_string(text, length, "state_hash", run->state_hash, sizeof run->state_hash);
    free(text);
    return code;
}

void compare_run_free(compare_run *run) {
    free(run->config);
    run->config = NULL;
}
