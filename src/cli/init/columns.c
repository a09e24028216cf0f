#include "cli/init/columns.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* More categories than this are usually names of things, of which a model learns nothing. */
enum { MOST_CATEGORIES = 100 };
enum { LABEL = 24, VALUE = 20 }; /* bytes of a name and of a cell that are shown */
/* With fewer groups, a fifth of them is not what it should be. */
enum { LEAST_GROUPS = 5 };

static bool is_called(const init_column *c, const char *const *names) {
    for (; c->facts.name && *names; names++)
        if (!strcasecmp(c->facts.name, *names)) return true;
    return false;
}

/* ---- what a column is ---- */

static bool is_group(const init_columns *all, const init_column *c) {
    static const char *const names[] = {"group",   "groups",     "group_id", "subject",    "subject_id",
                                        "patient", "patient_id", "session",  "session_id", "user",
                                        "user_id", "household",  NULL};
    return is_called(c, names) && c->facts.missing == 0 && c->facts.values >= LEAST_GROUPS &&
           c->facts.values < all->info.rows && c->facts.values <= AN_CSV_MOST_VALUES;
}

static bool counts_rows(const init_columns *all, int64_t index, const init_column *c) {
    static const char *const names[] = {"id", "index", "row", "row_id", "rowid", "no", "nr", "unnamed: 0", NULL};
    const bool all_differ = c->facts.values == all->info.rows || c->facts.values > AN_CSV_MOST_VALUES;
    const bool nameless = !c->facts.name && index == 0; /* as pandas writes its index */
    if (c->facts.texts > 0 || !c->facts.whole || !all_differ) return false;
    return is_called(c, names) || (nameless && c->facts.maximum - c->facts.minimum == (double)(all->info.rows - 1));
}

static bool is_empty(const init_columns *all, int64_t index, const init_column *c) {
    (void)all, (void)index;
    return c->facts.numbers + c->facts.texts == 0;
}

static bool is_mostly_missing(const init_columns *all, int64_t index, const init_column *c) {
    (void)index;
    return c->facts.missing > all->info.rows / 2;
}

static bool is_constant(const init_columns *all, int64_t index, const init_column *c) {
    (void)all, (void)index;
    return c->facts.values == 1 && (c->facts.missing == 0 || c->facts.texts == 0);
}

static bool is_mixed(const init_columns *all, int64_t index, const init_column *c) {
    (void)all, (void)index;
    return c->facts.texts > 0 && c->facts.texts < c->facts.numbers;
}

static bool is_written_differently(const init_columns *all, int64_t index, const init_column *c) {
    (void)all, (void)index;
    return c->facts.kind == AN_CSV_KIND_MIXED;
}

static bool is_free_text(const init_columns *all, int64_t index, const init_column *c) {
    (void)index;
    return c->facts.texts > 0 && (c->facts.values > MOST_CATEGORIES || 2 * c->facts.values > all->info.rows);
}

/* Why a column is no input; the first that is true. */
static const struct {
    bool (*holds)(const init_columns *all, int64_t index, const init_column *c);
    const char *reason;
} reasons[] = {{is_empty, "it has no cells"},
               {is_mostly_missing, "more than half of its cells are missing"},
               {is_constant, "all of its cells are the same"},
               {is_mixed, "most of its cells are numbers, but some are text"},
               {is_written_differently, "its numbers or dates are not all written in the same way"},
               {is_free_text, "it has too many different texts for categories"},
               {counts_rows, "it numbers the rows"}};

/* ---- all of them ---- */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A config chooses columns by their names, so these must differ. */
static int check_names(const init_columns *all, const init_found *f) {
    size_t count = 0;
    const char *twice = NULL, **names = calloc((size_t)all->info.columns, sizeof *names);
    if (!names) return cli_fail(f->call, "out of memory");
    for (int64_t i = 0; i < all->info.columns; i++)
        if (all->list[i].facts.name) names[count++] = all->list[i].facts.name;
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count && !twice; i++)
        if (!strcmp(names[i - 1], names[i])) twice = names[i];
    free(names);
    return twice ? cli_fail(f->call, "%s: two columns are called '%s'; rename one of them", f->data,
                            init_show(twice, LABEL).text)
                 : CLI_DONE;
}

static void use_target(init_columns *all, int64_t index) {
    all->target_count += all->list[index].use != INIT_TARGET;
    all->list[index].use = INIT_TARGET;
}

