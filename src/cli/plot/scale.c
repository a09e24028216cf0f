/* Scales and their ticks, at round values. */
#include <math.h>
#include <string.h>

#include "cli/plot/plot.h"

double plot_scale_place(const plot_scale *s, double value) {
    const double share = s->is_log ? (log10(value) - log10(s->low)) / (log10(s->high) - log10(s->low))
                                   : (value - s->low) / (s->high - s->low);
    return s->from + share * (s->to - s->from);
}

/* ---- how a value is written ---- */

static const double tiny = 1e-9; /* what logarithms of powers of ten may be off by */

static int power_of(double value) {
    return (int)floor(log10(fabs(value)) + tiny);
}

/* 0.05, 250, 3e-4: with as many digits as values `step` apart need. */
static plot_tick make_tick(double value, double step, double largest) {
    enum { PLAIN_POWER = 6, MOST_DIGITS = 9 }; /* beyond, zeros are hard to count */
    plot_tick tick = {.value = fabs(value) < step / 2 ? 0 : value};
    const int unit = power_of(step);
    if (tick.value == 0) {
        snprintf(tick.text, sizeof tick.text, "0");
    } else if (unit >= -3 && power_of(largest) < PLAIN_POWER) {
        snprintf(tick.text, sizeof tick.text, "%.*f", unit < 0 ? -unit : 0, value);
    } else {
        const int power = power_of(value), digits = power - unit;
        snprintf(tick.text, sizeof tick.text, "%.*f",
                 digits > MOST_DIGITS ? MOST_DIGITS
                 : digits > 0         ? digits
                                      : 0,
                 value / pow(10, power));
        if (strchr(tick.text, '.'))
            for (size_t end = strlen(tick.text); tick.text[end - 1] == '0' || tick.text[end - 1] == '.';) {
                const bool was_point = tick.text[--end] == '.';
                tick.text[end] = 0;
                if (was_point) break;
            }
        const size_t length = strlen(tick.text);
        snprintf(tick.text + length, sizeof tick.text - length, "e%d", power);
    }
    return tick;
}

/* ---- where they are ---- */

/* 1, 2 or 5 times a power of ten, so that the range has at most `parts` of it. */
static double round_step(double range, int parts) {
    static const double steps[] = {1, 2, 5};
    const double minimum = range / parts, unit = pow(10, floor(log10(minimum) + tiny));
    for (int i = 0; i < 3; i++)
        if (steps[i] * unit >= minimum * (1 - tiny)) return steps[i] * unit;
    return 10 * unit;
}

static int linear_ticks(const plot_scale *s, double step, plot_tick ticks[PLOT_MOST_TICKS]) {
    const double first = ceil(s->low / step - tiny), largest = fmax(fabs(s->low), fabs(s->high));
    int count = 0;
    for (; count < PLOT_MOST_TICKS && (first + count) * step <= s->high + step * tiny; count++)
        ticks[count] = make_tick((first + count) * step, step, largest);
    return count;
}

/* Powers of ten, every so many of them; with their multiples where that gives too few. */
static int log_ticks(const plot_scale *s, int parts, plot_tick ticks[PLOT_MOST_TICKS]) {
    static const int multiples[] = {1, 2, 5};
    const int from = power_of(s->low), to = power_of(s->high), every = (to - from) / parts + 1;
    const int multiple_count = (to - from + 1) * 3 <= parts + 3 ? 3 : 1;
    int count = 0;
    for (int power = from; power <= to; power++) {
        if (power % every != 0) continue;
        for (int i = 0; i < multiple_count && count < PLOT_MOST_TICKS; i++) {
            const double unit = pow(10, power), value = multiples[i] * unit;
            if (value >= s->low * (1 - tiny) && value <= s->high * (1 + tiny))
                ticks[count++] = make_tick(value, unit, value);
        }
    }
    return count;
}

int plot_scale_ticks(const plot_scale *s, int parts, plot_tick ticks[PLOT_MOST_TICKS]) {
    enum { TOO_FEW = 2 };
    const int count = s->is_log ? log_ticks(s, parts, ticks) : 0;
    return count > TOO_FEW ? count : linear_ticks(s, round_step(s->high - s->low, parts), ticks);
}

int plot_scale_whole_ticks(const plot_scale *s, int parts, plot_tick ticks[PLOT_MOST_TICKS]) {
    const int count = linear_ticks(s, fmax(1, round_step(s->high - s->low, parts)), ticks);
    for (int i = 0; i < count; i++)
        memcpy(ticks[i].text, cli_count(llround(ticks[i].value)).text, sizeof ticks[i].text);
    return count;
}
