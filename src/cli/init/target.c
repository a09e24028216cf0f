/* Which column is the target, and whether its numbers are classes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/init/init.h"

enum { LABEL = 24 }; /* bytes of a name that are shown */

/* What the target is called in most tables, the most telling first. */
static const char *const usual[] = {"target",  "targets", "label",     "labels",   "class",    "classes", "y",
                                    "species", "outcome", "diagnosis", "category", "survived", "quality", "price"};

int64_t init_find_column(const char *name, const char *const *names, int64_t count) {
    char *end;
    for (int64_t i = 0; i < count; i++)
        if (names[i] && !strcmp(names[i], name)) return i;
    const long long number = strtoll(name, &end, 10);
    return *name && !*end && number >= 1 && number <= count ? number - 1 : -1;
}

int64_t init_choose_target(const init_found *f, const char *const *names, int64_t count) {
    if (f->target) return init_find_column(f->target, names, count);
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        for (int64_t i = 0; i < count; i++)
            if (names[i] && !strcasecmp(names[i], usual[k])) {
                cli_tell("target: '%s', because of its name (--target COLUMN chooses another)",
                         init_show(names[i], LABEL).text);
                return i;
            }
    if (names[count - 1])
        cli_tell("target: '%s', because it is the last column (--target COLUMN chooses another)",
                 init_show(names[count - 1], LABEL).text);
    else
        cli_tell("target: column %lld, because it is the last one (--target NUMBER chooses another)", (long long)count);
    return count - 1;
}

/* ---- classes or numbers ---- */

/* Whole numbers with few different values are classes; 20 is more than people give numbers to, and
 * fewer than most counts have. */
enum { FEW = 20, EACH = 2 };

int init_decide(init_found *f, const char *name, const init_numbers *n) {
    const bool possible = n->whole && n->minimum >= 0 && n->different <= INIT_MOST_CLASSES && n->maximum < INT32_MAX;
    const bool few = n->different <= FEW && n->different * EACH <= f->samples;
    const bool classes = f->task == INIT_CLASSIFY || (f->task == INIT_AUTO && possible && few);
    if (classes && !possible)
        return cli_misuse(f->call,
                          "%s: '%s' cannot be classes, which are names, or whole numbers from 0 on with at most %d "
                          "different values; it has numbers from %g to %g",
                          f->data, name, (int)INIT_MOST_CLASSES, n->minimum, n->maximum);
    f->classes = classes ? (int64_t)n->maximum + 1 : 0;
    if (!classes || n->minimum > 0 || n->different != f->classes)
        f->rarest = f->commonest = 0; /* a class has no sample */
    if (classes)
        cli_tell("task: classification, because '%s' has whole numbers, %lld different ones%s", name,
                 (long long)n->different, f->task == INIT_AUTO ? " (--task regress for numbers)" : "");
    else
        cli_tell("task: regression, because '%s' has %s%s", name,
                 !n->whole   ? "numbers with fractions"
                 : !possible ? "numbers that are no classes"
                             : "many different numbers",
                 f->task == INIT_AUTO && possible ? " (--task classify for classes)" : "");
    if (classes && n->minimum > 0)
        cli_tell("note: classes count from 0; no sample has class 0, so the model has one output that it never uses");
    return CLI_DONE;
}

/* ---- targets of a dataset ---- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The different numbers so far, sorted, and how often each was seen. */
typedef struct {
    double values[INIT_MOST_CLASSES + 1];
    int64_t counts[INIT_MOST_CLASSES + 1];
    int64_t count;
} tally;

static void add(tally *t, init_numbers *n, double value) {
    n->whole = n->whole && value == (double)(int64_t)value;
    if (value < n->minimum) n->minimum = value;
    if (value > n->maximum) n->maximum = value;
    if (t->count > INIT_MOST_CLASSES) return;
    const double *found = bsearch(&value, t->values, (size_t)t->count, sizeof value, compare);
    if (found) {
        t->counts[found - t->values]++;
        return;
    }
    int64_t at = t->count++;
    for (; at > 0 && t->values[at - 1] > value; at--) {
        t->values[at] = t->values[at - 1];
        t->counts[at] = t->counts[at - 1];
    }
    t->values[at] = value;
    t->counts[at] = 1;
}

static double number_at(an_dtype dtype, const void *values, int64_t i) {
    return dtype == AN_DTYPE_I32   ? ((const int32_t *)values)[i]
           : dtype == AN_DTYPE_F64 ? ((const double *)values)[i]
                                   : (double)((const float *)values)[i];
}

int init_read_targets(init_found *f, an_dataset *dataset, init_numbers *n, bool *single) {
    enum { FIELDS = 2, AT_ONCE_BYTES = 1 << 24, MOST_AT_ONCE = 1024 };
    static tally t;
    an_field fields[FIELDS];
    void *memory[FIELDS] = {NULL};
    int64_t elements[FIELDS] = {1, 1}, indices[MOST_AT_ONCE];
    an_status status = AN_OK;
    bool failed = false;
    *n = (init_numbers){.minimum = HUGE_VAL, .maximum = -HUGE_VAL, .whole = true};
    t.count = 0;
    for (int i = 0; i < FIELDS && status == AN_OK; i++) {
        an_field_init(&fields[i], sizeof fields[i]);
        status = an_dataset_field(dataset, i, &fields[i]);
        for (int d = 0; d < fields[i].ndims; d++) elements[i] *= fields[i].dims[d];
    }
    *single = elements[1] == 1;
    const int64_t bytes = elements[0] * 8 + 8, fitting = AT_ONCE_BYTES / bytes;
    const int64_t at_once = fitting < 1 ? 1 : fitting < MOST_AT_ONCE ? fitting : MOST_AT_ONCE;
    for (int i = 0; i < FIELDS && status == AN_OK && *single; i++) {
        memory[i] = malloc((size_t)(at_once * elements[i]) * 8);
        failed = failed || !memory[i];
    }
    for (int64_t at = 0; status == AN_OK && *single && !failed && at < f->samples; at += at_once) {
        const int64_t count = f->samples - at < at_once ? f->samples - at : at_once;
        for (int64_t i = 0; i < count; i++) indices[i] = at + i;
        status = an_dataset_read(dataset, count, indices, memory);
        for (int64_t i = 0; status == AN_OK && i < count; i++) add(&t, n, number_at(fields[1].dtype, memory[1], i));
    }
    for (int i = 0; i < FIELDS; i++) free(memory[i]);
    n->different = t.count;
    for (int64_t i = 0; i < t.count && i <= INIT_MOST_CLASSES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%.0f", t.values[i]);
        const char *text = an_dataset_class_name(dataset, (int64_t)t.values[i]);
        init_count_class(f, text ? text : name, t.counts[i]);
    }
    if (status != AN_OK) return cli_failure(f->call, f->ctx, status);
    return failed ? cli_fail(f->call, "out of memory") : CLI_DONE;
}
