#include "cli/predict/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/options/settings.h"
#include "base/text/utf8.h"

enum {
    MOST_ROWS = 30,    /* of the table of classes; of more, those with the lowest F1 are shown */
    MOST_COLUMNS = 12, /* of the confusion matrix; of more, the commonest mistakes are shown */
    SHOWN = 10,
    PAGE = 80,
};

/* ---- names ---- */

/* Names come from files: what a terminal would obey is not printed, and what does not fit is cut between characters. */
static cli_text printable(const char *name) {
    cli_text out;
    an_utf8_show(out.text, sizeof out.text - 1, name);
    return out;
}

cli_text cli_class_label(const cli_training *training, int64_t number) {
    const char *name = an_dataset_class_name(an_trainer_data(training->trainer), number);
    cli_text out;
    if (name && *name) return printable(name);
    snprintf(out.text, sizeof out.text, "%lld", (long long)number);
    return out;
}

/* A target that data.train.targets names, of `count`. */
static cli_text output_label(const cli_training *t, int64_t index, int64_t count) {
    char path[64];
    const char *name = NULL;
    cli_text out;
    snprintf(path, sizeof path, "%s[%d]", AN_SETTING(data.train.targets), (int)index);
    if (an_config_size(t->config, AN_SETTING(data.train.targets)) == count &&
        an_config_string(t->config, path, &name) == AN_OK)
        return printable(name);
    snprintf(out.text, sizeof out.text, "y%lld", (long long)index + 1);
    return out;
}

static int columns_of(const char *text) {
    int columns = 0;
    for (; *text; columns++) text += an_utf8_length_in_text(text) ? an_utf8_length_in_text(text) : 1;
    return columns;
}

static void print_left(const char *text, int width) {
    const int columns = columns_of(text);
    printf("%s%*s", text, width > columns ? width - columns : 0, "");
}

static void print_right(const char *text, int width) {
    const int columns = columns_of(text);
    printf("%*s%s", width > columns ? width - columns : 0, "", text);
}

/* ---- classes ---- */

/* Whether a sample has one target, also if it is a sentence of many tokens. */
static bool has_one_target(const an_dataset *data) {
    an_field field;
    an_field_init(&field, sizeof field);
    for (int i = 0; data && an_dataset_field(data, i, &field) == AN_OK; i++)
        if (field.target) return field.ndims == 0;
    return false;
}

bool cli_shows_classes(const cli_training *training) {
    const cli_training *t = training;
    return an_trainer_class_count(t->trainer) > 0 &&
           (t->info.tokens == 1 || has_one_target(an_trainer_data(t->trainer)));
}

/* All were asked for, and the evaluation has been made: these calls cannot fail. */
static an_class_metrics class_of(const cli_training *t, int64_t index) {
    an_class_metrics m;
    an_class_metrics_init(&m, sizeof m);
    an_trainer_class_metrics(t->trainer, index, &m);
    return m;
}

static int64_t confusion(const cli_training *t, int64_t target, int64_t predicted) {
    int64_t count = 0;
    an_trainer_confusion(t->trainer, target, predicted, &count);
    return count;
}

static int label_width(const cli_training *t) {
    int width = 5; /* "class" */
    for (int64_t i = 0; i < an_trainer_class_count(t->trainer); i++) {
        const int columns = columns_of(cli_class_label(t, i).text);
        if (columns > width) width = columns;
    }
    return width;
}

typedef struct {
    int64_t index;
    double f1;
} ranked;

static int by_f1(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->f1 != y->f1) return x->f1 < y->f1 ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void print_class(const cli_training *t, int64_t index, int width) {
    const an_class_metrics m = class_of(t, index);
    print_left(cli_class_label(t, index).text, width);
    printf("  %10s  %9.4f  %7.4f  %7.4f\n", cli_count(m.targets).text, m.precision, m.recall, m.f1);
}

static void print_classes(const cli_training *t) {
    const int64_t count = an_trainer_class_count(t->trainer);
    const int width = label_width(t);
    ranked *order = malloc((size_t)count * sizeof *order);
    int64_t seen = 0;
    for (int64_t i = 0; order && i < count; i++) {
        const an_class_metrics m = class_of(t, i);
        if (m.targets + m.predicted > 0) order[seen++] = (ranked){i, m.f1};
    }
    const bool all = count <= MOST_ROWS || !order;
    printf("\n%s", all ? "" : "the classes with the lowest F1\n");
    print_left("class", width);
    printf("  %10s  %9s  %7s  %7s\n", "targets", "precision", "recall", "F1");
    if (!all) qsort(order, (size_t)seen, sizeof *order, by_f1);
    for (int64_t i = 0; i < (all ? count : seen) && (all || i < SHOWN); i++)
        print_class(t, all ? i : order[i].index, width);
    free(order);
}

/* ---- the confusion matrix ---- */

