/* outcome.json of a run whose process was killed, and so could not say how it ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/regular.h"
#include "base/text/json.h"
#include "base/text/json_write.h"
#include "cli/supervise/supervise.h"

enum { PATH_BYTES = 4300, MOST = 8192, BASE = 10 };

/* What the file says as long as the run is under way. */
typedef struct {
    int64_t step, generation;
    bool is_running;
} outcome;

static bool read_outcome(const char *path, outcome *o) {
    char text[MOST];
    an_json json;
    an_json_string key, value;
    *o = (outcome){0};
    FILE *file = an_regular_read(path);
    if (!file) return false;
    const size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    an_json_init(&json, text, length);
    if (!an_json_object(&json)) return false;
    while (an_json_member(&json, &key)) {
        if (!strcmp(key.bytes, "end") && an_json_string_value(&json, &value))
            o->is_running = !strcmp(value.bytes, "running");
        else if (!strcmp(key.bytes, "generation"))
            an_json_count(&json, &o->generation);
        else if (!strcmp(key.bytes, "step"))
            an_json_count(&json, &o->step);
        else
            an_json_skip(&json);
    }
    return !json.problem;
}

/* The process of a launch, which its file begins with; 0: it does not say. */
static long process_of(const char *folder, int64_t launch) {
    char path[PATH_BYTES], line[64] = "";
    snprintf(path, sizeof path, "%s/launches/%lld", folder, (long long)launch);
    FILE *file = an_regular_read(path);
    if (file && !fgets(line, sizeof line, file)) line[0] = 0;
    if (file) fclose(file);
    return strtol(line, NULL, BASE);
}

static bool write_file(const char *path, const char *mode, const outcome *o, double seconds, const char *error) {
    FILE *file = fopen(path, mode);
    if (!file) return false;
    an_json_writer json = an_json_to_file(file, AN_JSON_FLAT);
    an_json_write_object(&json, NULL);
    an_json_write_string(&json, "end", "failed");
    an_json_write_integer(&json, "step", o->step);
    an_json_write_integer(&json, "generation", o->generation);
    an_json_write_real(&json, "seconds", seconds);
    an_json_write_string(&json, "error", error);
    an_json_write_finish(&json);
    const bool is_written = fflush(file) == 0 && fsync(fileno(file)) == 0;
    return fclose(file) == 0 && is_written;
}

void supervise_outcome_write(const char *folder, pid_t process, const supervise_end *end, double seconds,
                             const char *error) {
    char path[PATH_BYTES], beside[PATH_BYTES + 16];
    outcome o;
    snprintf(path, sizeof path, "%s/outcome.json", folder);
    snprintf(beside, sizeof beside, "%s-%ld.new", path, (long)getpid());
    if (process <= 0 || !read_outcome(path, &o) || !o.is_running || process_of(folder, o.generation) != (long)process)
        return;
    if (end->heartbeat.step > 0) o.step = end->heartbeat.step - 1; /* the one under way was not finished */
    if (write_file(beside, "we", &o, seconds, error) && rename(beside, path) == 0) return;
    unlink(beside);
    /* A full disk still has room for it in the place of what the file says, which is shorter: it has no error. */
    write_file(path, "r+e", &o, seconds, error);
}
