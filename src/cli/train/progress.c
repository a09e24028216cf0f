/* Shows the progress of a run: one changing line on a terminal, plain lines elsewhere. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "cli/train/open.h"

enum { DEFAULT_COLUMNS = 80, NARROW = 60, WIDE = 110, SHORT_BAR = 12, BAR = 40 };
static const double redraw_seconds = 0.1;

cli_text cli_duration(double seconds) {
    cli_text out;
    const long long s = seconds > 0 ? (long long)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(out.text, sizeof out.text, "%lldh%02lldm", s / 3600, s % 3600 / 60);
    else if (s >= 60)
        snprintf(out.text, sizeof out.text, "%lldm%02llds", s / 60, s % 60);
    else if (seconds >= 10 || seconds <= 0)
        snprintf(out.text, sizeof out.text, "%llds", s);
    else
        snprintf(out.text, sizeof out.text, "%.1fs", seconds);
    return out;
}

cli_text cli_metric(double value) {
    /* Four digits behind the point say too little of what is larger or smaller. */
    const double maximum = 1e6, minimum = 1e-3;
    cli_text out;
    if (value != value)
        snprintf(out.text, sizeof out.text, "nan"); /* whatever sign it has */
    else if (value >= maximum || value <= -maximum)
        snprintf(out.text, sizeof out.text, "%.4g", value);
    else if (value != 0 && value < minimum && value > -minimum)
        snprintf(out.text, sizeof out.text, "%.2e", value);
    else
        snprintf(out.text, sizeof out.text, "%.4f", value);
    return out;
}

int cli_columns(void) {
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return DEFAULT_COLUMNS;
}

/* Open MPI gives its processes a terminal of 0 columns, whatever its own output is. */
static bool has_terminal(void) {
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO)) return false;
    return !getenv("OMPI_COMM_WORLD_SIZE") || (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0);
}

bool cli_has_colors(void) {
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return has_terminal() && !(none && *none) && !(terminal && !strcmp(terminal, "dumb"));
}

/* ---- the line ---- */

enum { STEP, EPOCH, LOSS, RATE, NORM, SCALE, SPEED, LEFT, PARTS };

typedef struct {
    char parts[PARTS][96];
    double share; /* of the run that is done */
} line;

/* "epoch  3/40"; nothing where the run has no epochs, or only one. */
static void describe_epoch(const cli_training *t, const an_step_metrics *m, char *text, size_t capacity) {
    char last[32];
    text[0] = 0;
    if (m->epoch == 0 || t->info.epochs <= 1) return;
    snprintf(last, sizeof last, "%.0f", ceil(t->info.epochs));
    snprintf(text, capacity, "epoch %*lld/%s", (int)strlen(last), (long long)m->epoch, last);
}

static void describe(const cli_progress *p, const cli_training *t, const an_step_metrics *m, line *l) {
    const double elapsed = an_clock_seconds() - p->begin, done = (double)(m->step - p->first);
    const double left = done > 0 ? elapsed / done * (double)(t->info.steps - m->step) : 0;
    const char *unit = t->info.tokens > 1 ? "tokens/s" : "samples/s";
    const double speed = an_folder_speed(t->folder), thousands = 1e4; /* from here on in thousands */
    const int digits = (int)strlen(cli_count(t->info.steps).text);
    snprintf(l->parts[STEP], sizeof l->parts[STEP], "step %*s/%s", digits, cli_count(m->step).text,
             cli_count(t->info.steps).text);
    describe_epoch(t, m, l->parts[EPOCH], sizeof l->parts[EPOCH]);
    if (m->skipped)
        snprintf(l->parts[LOSS], sizeof l->parts[LOSS], "skipped");
    else
        snprintf(l->parts[LOSS], sizeof l->parts[LOSS], "loss %s", cli_metric(m->loss).text);
    snprintf(l->parts[RATE], sizeof l->parts[RATE], "lr %.2e", m->rate);
    if (m->norm == m->norm)
        snprintf(l->parts[NORM], sizeof l->parts[NORM], "norm %.3g", m->norm);
    else
        snprintf(l->parts[NORM], sizeof l->parts[NORM], "norm nan"); /* whatever sign it has */
    l->parts[SCALE][0] = 0;
    if (t->info.precision == AN_DTYPE_F16)
        snprintf(l->parts[SCALE], sizeof l->parts[SCALE], "scale %g, %s skipped", m->scale, cli_count(m->skips).text);
    if (speed >= thousands)
        snprintf(l->parts[SPEED], sizeof l->parts[SPEED], "%sk %s", cli_count((int64_t)(speed / 1000)).text, unit);
    else
        snprintf(l->parts[SPEED], sizeof l->parts[SPEED], "%s %s", cli_count((int64_t)speed).text, unit);
    if (speed <= 0) l->parts[SPEED][0] = 0;
    snprintf(l->parts[LEFT], sizeof l->parts[LEFT], "%s left", cli_duration(left).text);
    l->share = t->info.steps > 0 ? (double)m->step / (double)t->info.steps : 0;
}

/* How wide the bar may be: without one, a narrow line has room for more numbers. */
static int bar_width(int columns) {
    return columns >= WIDE ? BAR : columns >= NARROW ? SHORT_BAR : 0;
}

static void add_bar(double share, int width, char *text, size_t capacity) {
    const int full = (int)(share * width);
    char bar[BAR + 1];
    for (int i = 0; i < width; i++) bar[i] = i < full ? '=' : i == full ? '>' : ' ';
    bar[width] = 0;
    snprintf(text, capacity, "[%s] %3d%%", bar, (int)(100 * share));
}