static void print_matrix(const cli_training *t) {
    const int64_t count = an_trainer_class_count(t->trainer);
    const int first = label_width(t);
    int width = 1;
    for (int64_t i = 0; i < count; i++) {
        const an_class_metrics m = class_of(t, i);
        const int digits = (int)strlen(cli_count(m.predicted > m.targets ? m.predicted : m.targets).text);
        if (digits > width) width = digits;
    }
    int named = width;
    for (int64_t i = 0; i < count; i++) {
        const int columns = columns_of(cli_class_label(t, i).text);
        if (columns > named) named = columns;
    }
    /* Where names are too long for a line, columns are in the order of rows and have numbers. */
    const bool has_names = first + (int)count * (named + 2) <= PAGE;
    if (has_names) width = named;
    printf("\nconfusion matrix (rows: targets; columns: predictions%s)\n",
           has_names ? "" : ", in the order of the rows");
    print_left("", first);
    for (int64_t i = 0; i < count; i++) {
        cli_text number;
        snprintf(number.text, sizeof number.text, "%lld", (long long)i);
        printf("  ");
        print_right(has_names ? cli_class_label(t, i).text : number.text, width);
    }
    putchar('\n');
    for (int64_t i = 0; i < count; i++) {
        print_left(cli_class_label(t, i).text, first);
        for (int64_t k = 0; k < count; k++) printf("  %*s", width, cli_count(confusion(t, i, k)).text);
        putchar('\n');
    }
}

typedef struct {
    int64_t target, predicted, count;
} mistake;

/* Inserts into a short list that is sorted, commonest first; of equal ones the first stays first. */
static void take_mistake(mistake *list, mistake m) {
    int at = SHOWN;
    while (at > 0 && list[at - 1].count < m.count) at--;
    if (at == SHOWN) return;
    memmove(list + at + 1, list + at, (size_t)(SHOWN - 1 - at) * sizeof *list);
    list[at] = m;
}

static void print_mistakes(const cli_training *t) {
    const int64_t count = an_trainer_class_count(t->trainer);
    const int width = label_width(t);
    mistake list[SHOWN] = {{0}};
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < count; k++)
            if (i != k) take_mistake(list, (mistake){i, k, confusion(t, i, k)});
    if (list[0].count == 0) return;
    printf("\nthe commonest mistakes (--json and --svg have the whole confusion matrix)\n");
    print_left("class", width);
    printf("  ");
    print_left("predicted", width);
    printf("  %10s\n", "targets");
    for (int i = 0; i < SHOWN && list[i].count > 0; i++) {
        print_left(cli_class_label(t, list[i].target).text, width);
        printf("  ");
        print_left(cli_class_label(t, list[i].predicted).text, width > 9 ? width : 9);
        printf("  %10s\n", cli_count(list[i].count).text);
    }
}

/* ---- outputs ---- */

static an_output_metrics output_of(const cli_training *t, int64_t index) {
    an_output_metrics m;
    an_output_metrics_init(&m, sizeof m);
    an_trainer_output_metrics(t->trainer, index, &m);
    return m;
}

static void print_outputs(const cli_training *t) {
    const int64_t count = an_trainer_output_count(t->trainer);
    int width = 6; /* "output" */
    for (int64_t i = 0; i < count; i++) {
        const int columns = columns_of(output_label(t, i, count).text);
        if (columns > width) width = columns;
    }
    putchar('\n');
    print_left("output", width);
    printf("  %12s  %12s  %9s\n", "mae", "rmse", "r2");
    for (int64_t i = 0; i < count && i < MOST_ROWS; i++) {
        const an_output_metrics m = output_of(t, i);
        print_left(output_label(t, i, count).text, width);
        printf("  %12.6g  %12.6g  %9.4f\n", m.mean_absolute_error, m.root_mean_squared_error, m.r2);
    }
    if (count > MOST_ROWS) printf("… and %s more (--json has all of them)\n", cli_count(count - MOST_ROWS).text);
}

/* ---- labels ---- */

static an_label_metrics label_of(const cli_training *t, int64_t index) {
    an_label_metrics m;
    an_label_metrics_init(&m, sizeof m);
    an_trainer_label_metrics(t->trainer, index, &m);
    return m;
}

static void print_labels(const cli_training *t) {
    const int64_t count = an_trainer_label_count(t->trainer);
    int width = 5; /* "label" */
    for (int64_t i = 0; i < count; i++) {
        const int columns = columns_of(output_label(t, i, count).text);
        if (columns > width) width = columns;
    }
    putchar('\n');
    print_left("label", width);
    printf("  %10s  %8s  %9s  %7s  %7s  %7s\n", "targets", "accuracy", "precision", "recall", "F1", "auc");
    for (int64_t i = 0; i < count && i < MOST_ROWS; i++) {
        const an_label_metrics m = label_of(t, i);
        print_left(output_label(t, i, count).text, width);
        printf("  %10s  %8.4f  %9.4f  %7.4f  %7.4f  %7.4f\n", cli_count(m.targets).text, m.accuracy, m.precision,
               m.recall, m.f1, m.auc);
    }
    if (count > MOST_ROWS) printf("… and %s more (--json has all of them)\n", cli_count(count - MOST_ROWS).text);
}

