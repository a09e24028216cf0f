/* anneal compare: what differs between runs, in their configs and in their results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options/settings.h"
#include "base/text/json_write.h"
#include "cli/checkpoint/config_lines.h"
#include "cli/compare/run.h"

enum { JSON, ALL };
static const cli_option options[] = {
    [JSON] = {.name = "json", .help = "write JSON"},
    [ALL] = {.name = "all", .help = "show results that are equal in all runs too"},
    {0},
};

/* ---- configs ---- A key that differs between the first run and any other, with its value in each of them. */

typedef struct {
    char path[CLI_CONFIG_TEXT];
    char *values[COMPARE_MOST_RUNS]; /* NULL: it is not there */
} key_row;

typedef struct {
    compare_run runs[COMPARE_MOST_RUNS];
    int count;
    int widths[COMPARE_MOST_RUNS]; /* of the columns */
    key_row *rows;
    int row_count;
    int present; /* the run that the first one is compared with */
    bool failed; /* out of memory */
} comparison;

static key_row *find_row(comparison *c, const char *path) {
    for (int i = 0; i < c->row_count; i++)
        if (!strcmp(c->rows[i].path, path)) return &c->rows[i];
    key_row *grown = realloc(c->rows, ((size_t)c->row_count + 1) * sizeof *grown);
    if (!grown) return NULL;
    c->rows = grown;
    key_row *row = &c->rows[c->row_count++];
    *row = (key_row){.path = ""};
    snprintf(row->path, sizeof row->path, "%s", path);
    return row;
}

static void set_value(comparison *c, key_row *row, int run, const char *value) {
    if (!value || row->values[run]) return;
    row->values[run] = strdup(value);
    c->failed = c->failed || !row->values[run];
}

/* Where runs were written is no difference between them. */
static void add_difference(void *user, const char *path, const char *first, const char *other) {
    comparison *c = user;
    if (!strcmp(path, AN_SETTING(run.dir))) return;
    key_row *row = find_row(c, path);
    if (!row) {
        c->failed = true;
        return;
    }
    set_value(c, row, 0, first);
    set_value(c, row, c->present, other);
}

/* What a run shares with the first one was not visited. */
static void fill_rows(comparison *c) {
    for (int i = 0; i < c->row_count; i++)
        for (int run = 1; run < c->count; run++) {
            key_row *row = &c->rows[i];
            char value[CLI_CONFIG_TEXT];
            if (!row->values[run] && cli_config_find(c->runs[run].config, row->path, value))
                set_value(c, row, run, value);
        }
}

static bool compare_configs(comparison *c) {
    for (c->present = 1; c->present < c->count; c->present++)
        cli_config_differences(c->runs[0].config, c->runs[c->present].config, add_difference, c);
    fill_rows(c);
    return !c->failed;
}

/* ---- results ---- */

/* The names of results in all runs, in the order in which they come. */
static int list_results(const comparison *c, const char *names[COMPARE_MOST_RESULTS]) {
    int count = 0;
    for (int run = 0; run < c->count; run++)
        for (int i = 0; i < c->runs[run].result_count; i++) {
            const char *name = c->runs[run].results[i].name;
            int at = 0;
            while (at < count && strcmp(names[at], name) != 0) at++;
            if (at == count && count < COMPARE_MOST_RESULTS) names[count++] = name;
        }
    return count;
}

/* The run with the best value; -1: none is, or all are equal. */
static int find_best(const comparison *c, const char *name) {
    const int sign = compare_direction(name);
    int best = -1;
    bool differ = false;
    double value = 0;
    for (int run = 0; sign && run < c->count; run++) {
        const compare_result *r = compare_run_find(&c->runs[run], name);
        if (!r || !isfinite(r->value)) continue;
        differ = differ || (best >= 0 && r->value != value);
        if (best >= 0 && sign * r->value <= sign * value) continue;
        best = run;
        value = r->value;
    }
    return differ ? best : -1;
}

static bool is_equal_everywhere(const comparison *c, const char *name) {
    const compare_result *first = compare_run_find(&c->runs[0], name);
    for (int run = 1; run < c->count; run++) {
        const compare_result *r = compare_run_find(&c->runs[run], name);
        if (!first != !r || (r && r->value != first->value)) return false;
    }
    return true;
}

/* ---- as a table ---- */

enum { LEAST_WIDTH = 12, MOST_WIDTH = 28, FIRST_WIDTH = 24, CELL = 64 };

static void write_cell(char *cell, size_t size, const compare_result *r, bool best) {
    char step[32] = "";
    if (r->step > 0) snprintf(step, sizeof step, " (%lld)", (long long)r->step);
    snprintf(cell, size, "%.6g%s%s", r->value, step, best ? " *" : "");
}

static int longer(int width, const char *text) {
    const int length = (int)strlen(text);
    return length > width ? length : width;
}

/* Texts of a config may be cut; a number must not lose its star. */
static void measure(comparison *c) {
    const char *names[COMPARE_MOST_RESULTS];
    const int count = list_results(c, names);
    for (int run = 0; run < c->count; run++) {
        int width = longer(LEAST_WIDTH, c->runs[run].name);
        if (width > MOST_WIDTH) width = MOST_WIDTH;
        for (int i = 0; i < count; i++) {
            const compare_result *r = compare_run_find(&c->runs[run], names[i]);
            char cell[CELL] = "";
            if (r) write_cell(cell, sizeof cell, r, true);
            width = longer(width, cell);
        }
        c->widths[run] = width;
    }
}