/* As many parts as fit, behind a bar of that width (0: none); returns the columns that it takes. The last column stays
 * free: some terminals begin a new line after it. */
static int compose(line *l, int columns, int bar, char *text, size_t capacity) {
    static const int dropped[] = {NORM,  RATE,  SPEED, LEFT,
                                  EPOCH, SCALE, LOSS,  STEP}; /* what goes first where there is no room */
    char parts[PARTS + 1][sizeof l->parts[0]];
    size_t used = 0, length = 0;
    parts[0][0] = 0;
    if (bar > 0) add_bar(l->share, bar, parts[0], sizeof parts[0]);
    memcpy(parts[1], l->parts, sizeof l->parts);
    for (int i = 0; i <= PARTS; i++) length += *parts[i] ? strlen(parts[i]) + 2 : 0;
    for (int i = 0; i < PARTS && (int)length - 2 >= columns; i++) {
        char *part = parts[1 + dropped[i]];
        length -= *part ? strlen(part) + 2 : 0;
        *part = 0;
    }
    text[0] = 0;
    for (int i = 0; i <= PARTS; i++)
        if (*parts[i] && used + strlen(parts[i]) + 2 < capacity)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? "  " : "", parts[i]);
    return (int)used;
}

/* ---- drawing ---- */

void cli_progress_begin(cli_progress *progress, const cli_training *training) {
    *progress = (cli_progress){.terminal = has_terminal(),
                               .colors = cli_has_colors(),
                               .begin = an_clock_seconds(),
                               .first = an_trainer_next_step(training->trainer)};
}

double cli_progress_seconds(const cli_progress *progress) {
    return an_clock_seconds() - progress->begin;
}

static void clear_line(cli_progress *p) {
    if (p->shown) printf("\r%*s\r", p->shown, "");
    p->shown = 0;
}

void cli_progress_end(cli_progress *progress) {
    if (progress->shown) putchar('\n');
    progress->shown = 0;
    fflush(stdout);
}

void cli_progress_step(cli_progress *progress, cli_training *training, const an_step_metrics *metrics, bool logged) {
    cli_progress *p = progress;
    line l;
    char text[256];
    const bool draws =
        p->terminal && (an_clock_seconds() - p->drawn >= redraw_seconds || metrics->step == training->info.steps);
    if (!draws && !logged) return;
    describe(p, training, metrics, &l);
    if (logged) {
        compose(&l, (int)sizeof text, 0, text, sizeof text);
        if (!p->terminal) {
            puts(text);
            fflush(stdout);
        }
        an_folder_log(training->folder, text);
    }
    if (!draws) return;
    const int before = p->shown, columns = cli_columns();
    const int bar = bar_width(columns), colored = p->colors && bar ? bar + 2 : 0;
    p->shown = compose(&l, columns, bar, text, sizeof text);
    putchar('\r');
    if (colored) printf("\033[32m%.*s\033[0m", colored, text);
    printf("%s%*s", text + colored, before > p->shown ? before - p->shown : 0, "");
    fflush(stdout);
    p->drawn = an_clock_seconds();
}

/* When an evaluation was: after which step of how many, or at the end of which epoch; then without how
 * many, as 80 columns are few. */
static size_t describe_moment(cli_training *t, int64_t step, char *text, size_t capacity) {
    const int digits = (int)strlen(cli_count(t->info.steps).text);
    char epoch[96] = "";
    an_step_metrics last;
    an_step_metrics_init(&last, sizeof last);
    if (an_trainer_step_metrics(t->trainer, &last) == AN_OK && last.ends_epoch && last.step == step)
        describe_epoch(t, &last, epoch, sizeof epoch);
    if (*epoch) return (size_t)snprintf(text, capacity, "step %*s  %s", digits, cli_count(step).text, epoch);
    return (size_t)snprintf(text, capacity, "step %*s/%s", digits, cli_count(step).text, cli_count(t->info.steps).text);
}

/* Prints parts that two spaces divide, and gives the column behind them. Where the terminal ends the line goes on
 * below, indented: broken between parts, not within one. */
static int print_parts(const char *text, int column, int columns) {
    while (*text) {
        const size_t spaces = strspn(text, " ");
        const char *end = strstr(text + spaces, "  ");
        const int length = (int)(end ? end - text : (ptrdiff_t)strlen(text));
        const bool breaks = column > 0 && column + length > columns;
        printf("%s%.*s", breaks ? "\n  " : "", breaks ? length - (int)spaces : length, text + (breaks ? spaces : 0));
        column = breaks ? 2 + length - (int)spaces : column + length;
        text += length;
    }
    return column;
}

void cli_progress_evaluation(cli_progress *progress, cli_training *training, int64_t step,
                             const an_evaluation *evaluation, bool best) {
    char text[256];
    const char *name;
    size_t used = describe_moment(training, step, text, sizeof text);
    for (int i = 0; (name = an_trainer_metric(training->trainer, i)) && used < sizeof text; i++) {
        double value;
        if (!an_evaluation_metric(evaluation, name, &value)) continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "  %s %s", name, cli_metric(value).text);
    }
    clear_line(progress);
    const int columns = progress->terminal ? cli_columns() : INT_MAX;
    const int column = print_parts(text, 0, columns);
    if (best)
        printf("%s%s%s", column > columns - (int)sizeof "  best" ? "\n  " : "  ", progress->colors ? "\033[32m" : "",
               progress->colors ? "best\033[0m" : "best");
    putchar('\n');
    fflush(stdout);
    if (best && used < sizeof text) snprintf(text + used, sizeof text - used, "  best");
    an_folder_log(training->folder, text);
}
