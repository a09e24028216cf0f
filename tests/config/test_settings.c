/* an_settings against the table of options: every member is a key, and holds its value. */
#include <ctype.h>

#include "anneal/data.h"
#include "config/config.h"
#include "support.h"

enum { MOST_MEMBERS = 256, MOST_DEPTH = 8, NAME = 64 };

typedef struct {
    char path[NAME], type[NAME];
} member;

/* Members of the struct as its header declares them. */
typedef struct {
    member items[MOST_MEMBERS];
    int count;
    int begins[MOST_DEPTH]; /* where the members of each struct around this place begin */
    int depth;
} member_list;

static char *read_header(void) {
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(ANNEAL_SOURCE_DIR "/src/base/options/settings.h", "r");
    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static void add(member_list *list, const char *path, const char *type) {
    assert_true(list->count < MOST_MEMBERS);
    member *m = &list->items[list->count++];
    snprintf(m->path, NAME, "%s", path);
    snprintf(m->type, NAME, "%s", type);
}

/* "} train, eval;": what is inside gets the names of the struct before its own. */
static void end_struct(member_list *list, char *names) {
    member inside[MOST_MEMBERS];
    const int begin = list->begins[--list->depth], count = list->count - begin;
    memcpy(inside, list->items + begin, (size_t)count * sizeof *inside);
    list->count = begin;
    for (char *name = strtok(names, " ,;}"); name; name = strtok(NULL, " ,;}")) {
        for (int i = 0; i < count; i++) {
            char path[2 * NAME];
            snprintf(path, sizeof path, "%.60s.%.60s", name, inside[i].path);
            add(list, path, inside[i].type);
        }
        add(list, name, "struct");
    }
}

/* "const char *type;", "an_length steps, epochs;" */
static void read_members(member_list *list, char *line) {
    char *names = strchr(line, '*') ? strrchr(line, '*') + 1 : strchr(line, ' ');
    char type[NAME];
    snprintf(type, sizeof type, "%.*s", (int)(names - line), line);
    for (char *name = strtok(names, " ,;"); name; name = strtok(NULL, " ,;")) {
        name[strcspn(name, "[")] = 0; /* of a list */
        add(list, name, type);
    }
}

static void read_struct(member_list *list) {
    char *text = read_header(), *at = strstr(text, "typedef struct an_settings {\n");
    assert_non_null(at);
    for (at = strchr(at, '\n') + 1; *at && strncmp(at, "} an_settings;", 14) != 0;) {
        char line[256];
        at += strspn(at, " ");
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        at += strcspn(at, "\n") + 1;
        line[strcspn(line, "/")] = 0; /* a comment */
        if (*line == 0) continue;
        if (!strcmp(line, "struct {")) {
            assert_true(list->depth < MOST_DEPTH);
            list->begins[list->depth++] = list->count;
        } else if (*line == '}') {
            end_struct(list, line);
        } else {
            read_members(list, line);
        }
    }
    assert_int_equal(list->depth, 0);
    free(text);
}

/* The option of a path; inside a table that has the options of another, that of the other. */
static const an_option *find(const an_option_list *all, const char *path) {
    const an_option *found = NULL;
    for (int i = 0; i < all->count; i++) {
        const an_option *o = &all->items[i];
        const size_t length = strlen(o->path);
        char other[2 * NAME];
        if (!strcmp(o->path, path)) return o;
        if (!o->table || strncmp(path, o->path, length) != 0 || path[length] != '.') continue;
        snprintf(other, sizeof other, "%s%s", o->table, path + length);
        found = find(all, other);
    }
    return found;
}

static const an_option_member *place_of(const an_option *o) {
    for (const an_option_member *m = o->members; m && m->in; m++)
        if (!strcmp(m->in, "an_settings")) return m;
    return NULL;
}

/* "eval.metrics_count" of a list eval.metrics. */
static bool is_count(const member *m, char list[NAME]) {
    const size_t length = strlen(m->path), end = strlen("_count");
    snprintf(list, NAME, "%s", m->path);
    if (length <= end || strcmp(m->path + length - end, "_count") != 0) return false;
    list[length - end] = 0;
    return true;
}

static void test_members_are_keys(void **state) {
    static member_list list;
    (void)state;
    an_context *ctx = make_context();
    const an_option_list *all;
    OK(ctx, an_option_list_get(ctx, &all));
    read_struct(&list);
    for (int i = 0; i < list.count; i++) {
        const member *m = &list.items[i];
        char path[NAME];
        const bool counts = is_count(m, path);
        const an_option *o = find(all, path);
        if (!o) fail_msg("an_settings has %s, which is no key", m->path);
        const an_option_member *place = place_of(o);
        const bool has_value = strcmp(m->type, "struct") != 0 && strncmp(m->type, "an_key_only", 11) != 0;
        if (!has_value && place) fail_msg("%s has a row that fills it, but it holds no value", m->path);
        if (has_value && !place) fail_msg("no row fills an_settings.%s", m->path);
        if (counts) assert_true(place->second > 0);
    }
    assert_true(list.count > 80);
    an_context_destroy(&ctx);
}

/* The key of a row is the name of its member. A table that stands in several places of a config has one row for all of
 * them, so none of them has a member of its own. */
static void test_rows_fill_members_of_their_name(void **state) {
    (void)state;
    an_context *ctx = make_context();
    const an_option_list *all;
    int rows = 0;
    OK(ctx, an_option_list_get(ctx, &all));
    for (int i = 0; i < all->count; i++) {
        const an_option *o = &all->items[i];
        const an_option_member *m = place_of(o);
        if (!m) continue;
        rows++;
        if (strcmp(m->name, o->path) != 0) fail_msg("%s goes to an_settings.%s", o->path, m->name);
        for (int k = 0; k < all->count; k++) {
            const char *table = all->items[k].table;
            if (table && !strncmp(o->path, table, strlen(table)) && o->path[strlen(table)] == '.')
                fail_msg("%s is also an option of %s, so an_settings cannot hold its value", o->path,
                         all->items[k].path);
        }
    }
    assert_true(rows >= 20);
    an_context_destroy(&ctx);
}

/* ---- values ---- */

static void test_values(void **state) {
    (void)state;
    an_context *ctx = make_context();
    an_config *c = config_of(ctx, "run: {steps: 50k}\n"
                                  "model: {type: mlp, init: {from: a.safetensors}}\n"
                                  "data: {train: {type: csv, path: a.csv}, split: {eval: 10%, by: time}}\n"
                                  "train: {precision: bf16, loss: {reduction: sample_mean, focal: 2}}\n"
                                  "eval: {every: 2 epochs, metrics: [loss, mae]}\n"
                                  "save: {every: off}\n");
    const an_settings *s = c->settings;
    assert_true(s->run.steps.unit == AN_LENGTH_STEPS && s->run.steps.amount == 50000);
    assert_true(s->run.epochs.amount == 0); /* its default does not stand beside steps */
    assert_string_equal(s->model.type, "mlp");
    assert_string_equal(s->model.init.from, "folder/a.safetensors");
    assert_string_equal(s->data.split.by, "time");
    assert_null(s->data.weights);
    assert_int_equal(s->train.precision, AN_DTYPE_BF16);
    assert_int_equal(s->train.matmul_precision, AN_MATMUL_HIGHEST);
    assert_int_equal(s->train.loss.reduction, AN_REDUCTION_SAMPLE_MEAN);
    assert_true(s->train.loss.focal == 2 && s->train.loss.beta == 0);
    assert_true(s->eval.every.unit == AN_LENGTH_EPOCHS && s->eval.every.amount == 2);
    assert_int_equal(s->eval.metrics_count, 2);
    assert_string_equal(s->eval.metrics[1], "mae");
    assert_string_equal(s->eval.best.metric, "val_loss");
    assert_true(s->save.every.amount == 0 && s->log.every.amount == 10);
    OK(ctx, an_config_set(c, "run.steps=7"));
    assert_true(c->settings->run.steps.amount == 7);
    s = c->settings;
    assert_int_not_equal(an_config_set(c, "run.steps=-1"), AN_OK);
    assert_ptr_equal(c->settings, s);
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_are_keys),
        cmocka_unit_test(test_rows_fill_members_of_their_name),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
