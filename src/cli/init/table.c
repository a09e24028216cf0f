/* anneal init of a CSV file. */
#include <stdlib.h>
#include <string.h>

#include "cli/init/columns.h"

/* ---- the target ---- */

static void fill_numbers(const init_columns *all, init_numbers *n) {
    const init_column *c = &all->list[all->target];
    *n = (init_numbers){c->facts.minimum, c->facts.maximum, c->facts.values, c->facts.whole};
}

static void count_classes(init_found *f, const init_columns *all) {
    const char *value;
    int64_t count;
    for (int64_t i = 0; (value = an_csv_facts_value(all->facts, all->target, i, &count)); i++)
        init_count_class(f, value, count);
}

static int decide_names(init_found *f, const init_columns *all) {
    const init_column *c = &all->list[all->target];
    if (c->facts.texts < c->facts.numbers)
        return cli_fail(f->call,
                        "%s: the target '%s' has %lld numbers and %lld cells that are text; correct these, or "
                        "choose another column with --target",
                        f->data, c->label, (long long)c->facts.numbers, (long long)c->facts.texts);
    if (f->task == INIT_REGRESS)
        return cli_misuse(f->call, "%s: '%s' has text, so it cannot be a number to predict; leave out --task regress",
                          f->data, c->label);
    if (c->facts.values > AN_CSV_MOST_VALUES)
        return cli_fail(f->call,
                        "%s: the target '%s' has more than %d different texts, so they are no classes; choose "
                        "another column with --target",
                        f->data, c->label, (int)AN_CSV_MOST_VALUES);
    if (2 * c->facts.values > f->samples)
        return cli_fail(f->call,
                        "%s: the target '%s' has %lld different texts in %lld rows, so they are no classes; choose "
                        "another column with --target",
                        f->data, c->label, (long long)c->facts.values, (long long)f->samples);
    f->classes = c->facts.values;
    cli_tell("task: classification, because '%s' has text: %lld classes", c->label, (long long)f->classes);
    return CLI_DONE;
}

static int decide(init_found *f, const init_columns *all) {
    const init_column *c = &all->list[all->target];
    init_numbers n;
    fill_numbers(all, &n);
    if (c->facts.values < 2)
        return cli_fail(f->call,
                        "%s: all cells of the target '%s' are the same, so there is nothing to learn; choose "
                        "another column with --target",
                        f->data, c->label);
    count_classes(f, all);
    if (c->facts.texts > 0) return decide_names(f, all);
    if (!c->has_notation) return init_decide(f, c->label, &n);
    f->rarest = f->commonest = 0;
    cli_tell("task: regression, because '%s' has numbers written as %s", c->label,
             c->facts.notation ? c->facts.notation : c->facts.example);
    return CLI_DONE;
}

/* Several targets are labels, if all of them are 0 or 1, or else measurements: a model has one set of classes. */
static int decide_several(init_found *f, const init_columns *all) {
    bool labels = f->task != INIT_REGRESS;
    if (f->task == INIT_CLASSIFY)
        return cli_misuse(f->call, "%s: several targets cannot be classes; leave out --task classify", f->data);
    for (int64_t i = 0; i < all->info.columns; i++) {
        const init_column *c = &all->list[i];
        if (c->use != INIT_TARGET) continue;
        if (c->facts.texts > 0)
            return cli_misuse(
                f->call,
                "%s: '%s' has text, so it cannot be one of several targets, which are numbers; leave it out of "
                "--target",
                f->data, c->label);
        labels = labels && c->facts.whole && c->facts.minimum >= 0 && c->facts.maximum <= 1;
    }
    f->has_labels = labels;
    if (labels)
        cli_tell("task: %lld labels, because all targets are 0 or 1 (--task regress for numbers)",
                 (long long)all->target_count);
    else
        cli_tell("task: regression with %lld outputs, because there are several targets", (long long)all->target_count);
    return CLI_DONE;
}

/* What no target can be. */
static int check_targets(const init_found *f, const init_columns *all) {
    for (int64_t i = 0; i < all->info.columns; i++) {
        const init_column *c = &all->list[i];
        if (c->use != INIT_TARGET) continue;
        if (c->is_date)
            return cli_fail(
                f->call, "%s: the target '%s' has dates, which can be inputs only; choose another column with --target",
                f->data, c->label);
        if (c->facts.kind == AN_CSV_KIND_MIXED && c->facts.texts == 0)
            return cli_fail(
                f->call,
                "%s: the numbers of the target '%s', such as '%s', are not all written in the same way; correct "
                "these, or choose another column with --target",
                f->data, c->label, c->facts.example);
    }
    return CLI_DONE;
}

/* ---- the source ---- */

/* A column as a list of the config names it: by its name, or without a header by its number. */
static void put_column(const init_found *f, const init_columns *all, int64_t index, const char *before) {
    const char *name = all->list[index].facts.name;
    char text[1024 + 2];
    if (name && strlen(name) < sizeof text - 2)
        snprintf(text, sizeof text, "%s%s", before, name);
    else
        snprintf(text, sizeof text, "%lld", (long long)index + 1);
    init_put_text(f->source_stream, text);
}

