/* anneal init of JSON lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/regular.h"
#include "base/text/json.h"
#include "cli/init/init.h"

enum { MOST_MEMBERS = 1024, MOST_LINE = 1 << 22, LABEL = 24 };

/* The members of the first object. */
typedef struct {
    char *line;
    const char *names[MOST_MEMBERS]; /* in the line */
    char firsts[MOST_MEMBERS];       /* the first character of each value */
    int64_t count;
} members;

static int read_members(init_found *f, members *m) {
    an_json json;
    an_json_string key;
    FILE *file = an_regular_read(f->data);
    if (!file)
        return cli_fail(f->call, "%s: cannot be read: %s", f->data,
                        errno == EINVAL ? "it is not a regular file" : strerror(errno));
    m->line = malloc(MOST_LINE);
    const bool got = m->line && fgets(m->line, MOST_LINE, file);
    fclose(file);
    if (!m->line) return cli_fail(f->call, "out of memory");
    if (!got) return cli_fail(f->call, "%s: the file is empty", f->data);
    an_json_init(&json, m->line, strlen(m->line));
    if (!an_json_object(&json)) return cli_misuse(f->call, "%s: line 1: this is not a JSON object", f->data);
    while (m->count < MOST_MEMBERS && an_json_member(&json, &key)) {
        m->names[m->count] = key.bytes;
        m->firsts[m->count++] = (char)an_json_peek(&json);
        an_json_skip(&json);
    }
    if (json.problem) return cli_misuse(f->call, "%s: line 1: %s", f->data, json.problem);
    if (m->count >= 2 || init_is_language(f, m->names, m->firsts, m->count)) return CLI_DONE;
    return cli_misuse(f->call, "%s: the first object needs an input and a target at least", f->data);
}

static bool is_number(char first) {
    return first == '-' || (first >= '0' && first <= '9') || first == 't' || first == 'f' || first == '[';
}

static const char *kind_of(char first) {
    return first == '"'       ? "text"
           : first == '['     ? "list"
           : first == '{'     ? "object"
           : is_number(first) ? "number"
                              : "null";
}

static int choose_columns(init_found *f, const members *m, const char **inputs, int *input_count, int64_t *target) {
    *target = init_choose_target(f, m->names, m->count);
    if (*target < 0)
        return cli_misuse(f->call, "%s: the first object has no member '%s' for --target", f->data, f->target);
    for (int64_t i = 0; i < m->count; i++) {
        const bool used = i == *target || is_number(m->firsts[i]);
        cli_tell("  %-24s %-8s %s", init_show(m->names[i], LABEL).text,
                 i == *target ? "target"
                 : used       ? "input"
                              : "left out",
                 kind_of(m->firsts[i]));
        if (used && i != *target) inputs[(*input_count)++] = m->names[i];
    }
    return *input_count > 0 ? CLI_DONE : cli_fail(f->call, "%s: no member is left for inputs", f->data);
}

static int look(init_found *f, an_dataset *dataset, const char *target, bool has_names) {
    an_field inputs;
    init_numbers n;
    bool single;
    an_field_init(&inputs, sizeof inputs);
    const an_status status = an_dataset_field(dataset, 0, &inputs);
    if (status != AN_OK) return cli_failure(f->call, f->ctx, status);
    f->samples = an_dataset_count(dataset);
    f->inputs = inputs.dims[0];
    cli_tell("%s: JSON lines, %s records, %lld numbers each", f->data, cli_count(f->samples).text,
             (long long)f->inputs);
    const int code = init_read_targets(f, dataset, &n, &single);
    if (code != CLI_DONE) return code;
    if (!single) {
        cli_tell("task: regression, because '%s' is a list", target);
        return CLI_DONE;
    }
    if (!has_names) return init_decide(f, target, &n);
    f->classes = n.different;
    cli_tell("task: classification, because '%s' has text: %lld classes, the rarest with %lld records", target,
             (long long)f->classes, (long long)f->rarest);
    return CLI_DONE;
}

static void put_source(const init_found *f, const char *const *inputs, int count, const char *target, bool has_names) {
    fprintf(f->source_stream, "    path: ");
    init_put_path(f, f->data);
    fprintf(f->source_stream, "\n    targets: [");
    init_put_text(f->source_stream, target);
    fprintf(f->source_stream, "]\n    inputs: [");
    for (int i = 0; i < count; i++) {
        if (i) fprintf(f->source_stream, ", ");
        init_put_text(f->source_stream, inputs[i]);
    }
    fprintf(f->source_stream, "]\n");
    if (f->classes && !has_names) fprintf(f->source_stream, "    classes: on  # targets are classes, not numbers\n");
}

int init_lines(init_found *f) {
    static members m;
    static const char *inputs[MOST_MEMBERS];
    int input_count = 0;
    int64_t target = 0;
    an_dataset *dataset = NULL;
    int code = read_members(f, &m);
    if (code == CLI_DONE && init_is_language(f, m.names, m.firsts, m.count)) {
        code = init_language(f, m.names, m.firsts, m.count);
        free(m.line);
        return code;
    }
    if (code == CLI_DONE) code = choose_columns(f, &m, inputs, &input_count, &target);
    if (code == CLI_DONE) {
        an_jsonl_source source;
        an_jsonl_source_init(&source, sizeof source);
        source.path = f->data;
        source.inputs = inputs;
        source.input_count = input_count;
        source.targets = &m.names[target];
        source.target_count = 1;
        const an_status status = an_dataset_create_jsonl(&dataset, f->ctx, &source);
        if (status != AN_OK) code = cli_failure(f->call, f->ctx, status);
    }
    const bool has_names = code == CLI_DONE && an_dataset_class_name(dataset, 0);
    if (code == CLI_DONE) code = look(f, dataset, init_show(m.names[target], LABEL).text, has_names);
    f->type = "jsonl";
    if (code == CLI_DONE) put_source(f, inputs, input_count, m.names[target], has_names);
    an_dataset_destroy(&dataset);
    free(m.line);
    return code;
}
