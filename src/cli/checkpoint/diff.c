/* anneal diff: which tensors of two checkpoints differ, and by how much. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/checkpoint/config_lines.h"
#include "cli/checkpoint/source.h"
#include "cli/train/open.h"

enum { JSON };
static const cli_option options[] = {
    [JSON] = {.name = "json", .help = "write JSON"},
    {0},
};

enum { A, B, BOTH };

/* A tensor of one or both; -1: not there. */
typedef struct {
    const char *name;
    int64_t index[BOTH];
    const char *problem; /* what is not even comparable; NULL: elements were compared */
    int64_t elements, differ;
    double absolute, relative; /* the largest */
} pair;

typedef struct {
    cli_checkpoint of[BOTH];
    pair *pairs;
    int64_t count, capacity;
    int64_t compared, differ; /* tensors */
    cli_piece pieces[BOTH];
} comparison;

/* ---- which belong together ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const pair *)a)->name, ((const pair *)b)->name);
}

/* The optimizer's are compared only if both have them: weights alone are no run. */
static an_status list(comparison *c, int side) {
    const bool all = c->of[A].info.is_run && c->of[B].info.is_run;
    for (int64_t i = 0; i < c->of[side].info.tensors; i++) {
        an_checkpoint_tensor t;
        an_checkpoint_tensor_init(&t, sizeof t);
        const an_status status = an_checkpoint_tensor_get(c->of[side].checkpoint, i, &t);
        if (status != AN_OK) return status;
        if (!all && t.role != AN_SAVED_WEIGHT) continue;
        pair *p = &c->pairs[c->count++];
        *p = (pair){.name = t.name, .index = {-1, -1}};
        p->index[side] = i;
    }
    return AN_OK;
}

static int match(comparison *c) {
    c->capacity = c->of[A].info.tensors + c->of[B].info.tensors;
    c->pairs = calloc((size_t)c->capacity + 1, sizeof *c->pairs);
    if (!c->pairs || !cli_piece_create(&c->pieces[A]) || !cli_piece_create(&c->pieces[B]))
        return cli_fail(c->of[A].call, "out of memory");
    for (int side = A; side < BOTH; side++) {
        const an_status status = list(c, side);
        if (status != AN_OK) return cli_refuse(c->of[A].call, c->of[side].ctx, NULL, status);
    }
    qsort(c->pairs, (size_t)c->count, sizeof *c->pairs, by_name);
    int64_t kept = 0;
    for (int64_t i = 0; i < c->count; i++) {
        pair *last = kept ? &c->pairs[kept - 1] : NULL;
        if (last && !strcmp(last->name, c->pairs[i].name)) {
            for (int side = A; side < BOTH; side++)
                if (c->pairs[i].index[side] >= 0) last->index[side] = c->pairs[i].index[side];
        } else {
            c->pairs[kept++] = c->pairs[i];
        }
    }
    c->count = kept;
    return CLI_DONE;
}

/* ---- elements ---- */

static void compare_piece(pair *p, const an_checkpoint_tensor *t, const cli_piece *a, const cli_piece *b,
                          int64_t count) {
    const size_t size = t->element_bytes;
    if (!memcmp(a->raw, b->raw, (size_t)count * size)) return;
    for (int64_t i = 0; i < count; i++) {
        if (!memcmp(a->raw + (size_t)i * size, b->raw + (size_t)i * size, size)) continue;
        p->differ++;
        if (t->dtype == AN_DTYPE_NONE) continue;
        const double x = a->numbers[i], y = b->numbers[i], distance = fabs(x - y), larger = fmax(fabs(x), fabs(y));
        if (!isfinite(distance)) p->absolute = p->relative = INFINITY;
        if (distance > p->absolute) p->absolute = distance;
        if (distance > 0 && distance / larger > p->relative) p->relative = distance / larger;
    }
}

static int compare(comparison *c, pair *p) {
    an_checkpoint_tensor t[BOTH] = {{.size = sizeof *t}, {.size = sizeof *t}};
    for (int side = A; side < BOTH; side++)
        if (p->index[side] < 0) p->problem = side == A ? "only in the second" : "only in the first";
    for (int side = A; side < BOTH && !p->problem; side++) {
        const an_status status = an_checkpoint_tensor_get(c->of[side].checkpoint, p->index[side], &t[side]);
        if (status != AN_OK) return cli_refuse(c->of[A].call, c->of[side].ctx, NULL, status);
    }
    if (!p->problem && (t[A].ndims != t[B].ndims || memcmp(t[A].dims, t[B].dims, sizeof t[A].dims) != 0))
        p->problem = "different shapes";
    if (!p->problem && strcmp(t[A].type, t[B].type) != 0) p->problem = "different types";
    if (p->problem) return CLI_DONE;
    p->elements = t[A].elements;
    for (int64_t begin = 0; begin < p->elements; begin += CLI_PIECE) {
        const int64_t count = p->elements - begin < CLI_PIECE ? p->elements - begin : CLI_PIECE;
        for (int side = A; side < BOTH; side++) {
            const an_status status =
                cli_piece_read(&c->pieces[side], &c->of[side], p->index[side], &t[side], begin, count);
            if (status != AN_OK) return cli_refuse(c->of[A].call, c->of[side].ctx, NULL, status);
        }
        compare_piece(p, &t[A], &c->pieces[A], &c->pieces[B], count);
    }
    return CLI_DONE;
}

static bool is_different(const pair *p) {
    return p->problem || p->differ > 0;
}