/* Whether the columns that are no inputs can be left out by name. In a pattern, these characters mean others. */
static bool can_leave_out(const init_columns *all) {
    for (int64_t i = 0; i < all->info.columns; i++) {
        const init_column *c = &all->list[i];
        const bool out = c->use == INIT_GROUP || c->use == INIT_LEFT_OUT;
        if (out && (!c->facts.name || strpbrk(c->facts.name, "*?[]\\"))) return false;
    }
    return all->info.header;
}

static void put_inputs(const init_found *f, const init_columns *all) {
    int64_t out = 0;
    const bool leaves_out = can_leave_out(all);
    const char *separator = "    inputs: [";
    for (int64_t i = 0; i < all->info.columns; i++)
        out += all->list[i].use == INIT_GROUP || all->list[i].use == INIT_LEFT_OUT;
    if (out == 0) return;
    for (int64_t i = 0; i < all->info.columns; i++) {
        const bool is_out = all->list[i].use == INIT_GROUP || all->list[i].use == INIT_LEFT_OUT;
        if (leaves_out ? !is_out : all->list[i].use != INIT_INPUT) continue;
        fputs(separator, f->source_stream);
        put_column(f, all, i, leaves_out ? "!" : "");
        separator = ", ";
    }
    fprintf(f->source_stream, "]  # %s\n", leaves_out ? "all columns but these" : "these columns, and no others");
}

static void put_targets(const init_found *f, const init_columns *all) {
    const char *separator = "\n    targets: [";
    for (int64_t i = 0; i < all->info.columns; i++) {
        if (all->list[i].use != INIT_TARGET) continue;
        fputs(separator, f->source_stream);
        put_column(f, all, i, "");
        separator = ", ";
    }
    fputs("]\n", f->source_stream);
}

static void put_notations(const init_found *f, const init_columns *all) {
    bool numbers = false, dates = false;
    for (int64_t i = 0; i < all->info.columns; i++) {
        const init_column *c = &all->list[i];
        const bool used = c->use == INIT_INPUT || c->use == INIT_TARGET;
        numbers = numbers || (used && c->has_notation);
        dates = dates || (used && c->is_date);
    }
    if (numbers)
        fprintf(f->source_stream, "    numbers: %s  # decimal commas, separators and signs; kept with the model\n",
                f->numbers ? f->numbers : "auto");
    if (dates)
        fprintf(f->source_stream,
                "    dates: %s  # days since 1970, time of year, day of the week; kept with the model\n",
                f->dates ? f->dates : "auto");
}

static void put_source(const init_found *f, const init_columns *all) {
    FILE *out = f->source_stream;
    const char delimiter[] = {all->info.delimiter, 0};
    fprintf(out, "    path: ");
    init_put_path(f, f->data);
    put_targets(f, all);
    if (f->classes) fprintf(out, "    classes: on  # targets are classes, not measurements\n");
    put_inputs(f, all);
    put_notations(f, all);
    fprintf(out, "    header: %s\n", all->info.header ? "on" : "off");
    if (all->info.delimiter == '\t')
        fprintf(out, "    delimiter: \"\\t\"\n");
    else if (all->info.delimiter != ',')
        fprintf(out, "    delimiter: \"%s\"\n", delimiter);
}

/* ---- all of it ---- */

static int64_t date_width(const init_column *c) {
    const char *notation = c->facts.notation ? c->facts.notation : c->facts.example;
    return strpbrk(notation, "h:") ? 7 : 5; /* with a time, or without */
}

static void count_inputs(init_found *f, const init_columns *all) {
    bool missing = false, target_missing = false;
    for (int64_t i = 0; i < all->info.columns; i++) {
        const init_column *c = &all->list[i];
        target_missing = target_missing || (c->use == INIT_TARGET && c->facts.missing > 0);
        if (c->use != INIT_INPUT) continue;
        f->inputs += c->is_date ? date_width(c) : c->facts.texts > 0 ? c->facts.values : 1;
        missing = missing || c->facts.missing > 0;
    }
    f->missing = target_missing ? "drop" : missing ? "mean" : NULL;
}

static int look(init_found *f, const init_columns *all) {
    enum { MOST_LISTED = 4096 };
    f->samples = all->info.rows;
    count_inputs(f, all);
    int code = check_targets(f, all);
    if (code == CLI_DONE) code = all->target_count > 1 ? decide_several(f, all) : decide(f, all);
    init_columns_tell(all);
    if (code != CLI_DONE) return code;
    if (f->inputs == 0) return cli_fail(f->call, "%s: no column is left for inputs", f->data);
    if (!can_leave_out(all) && all->info.columns > MOST_LISTED)
        return cli_fail(f->call, "%s: the table has %lld columns, and a config lists at most %d; add a header", f->data,
                        (long long)all->info.columns, (int)MOST_LISTED);
    if (f->missing)
        cli_tell("missing cells: %s", !strcmp(f->missing, "drop")
                                          ? "the target has some, so rows with missing cells are left out"
                                          : "numbers become the mean of their column, categories none of them");
    put_source(f, all);
    return CLI_DONE;
}

int init_table(init_found *f) {
    an_csv_facts *facts = NULL;
    init_columns all = {0};
    const an_status status = an_csv_facts_create(&facts, f->ctx, f->data, 0);
    if (status != AN_OK) return cli_failure(f->call, f->ctx, status);
    f->type = "csv";
    int code = init_columns_choose(&all, f, facts);
    if (code == CLI_DONE) code = look(f, &all);
    init_columns_free(&all);
    an_csv_facts_destroy(&facts);
    return code;
}
