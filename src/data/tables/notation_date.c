/* Dates, and the numbers that a model gets of them.
 *
 * The days since 1970 say how things change over the years. Sine and cosine of an angle say what comes back every year,
 * every week and every day: with both of them, the last day of December is beside the first of January. */
#include <stdio.h>
#include <string.h>

#include "base/elementary/elementary.h"
#include "base/word.h"
#include "data/tables/notation.h"

enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR, WEEK = 7 };

const int64_t an_date_missing = INT64_MIN;

/* ---- the calendar ---- */

static bool is_leap(int64_t year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days of the year before a month, which counts from 0; the twelfth is the next year. */
static int64_t days_before(int64_t year, int64_t month) {
    static const int16_t days[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    return days[month] + (month >= 2 && is_leap(year));
}

/* Days from the first of January of the year 1 to that of this one. */
static int64_t days_of_years(int64_t year) {
    const int64_t before = year - 1;
    return before * 365 + before / 4 - before / 100 + before / 400;
}

static int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
    return days_of_years(year) - days_of_years(1970) + days_before(year, month - 1) + day - 1;
}

static bool is_date(int64_t year, int64_t month, int64_t day) {
    return year >= 1 && month >= 1 && month <= 12 && day >= 1 &&
           day <= days_before(year, month) - days_before(year, month - 1);
}

/* ---- reading ---- */

typedef struct {
    const char *at, *end;
} span;

/* What stands in a text, whatever it means. */
typedef struct {
    int64_t fields[3];
    size_t digits[3];
    char separator;
    bool has_time, has_zone;
    int64_t seconds; /* of the day, minus the time zone's */
} parts;

static bool take(span *s, char c) {
    const bool there = s->at < s->end && *s->at == c;
    s->at += there;
    return there;
}

/* Up to four digits; gives how many. */
static size_t take_digits(span *s, int64_t *number) {
    enum { MOST = 4 };
    const char *begin = s->at;
    for (*number = 0; s->at < s->end && an_is_digit(*s->at) && s->at - begin < MOST; s->at++)
        *number = *number * 10 + (*s->at - '0');
    return (size_t)(s->at - begin);
}

static bool take_two(span *s, int64_t below, int64_t *number) {
    return take_digits(s, number) == 2 && *number < below;
}

/* hh:mm[:ss[.fraction]]; a fraction of a second is dropped. */
static bool take_time(span *s, int64_t *seconds) {
    int64_t hour, minute, second = 0;
    if (!take_two(s, 24, &hour) || !take(s, ':') || !take_two(s, 60, &minute)) return false;
    if (take(s, ':')) {
        if (!take_two(s, 60, &second)) return false;
        if (take(s, '.'))
            while (s->at < s->end && an_is_digit(*s->at)) s->at++;
    }
    *seconds = hour * HOUR + minute * MINUTE + second;
    return true;
}

/* Z, +hh, +hhmm or +hh:mm. */
static bool take_zone(span *s, int64_t *seconds) {
    int64_t hour, minute = 0;
    *seconds = 0;
    if (take(s, 'Z')) return true;
    const bool west = take(s, '-');
    if (!west && !take(s, '+')) return false;
    const size_t digits = take_digits(s, &hour);
    if (digits == 4) {
        minute = hour % 100;
        hour /= 100;
    } else if (digits != 2 || (take(s, ':') && !take_two(s, 60, &minute))) {
        return false;
    }
    *seconds = (west ? -1 : 1) * (hour * HOUR + minute * MINUTE);
    return hour < 24 && minute < 60;
}

static bool take_parts(const char *text, size_t length, parts *p) {
    span s = {text, text + length};
    int64_t zone = 0;
    *p = (parts){.separator = 0};
    for (int i = 0; i < 3; i++) {
        p->digits[i] = take_digits(&s, &p->fields[i]);
        if (p->digits[i] == 0 || i == 2) continue;
        if (s.at == s.end || !strchr("-/.", *s.at) || (i > 0 && *s.at != p->separator)) return false;
        p->separator = *s.at++;
    }
    if (s.at == s.end) return true;
    p->has_time = true;
    if (!take(&s, 'T') && !take(&s, ' ')) return false;
    if (!take_time(&s, &p->seconds)) return false;
    if (s.at == s.end) return true;
    p->has_zone = true;
    if (!take_zone(&s, &zone)) return false;
    p->seconds -= zone;
    return s.at == s.end;
}

/* ---- styles ---- */

enum { YEAR, MONTH, DAY_OF_MONTH, FIELDS };

static const struct {
    const char *sample;
    char separator;
    uint8_t place[FIELDS]; /* of year, month and day */
} styles[] = {{"YYYY-MM-DD", '-', {0, 1, 2}}, {"YYYY/MM/DD", '/', {0, 1, 2}}, {"YYYY.MM.DD", '.', {0, 1, 2}},
              {"DD.MM.YYYY", '.', {2, 1, 0}}, {"DD/MM/YYYY", '/', {2, 1, 0}}, {"DD-MM-YYYY", '-', {2, 1, 0}},
              {"MM/DD/YYYY", '/', {2, 0, 1}}, {"MM-DD-YYYY", '-', {2, 0, 1}}};
enum { STYLES = sizeof styles / sizeof *styles, DAY_FIRST = 0x38, MONTH_FIRST = 0xc0 /* sets of them */ };

static int64_t field(const parts *p, unsigned style, int which) {
    return p->fields[styles[style].place[which]];
}

static bool fits(const parts *p, unsigned style) {
    enum { YEAR_DIGITS = 4, MOST_DIGITS = 2 };
    const uint8_t *place = styles[style].place;
    return p->separator == styles[style].separator && p->digits[place[YEAR]] == YEAR_DIGITS &&
           p->digits[place[MONTH]] <= MOST_DIGITS && p->digits[place[DAY_OF_MONTH]] <= MOST_DIGITS &&
           p->digits[place[MONTH]] > 0 && p->digits[place[DAY_OF_MONTH]] > 0 &&
           is_date(field(p, style, YEAR), field(p, style, MONTH), field(p, style, DAY_OF_MONTH));
}

uint8_t an_date_styles(const char *text, size_t length, bool *has_time, bool *has_zone) {
    parts p;
    uint8_t found = 0;
    if (!take_parts(text, length, &p)) return 0;
    for (unsigned i = 0; i < STYLES; i++)
        if (fits(&p, i)) found |= (uint8_t)(1U << i);
    *has_time = p.has_time;
    *has_zone = p.has_zone;
    return found;
}

bool an_date_is_unclear(uint8_t found) {
    return (found & DAY_FIRST) && (found & MONTH_FIRST);
}

uint8_t an_date_choose(uint8_t found, an_csv_dates order) {
    const uint8_t asked = (uint8_t)(found & (order == AN_CSV_DATES_MONTH_FIRST ? MONTH_FIRST : DAY_FIRST));
    return (uint8_t)__builtin_ctz(asked ? asked : found);
}

bool an_notation_date(const an_notation *notation, const char *text, size_t length, int64_t *seconds) {
    parts p;
    if (!take_parts(text, length, &p) || !fits(&p, notation->style) || p.has_time != notation->has_time ||
        p.has_zone != notation->has_zone)
        return false;
    *seconds = DAY * days_since_1970(field(&p, notation->style, YEAR), field(&p, notation->style, MONTH),
                                     field(&p, notation->style, DAY_OF_MONTH)) +
               p.seconds;
    return true;
}

/* ---- as text ---- */

void an_date_describe(const an_notation *notation, char *text, size_t capacity) {
    snprintf(text, capacity, "%s%s%s", styles[notation->style].sample, notation->has_time ? " hh:mm" : "",
             notation->has_zone ? " zone" : "");
}

bool an_date_parse(const char *text, an_notation *notation) {
    char described[AN_NOTATION_BYTES];
    for (int style = 0; style < STYLES; style++)
        for (int times = 0; times < 3; times++) {
            *notation = (an_notation){
                .kind = AN_NOTATION_DATE, .style = (uint8_t)style, .has_time = times > 0, .has_zone = times > 1};
            an_date_describe(notation, described, sizeof described);
            if (!strcmp(described, text)) return true;
        }
    return false;
}

/* ---- numbers of a date ---- */

double an_date_days(int64_t seconds) {
    return (double)seconds / DAY;
}

/* The year of a day since 1970, and the day's place in it. */
static int64_t find_year(int64_t days, int64_t *of_year) {
    const int64_t all = days + days_of_years(1970);
    int64_t year = all / 366 + 1; /* or a later one */
    while (days_of_years(year + 1) <= all) year++;
    *of_year = all - days_of_years(year);
    return year;
}

/* The position in something that comes back, from 0 to 1, as a point on a circle. */
static void put_circle(double *numbers, double position) {
    const double turn = 6.283185307179586;
    numbers[0] = an_sin_f64(turn * position);
    numbers[1] = an_cos_f64(turn * position);
}

void an_date_numbers(const an_notation *notation, int64_t seconds, double *numbers) {
    if (seconds == an_date_missing) {
        for (int64_t i = 1; i < an_date_width(notation); i++) numbers[i] = 0;
        return;
    }
    enum { THURSDAY = 3 }; /* 1970-01-01, of a week that begins with Monday */
    const int64_t of_day = (seconds % DAY + DAY) % DAY, days = (seconds - of_day) / DAY;
    int64_t of_year;
    const int64_t year = find_year(days, &of_year);
    put_circle(numbers + 1, (double)of_year / (double)days_before(year, 12));
    put_circle(numbers + 3, (double)(((days + THURSDAY) % WEEK + WEEK) % WEEK) / WEEK);
    if (notation->has_time) put_circle(numbers + 5, (double)of_day / DAY);
}