static int compare_all(comparison *c) {
    for (int64_t i = 0; i < c->count; i++) {
        const int code = compare(c, &c->pairs[i]);
        if (code != CLI_DONE) return code;
        c->differ += is_different(&c->pairs[i]);
    }
    return CLI_DONE;
}

/* ---- what is said ---- */

static void show_key(void *user, const char *path, const char *a, const char *b) {
    (void)user;
    printf("  %s: %s, %s\n", path, a ? a : "not given", b ? b : "not given");
}

static void write_key(void *user, const char *path, const char *a, const char *b) {
    an_json_writer *j = user;
    an_json_write_object(j, NULL);
    an_json_write_string(j, "key", path);
    an_json_write_string(j, "a", a);
    an_json_write_string(j, "b", b);
    an_json_write_end(j);
}

/* Calls with each key of the configs that differs, if both have one. */
static void compare_configs(const comparison *c, void (*visit)(void *, const char *, const char *, const char *),
                            void *user) {
    char *texts[BOTH] = {NULL};
    bool there = true;
    for (int side = A; side < BOTH; side++)
        there = there && c->of[side].info.is_run &&
                an_checkpoint_text(c->of[side].checkpoint, "config.yaml", &texts[side]) == AN_OK;
    if (there) cli_config_differences(texts[A], texts[B], visit, user);
    for (int side = A; side < BOTH; side++)
        if (texts[side]) an_string_release(c->of[side].ctx, &texts[side]);
}

static void show(const comparison *c) {
    const an_checkpoint_info *a = &c->of[A].info, *b = &c->of[B].info;
    int width = 4;
    printf("%s\n%s\n", a->path, b->path);
    if (a->is_run && b->is_run && a->step != b->step)
        printf("  step: %s, %s\n", cli_count(a->step).text, cli_count(b->step).text);
    compare_configs(c, show_key, NULL);
    if (c->differ == 0) {
        printf("all %s tensors are bit-identical\n", cli_count(c->count).text);
        return;
    }
    for (int64_t i = 0; i < c->count; i++)
        if (is_different(&c->pairs[i]) && (int)strlen(cli_name_of(c->pairs[i].name).text) > width)
            width = (int)strlen(cli_name_of(c->pairs[i].name).text);
    printf("%s of %s tensors differ\n\n%-*s  %12s  %12s  elements\n", cli_count(c->differ).text,
           cli_count(c->count).text, width, "name", "largest", "relative");
    for (int64_t i = 0; i < c->count; i++) {
        const pair *p = &c->pairs[i];
        if (p->problem)
            printf("%-*s  %s\n", width, cli_name_of(p->name).text, p->problem);
        else if (p->differ)
            printf("%-*s  %12.4g  %12.4g  %s of %s\n", width, cli_name_of(p->name).text, p->absolute, p->relative,
                   cli_count(p->differ).text, cli_count(p->elements).text);
    }
}

static void write(const comparison *c) {
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    an_json_write_string(&j, "a", c->of[A].info.path);
    an_json_write_string(&j, "b", c->of[B].info.path);
    an_json_write_string(&j, "result", c->differ ? "different" : "same bits");
    an_json_write_integer(&j, "step_a", c->of[A].info.step);
    an_json_write_integer(&j, "step_b", c->of[B].info.step);
    an_json_write_integer(&j, "tensors", c->count);
    an_json_write_array(&j, "config");
    compare_configs(c, write_key, &j);
    an_json_write_end(&j);
    an_json_write_array(&j, "differ");
    for (int64_t i = 0; i < c->count; i++) {
        const pair *p = &c->pairs[i];
        if (!is_different(p)) continue;
        an_json_write_object(&j, NULL);
        an_json_write_string(&j, "name", p->name);
        if (p->problem) {
            an_json_write_string(&j, "problem", p->problem);
        } else {
            an_json_write_integer(&j, "elements", p->elements);
            an_json_write_integer(&j, "different", p->differ);
            an_json_write_rounded(&j, "max_absolute", p->absolute);
            an_json_write_rounded(&j, "max_relative", p->relative);
        }
        an_json_write_end(&j);
    }
    an_json_write_end(&j);
    an_json_write_finish(&j);
}

static int run(const cli_call *call) {
    comparison c = {0};
    int code = CLI_DONE;
    for (int side = A; side < BOTH && code == CLI_DONE; side++)
        code = cli_checkpoint_open(call, call->arguments[side], &c.of[side]);
    if (code == CLI_DONE) code = match(&c);
    if (code == CLI_DONE) code = compare_all(&c);
    if (code == CLI_DONE) {
        if (call->values[JSON])
            write(&c);
        else
            show(&c);
        code = cli_finish(call);
        if (c.differ) code = CLI_FAILED;
    }
    for (int side = A; side < BOTH; side++) {
        cli_piece_destroy(&c.pieces[side]);
        cli_checkpoint_close(&c.of[side]);
    }
    free(c.pairs);
    return code;
}

const cli_command cli_diff = {
    .name = "diff",
    .argument = "PATH PATH",
    .summary = "show which tensors of two checkpoints differ",
    .text = "Compares two checkpoints or safetensors files, tensor by tensor and bit by bit. For a run, its newest "
            "checkpoint is used (RUN/best is its best one). Shows which tensors differ, in how many elements and by "
            "how much, also relative to "
            "the larger of the two values. The exit code is 0 if all tensors are bit-identical and 1 if not. "
            "Differences in steps and configs are shown but do not affect the exit code. Optimizer tensors are "
            "compared if both checkpoints have them.",
    .options = options,
    .run = run,
};