/* a,b,c */
static int choose_listed(init_columns *all, const init_found *f, const char *const *names) {
    const size_t length = strlen(f->target);
    char *list = malloc(length + 1), *rest = NULL;
    if (!list) return cli_fail(f->call, "out of memory");
    memcpy(list, f->target, length + 1);
    int64_t found = -1;
    const char *name = strtok_r(list, ",", &rest);
    for (; name && (found = init_find_column(name, names, all->info.columns)) >= 0; name = strtok_r(NULL, ",", &rest)) {
        if (all->target < 0) all->target = found;
        use_target(all, found);
    }
    const int code = found >= 0 ? CLI_DONE
                                : cli_misuse(f->call,
                                             "%s: there is no column '%s' for --target; name a column of the %s, or "
                                             "give its number from 1 to %lld",
                                             f->data, name ? name : f->target,
                                             all->info.header ? "header" : "table, which has no header",
                                             (long long)all->info.columns);
    free(list);
    return code;
}

static int choose_target(init_columns *all, init_found *f) {
    const size_t count = (size_t)all->info.columns;
    const char **names = calloc(count, sizeof *names);
    if (!names) return cli_fail(f->call, "out of memory");
    for (size_t i = 0; i < count; i++) names[i] = all->list[i].facts.name;
    all->target = init_choose_target(f, names, all->info.columns);
    int code = CLI_DONE;
    if (all->target >= 0)
        use_target(all, all->target);
    else
        code = choose_listed(all, f, names);
    free(names);
    return code;
}

static void choose_uses(init_columns *all, init_found *f) {
    for (int64_t i = 0; i < all->info.columns; i++) {
        init_column *c = &all->list[i];
        if (c->use == INIT_TARGET) continue;
        if (!*f->group && is_group(all, c) && strlen(c->facts.name) < sizeof f->group) {
            c->use = INIT_GROUP;
            snprintf(f->group, sizeof f->group, "%s", c->facts.name);
            continue;
        }
        for (size_t k = 0; k < sizeof reasons / sizeof *reasons && !c->reason; k++)
            if (reasons[k].holds(all, i, c)) c->reason = reasons[k].reason;
        if (c->reason) c->use = INIT_LEFT_OUT;
    }
}

static void tell_table(const init_columns *all, const init_found *f) {
    const char *between = all->info.delimiter == ','   ? "commas"
                          : all->info.delimiter == ';' ? "semicolons"
                          : all->info.delimiter == '|' ? "bars"
                                                       : "tabs";
    cli_tell("%s: a table with %s rows and %lld column%s between %s, %s", f->data, cli_count(all->info.rows).text,
             (long long)all->info.columns, all->info.columns == 1 ? "" : "s", between,
             all->info.header ? "with a header" : "without a header");
}

/* Cells in another notation count as what they are. Where that is not clear, the options decide, and check_clear asks
 * for them. */
static void take_kind(init_column *c, const init_found *f) {
    const an_csv_kind kind = c->facts.kind;
    c->is_date = kind == AN_CSV_KIND_DATE || (kind == AN_CSV_KIND_UNCLEAR_DATE && f->dates);
    c->has_notation = kind == AN_CSV_KIND_NUMBER || (kind == AN_CSV_KIND_UNCLEAR_NUMBER && f->numbers);
    if (kind == AN_CSV_KIND_PLAIN || kind == AN_CSV_KIND_MIXED) return;
    c->facts.numbers += c->facts.texts;
    c->facts.texts = 0;
    c->facts.whole = false;
}

static int check_clear(const init_found *f, const init_column *c) {
    if (c->use == INIT_LEFT_OUT || c->use == INIT_GROUP || c->is_date || c->has_notation) return CLI_DONE;
    if (c->facts.kind == AN_CSV_KIND_UNCLEAR_NUMBER)
        return cli_misuse(
            f->call,
            "%s: '%s': the decimal mark of numbers such as '%s' could be a point or a comma; say which with "
            "--numbers point or --numbers comma",
            f->data, c->label, c->facts.example);
    if (c->facts.kind == AN_CSV_KIND_UNCLEAR_DATE)
        return cli_misuse(
            f->call,
            "%s: '%s': dates such as '%s' could begin with the day or with the month; say which with --dates "
            "day_first or --dates month_first",
            f->data, c->label, c->facts.example);
    return CLI_DONE;
}