/* A text that is NULL is not there. */
static void show_line(const comparison *c, const char *name, const char *const texts[]) {
    printf("%-*s", FIRST_WIDTH, name);
    for (int run = 0; run < c->count; run++) {
        const char *text = texts[run] ? texts[run] : "-";
        const int width = c->widths[run], length = (int)strlen(text);
        if (length > width)
            printf("  %.*s...", width - 3, text);
        else if (run == c->count - 1)
            printf("  %s", text);
        else
            printf("  %-*s", width, text);
    }
    putchar('\n');
}

/* Whether it is the best value of a metric, and the last one is as good in every run. */
static bool says_nothing_new(const comparison *c, const char *name) {
    const size_t prefix = strlen(COMPARE_BEST);
    if (strncmp(name, COMPARE_BEST, prefix) != 0) return false;
    for (int run = 0; run < c->count; run++) {
        const compare_result *best = compare_run_find(&c->runs[run], name);
        const compare_result *last = compare_run_find(&c->runs[run], name + prefix);
        if (best && last && best->value != last->value) return false;
    }
    return true;
}

static void show_results(const comparison *c, bool all) {
    const char *names[COMPARE_MOST_RESULTS];
    const int count = list_results(c, names);
    for (int i = 0; i < count; i++) {
        char cells[COMPARE_MOST_RUNS][CELL];
        const char *texts[COMPARE_MOST_RUNS] = {NULL};
        const int best = find_best(c, names[i]);
        if (!all && c->count > 1 && is_equal_everywhere(c, names[i])) continue;
        if (!all && says_nothing_new(c, names[i])) continue;
        for (int run = 0; run < c->count; run++) {
            const compare_result *r = compare_run_find(&c->runs[run], names[i]);
            if (!r) continue;
            write_cell(cells[run], sizeof cells[run], r, run == best);
            texts[run] = cells[run];
        }
        show_line(c, names[i], texts);
    }
}

static void show(comparison *c, bool all) {
    const char *texts[COMPARE_MOST_RUNS] = {NULL};
    measure(c);
    for (int run = 0; run < c->count; run++) texts[run] = c->runs[run].name;
    show_line(c, "", texts);
    for (int i = 0; i < c->row_count; i++) {
        for (int run = 0; run < c->count; run++) texts[run] = c->rows[i].values[run];
        show_line(c, c->rows[i].path, texts);
    }
    if (c->row_count == 0 && c->count > 1) printf("the configs are the same, apart from run.dir\n");
    putchar('\n');
    for (int run = 0; run < c->count; run++) texts[run] = c->runs[run].end;
    show_line(c, "end", texts);
    show_results(c, all);
    bool known = c->count > 1, same = true;
    for (int run = 0; run < c->count; run++) {
        known = known && *c->runs[run].state_hash;
        same = same && !strcmp(c->runs[run].state_hash, c->runs[0].state_hash);
    }
    if (known)
        printf("\n%s\n", same ? "all runs ended with the same state_hash: they are bit-identical"
                              : "the runs ended with different bits (state_hash)");
}

/* ---- as JSON ---- */

static void write(const comparison *c) {
    const char *names[COMPARE_MOST_RESULTS];
    const int count = list_results(c, names);
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    an_json_write_array(&j, "runs");
    for (int run = 0; run < c->count; run++) {
        const compare_run *r = &c->runs[run];
        an_json_write_object(&j, NULL);
        an_json_write_string(&j, "path", r->path);
        an_json_write_string(&j, "end", r->end);
        an_json_write_string(&j, "state_hash", r->state_hash);
        an_json_write_object(&j, "config");
        for (int i = 0; i < c->row_count; i++)
            if (c->rows[i].values[run]) an_json_write_string(&j, c->rows[i].path, c->rows[i].values[run]);
        an_json_write_end(&j);
        an_json_write_object(&j, "results");
        for (int i = 0; i < count; i++) {
            const compare_result *result = compare_run_find(r, names[i]);
            if (result) an_json_write_real(&j, names[i], result->value);
        }
        an_json_write_end(&j);
        an_json_write_end(&j);
    }
    an_json_write_end(&j);
    an_json_write_finish(&j);
}

static int run(const cli_call *call) {
    static comparison c;
    int code = CLI_DONE;
    if (call->argument_count > COMPARE_MOST_RUNS)
        return cli_misuse(call, "at most %d runs can be compared at once, not %d", COMPARE_MOST_RUNS,
                          call->argument_count);
    for (; code == CLI_DONE && c.count < call->argument_count; c.count++)
        code = compare_run_read(call, call->arguments[c.count], &c.runs[c.count]);
    if (code == CLI_DONE && !compare_configs(&c)) code = cli_fail(call, "out of memory");
    if (code == CLI_DONE) {
        if (call->values[JSON])
            write(&c);
        else
            show(&c, call->values[ALL] != NULL);
        code = cli_finish(call);
    }
    for (int i = 0; i < c.row_count; i++)
        for (int of = 0; of < c.count; of++) free(c.rows[i].values[of]);
    free(c.rows);
    for (int i = 0; i < c.count; i++) compare_run_free(&c.runs[i]);
    return code;
}

const cli_command cli_compare = {
    .name = "compare",
    .argument = "RUN...",
    .summary = "show what differs between runs, in their configs and results",
    .text =
        "Shows the keys in which the configs of runs differ, and the last value of each of their metrics, as a table "
        "with a column for each run. The best run in a metric has a star. best_val_loss is the best value that a run "
        "had at "
        "any evaluation, with its step; so are other metrics of evaluations. RUN is a run folder; a run that is "
        "still training can be compared too. 'anneal diff' compares the weights of two runs.",
    .options = options,
    .run = run,
};
