#include "base/text/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Names that people type are short. Three edits are as far as a slip goes; fewer for short names, of which three edits
 * would make any other: none for one letter, one for up to four. */
enum { LONGEST = 63, MOST_EDITS = 3, LETTERS_AN_EDIT = 3 };
enum { LEAST_BEGINNING = 3 }; /* letters of a name that was cut short */

void an_nearest_init(an_nearest *nearest, const char *name, size_t length) {
    int edits = (int)((length < LONGEST ? length : LONGEST) + 1) / LETTERS_AN_EDIT;
    *nearest = (an_nearest){.name = name, .length = length, .distance = (edits < MOST_EDITS ? edits : MOST_EDITS) + 1};
}

static int minimum(int a, int b) {
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours between a and b; `limit` stands for that many or more.
 * Only cells within `limit` of the diagonal can stay below it, so a candidate costs length · limit. */
static int edits_between(const char *a, int m, const char *b, int n, int limit) {
    int rows[3][LONGEST + 2] = {{0}}; /* this row, the one before, the one before that, by i mod 3 */
    for (int j = 0; j <= n; j++) rows[0][j] = minimum(j, limit);
    for (int i = 1; i <= m; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        int from = i > limit ? i - limit : 1, to = minimum(n, i + limit);
        row[from - 1] = from == 1 ? minimum(i, limit) : limit;
        int nearest = row[from - 1];
        for (int j = from; j <= to; j++) {
            int cost = minimum(above[j - 1] + (a[i - 1] != b[j - 1]), minimum(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) cost = minimum(cost, second[j - 2] + 1);
            row[j] = minimum(cost, limit);
            nearest = minimum(nearest, cost);
        }
        if (nearest >= limit) return limit; /* rows only grow (a swap adds one too) */
        if (to < n) row[to + 1] = limit;
    }
    return rows[m % 3][n];
}

static void consider_beginning(an_nearest *n, const char *candidate, size_t length) {
    if (n->length < LEAST_BEGINNING || length <= n->length || memcmp(candidate, n->name, n->length) != 0) return;
    if (n->begun && n->begun_length == length && !memcmp(n->begun, candidate, length)) return; /* the same once more */
    if (n->begun_count++ > 0) return;
    n->begun = candidate;
    n->begun_length = length;
}

static void consider_edits(an_nearest *n, const char *candidate, size_t length) {
    const int limit = n->distance, difference = (int)length - (int)n->length;
    if (difference >= limit || difference <= -limit) return;
    const int edits = edits_between(n->name, (int)n->length, candidate, (int)length, limit);
    if (edits >= limit) return;
    n->near = candidate;
    n->near_length = length;
    n->distance = edits;
}

void an_nearest_consider(an_nearest *nearest, const char *candidate, size_t length) {
    if (length > LONGEST || nearest->length > LONGEST) return;
    consider_beginning(nearest, candidate, length);
    consider_edits(nearest, candidate, length);
    const bool begun = nearest->begun_count == 1;
    nearest->best = begun ? nearest->begun : nearest->near;
    nearest->best_length = begun ? nearest->begun_length : nearest->near_length;
}

an_nearest_text an_nearest_describe(const an_nearest *nearest) {
    an_nearest_text text = {""};
    if (nearest->best)
        snprintf(text.text, sizeof text.text, "; did you mean '%.*s'?", (int)nearest->best_length, nearest->best);
    return text;
}