static void write_labels(const cli_training *t, an_json_writer *json) {
    const int64_t count = an_trainer_label_count(t->trainer);
    an_json_write_array(json, "labels");
    for (int64_t i = 0; i < count; i++) {
        const an_label_metrics m = label_of(t, i);
        an_json_write_object(json, NULL);
        an_json_write_string(json, "label", output_label(t, i, count).text);
        an_json_write_integer(json, "targets", m.targets);
        an_json_write_integer(json, "predicted", m.predicted);
        an_json_write_integer(json, "right", m.right);
        an_json_write_exact(json, "accuracy", m.accuracy);
        an_json_write_exact(json, "precision", m.precision);
        an_json_write_exact(json, "recall", m.recall);
        an_json_write_exact(json, "f1", m.f1);
        an_json_write_exact(json, "auc", m.auc);
        an_json_write_end(json);
    }
    an_json_write_end(json);
}

/* ---- all of it ---- */

void cli_report_print(const cli_training *training) {
    const cli_training *t = training;
    if (cli_shows_classes(t)) {
        print_classes(t);
        if (an_trainer_class_count(t->trainer) <= MOST_COLUMNS)
            print_matrix(t);
        else
            print_mistakes(t);
    }
    if (an_trainer_label_count(t->trainer) > 0) print_labels(t);
    if (an_trainer_output_count(t->trainer) > 1) print_outputs(t);
}

static void write_classes(const cli_training *t, an_json_writer *json) {
    const int64_t count = an_trainer_class_count(t->trainer);
    an_json_write_array(json, "class_metrics");
    for (int64_t i = 0; i < count; i++) {
        const an_class_metrics m = class_of(t, i);
        an_json_write_object(json, NULL);
        an_json_write_string(json, "class", cli_class_label(t, i).text);
        an_json_write_integer(json, "targets", m.targets);
        an_json_write_integer(json, "predicted", m.predicted);
        an_json_write_integer(json, "right", m.right);
        an_json_write_exact(json, "precision", m.precision);
        an_json_write_exact(json, "recall", m.recall);
        an_json_write_exact(json, "f1", m.f1);
        an_json_write_end(json);
    }
    an_json_write_end(json);
    an_json_write_array(json, "confusion");
    for (int64_t i = 0; i < count; i++) {
        an_json_write_array(json, NULL);
        for (int64_t k = 0; k < count; k++) an_json_write_integer(json, NULL, confusion(t, i, k));
        an_json_write_end(json);
    }
    an_json_write_end(json);
}

/* The threshold of the first point is infinite, which JSON cannot say. */
static void write_roc(const cli_training *t, an_json_writer *json) {
    an_roc_point *points = malloc(CLI_ROC_POINTS * sizeof *points);
    int64_t count = 0;
    if (points && an_trainer_roc(t->trainer, CLI_ROC_POINTS, points, &count) == AN_OK) {
        an_json_write_array(json, "roc");
        for (int64_t i = 0; i < count; i++) {
            an_json_write_object(json, NULL);
            an_json_write_exact(json, "false_rate", points[i].false_rate);
            an_json_write_exact(json, "true_rate", points[i].true_rate);
            if (i > 0)
                an_json_write_exact(json, "threshold", points[i].threshold);
            else
                an_json_write_null(json, "threshold");
            an_json_write_end(json);
        }
        an_json_write_end(json);
    }
    free(points);
}

static void write_outputs(const cli_training *t, an_json_writer *json) {
    an_json_write_array(json, "outputs");
    for (int64_t i = 0; i < an_trainer_output_count(t->trainer); i++) {
        const an_output_metrics m = output_of(t, i);
        an_json_write_object(json, NULL);
        an_json_write_string(json, "name", output_label(t, i, an_trainer_output_count(t->trainer)).text);
        an_json_write_exact(json, "mae", m.mean_absolute_error);
        an_json_write_exact(json, "rmse", m.root_mean_squared_error);
        an_json_write_exact(json, "r2", m.r2);
        an_json_write_end(json);
    }
    an_json_write_end(json);
}

void cli_report_write(const cli_training *training, an_json_writer *json) {
    if (cli_shows_classes(training)) {
        write_classes(training, json);
        write_roc(training, json);
    }
    if (an_trainer_label_count(training->trainer) > 0) write_labels(training, json);
    if (an_trainer_output_count(training->trainer) > 0) write_outputs(training, json);
}