int init_columns_choose(init_columns *all, init_found *f, const an_csv_facts *facts) {
    *all = (init_columns){.facts = facts, .target = -1};
    an_csv_info_init(&all->info, sizeof all->info);
    an_csv_facts_info(facts, &all->info);
    all->list = calloc((size_t)all->info.columns, sizeof *all->list);
    if (!all->list) return cli_fail(f->call, "out of memory");
    for (int64_t i = 0; i < all->info.columns; i++) {
        init_column *c = &all->list[i];
        an_csv_column_init(&c->facts, sizeof c->facts);
        an_csv_facts_column(facts, i, &c->facts);
        take_kind(c, f);
        if (c->facts.name)
            snprintf(c->label, sizeof c->label, "%s", init_show(c->facts.name, LABEL).text);
        else
            snprintf(c->label, sizeof c->label, "column %lld", (long long)i + 1);
    }
    tell_table(all, f);
    int code = check_names(all, f);
    if (code == CLI_DONE) code = choose_target(all, f);
    if (code == CLI_DONE) choose_uses(all, f);
    for (int64_t i = 0; i < all->info.columns && code == CLI_DONE; i++) code = check_clear(f, &all->list[i]);
    return code;
}

void init_columns_free(init_columns *all) {
    free(all->list);
    all->list = NULL;
}

/* ---- telling ---- */

/* "setosa 50, versicolor 50, …" */
static void describe_values(const init_columns *all, int64_t index, char *text, size_t capacity) {
    enum { SHOWN = 5 };
    size_t used = 0;
    int64_t count = 0;
    const char *value;
    text[0] = 0;
    for (int64_t i = 0; i < SHOWN && used < capacity && (value = an_csv_facts_value(all->facts, index, i, &count)); i++)
        used += (size_t)snprintf(text + used, capacity - used, "%s%s %lld", i ? ", " : "", init_show(value, VALUE).text,
                                 (long long)count);
    if (all->list[index].facts.values > SHOWN && used < capacity) snprintf(text + used, capacity - used, ", ...");
}

/* What cells in another notation became. */
static void describe_notation(const init_column *c, char *text, size_t capacity) {
    const char *notation = c->facts.notation ? c->facts.notation : c->facts.example;
    if (c->is_date)
        snprintf(text, capacity, "written as %s; becomes days since 1970, time of year, day of the week%s", notation,
                 strstr(notation, "hh") ? ", time of day" : "");
    else
        snprintf(text, capacity, "written as %s", notation);
}

static void tell_column(const init_columns *all, int64_t index) {
    enum { FEW = 20 };
    static const char *const uses[] = {
        [INIT_INPUT] = "input", [INIT_TARGET] = "target", [INIT_GROUP] = "group", [INIT_LEFT_OUT] = "left out"};
    const init_column *c = &all->list[index];
    char about[200], different[24] = "many";
    const bool few = c->use == INIT_TARGET && c->facts.whole && c->facts.values <= FEW;
    if (c->is_date || c->has_notation)
        describe_notation(c, about, sizeof about);
    else if (c->facts.texts > 0 || few)
        describe_values(all, index, about, sizeof about);
    else
        snprintf(about, sizeof about, "%.6g to %.6g", c->facts.minimum, c->facts.maximum);
    if (c->facts.values <= AN_CSV_MOST_VALUES)
        snprintf(different, sizeof different, "%lld", (long long)c->facts.values);
    cli_tell("  %-24s %-8s %-8s %9s %9lld  %s", c->label, uses[c->use],
             c->is_date           ? "date"
             : c->facts.texts > 0 ? "text"
             : c->facts.whole     ? "integer"
                                  : "number",
             different, (long long)c->facts.missing, c->reason ? c->reason : about);
}

void init_columns_tell(const init_columns *all) {
    enum { SHOWN = 40 };
    int64_t shown = 0;
    cli_tell("  %-24s %-8s %-8s %9s %9s  %s", "column", "use", "type", "different", "missing", "range or values");
    for (int64_t i = 0; i < all->info.columns; i++) /* those that are no inputs are always shown */
        if (all->list[i].use != INIT_INPUT || shown++ < SHOWN) tell_column(all, i);
    if (shown > SHOWN) cli_tell("  ... and %lld more inputs", (long long)(shown - SHOWN));
}
