/* The words in which options are written: in config/options.def, where they are explained, and in the records of kinds:
 *
 *     static const an_option options[] = {OPTION_AT(place, path, kind, default, words, limits, resume, members, help),
 *                                         OPTIONS_END};
 *
 * `place` says where listings have the option: those of all kinds of a sort are sorted by it, and those of 0 come last.
 * Kinds that have one option in common write it with one place and one help, each with its own members: it is listed
 * once. OPTIONS_AT(place, sort, table) has the options of other kinds there, for a table inside. */
#ifndef AN_BASE_OPTIONS_OPTION_ROWS_H
#define AN_BASE_OPTIONS_OPTION_ROWS_H

#include <math.h>

#include "base/options/option.h"
#include "base/options/settings.h"

#define NONE NULL
#define REQUIRED AN_OPTION_REQUIRED

#define ANY .minimum = -(double)INFINITY, .maximum = (double)INFINITY
#define FROM(a) .minimum = (a), .maximum = (double)INFINITY
#define ABOVE(a) .minimum = (a), .above = true, .maximum = (double)INFINITY
#define BETWEEN(a, b) .minimum = (a), .maximum = (b)
#define BELOW(a, b) .minimum = (a), .maximum = (b), .below = true
#define BELOW_ABOVE(a, b) .minimum = (a), .above = true, .maximum = (b), .below = true
#define UNITS(names) ABOVE(0), .units = (names)
#define UNITS_OR_NONE(names) FROM(0), .units = (names)
#define TABLE_OF(name) ANY, .table = (name)
#define ADDED(names, ...) __VA_ARGS__, .added = AN_NAMES_##names
#define KINDS(sort, ...) __VA_ARGS__, .names = AN_KINDS_##sort
#define UNSUPPORTED(...) __VA_ARGS__, .unsupported = ""
#define UNSUPPORTED_WORDS(names, ...) __VA_ARGS__, .unsupported = (names)

/* Reasons that several options have. They end a line "batch.global is 64, was 32: ". */
#define MODEL "it would be a different model"
#define INITIAL "initial weights are loaded at step 0; only a new run can use others"
#define ADAPTER "the adapter that the run has trained depends on it"
#define SAMPLES "the samples would be different"
#define ORDER "the order of the data depends on it"
#define CUT "it fixes the order of sums, so results would no longer be bit-identical"
#define PARTS \
    "micro-batches that are parts of a leaf fix the order of sums, so results would no longer be bit-identical"
#define LOSS "a different loss would be minimised"
#define RATE "it determines the learning rate of every step"
#define UPDATE "the weights and moments so far depend on it"
#define STORE "it decided which samples are stored"
#define NORMAL "it determines how the model's numbers are scaled"
#define COMPARE "earlier evaluations, and the best one, could not be compared with new ones"
#define BEST "the best value so far was chosen by it"
#define WRITTEN "it only changes what is written"
#define SAME_BITS "results do not depend on it"
#define LATER "it only affects the rest of the run"

#define FREE(why_) .change = AN_CHANGE_FREE, .why = (why_)
#define FIXED(why_) .change = AN_CHANGE_FIXED, .why = (why_)
#define NEW_BITS                                                                                               \
    .change = AN_CHANGE_BITS, .why = "the weights would no longer be bit-identical; add --allow-new-bits, or " \
                                     "set run.allow_new_bits to on, to accept that"
#define MOVES_THE_END                                                                                             \
    .change = AN_CHANGE_LENGTH, .why = "the end of the run would move; choose what happens to the schedule with " \
                                       "--extend=keep or --extend=stretch"
#define SAME_FILE .change = AN_CHANGE_DATA_PATH, .why = AN_SAME_FILE
#define GIVEN_OR_NOT(why_, inside_) FREE(why_), .why_inside = (inside_)
#define BY_KEY .why = NULL

#define DERIVED .members = NULL
#define NO_MEMBER .members = NULL

#define STORED_AS(type, member) \
    _Generic(((type *)0)->member,                                                  \
        bool: AN_MEMBER_BOOL,                                                      \
        char: AN_MEMBER_CHARACTER,                                                 \
        int: AN_MEMBER_INT,                                                        \
        unsigned: AN_MEMBER_INT, /* what an enum is */                             \
        int64_t: AN_MEMBER_INT64,                                                  \
        uint64_t: AN_MEMBER_INT64,                                                  \
        double: AN_MEMBER_REAL,                                                    \
        an_length: AN_MEMBER_LENGTH,                                               \
        const char *: AN_MEMBER_TEXT,                                              \
        const int64_t *: AN_MEMBER_COUNTS,                                         \
        const char *const *: AN_MEMBER_TEXTS)
#define MEMBER(type, member) \
    .in = #type, .name = #member, .offset = offsetof(type, member), .kind = STORED_AS(type, member)
#define IN(type, member) \
    { MEMBER(type, member) }
#define AS(type, member, ...)                           \
    {                                                   \
        MEMBER(type, member), .values = (const int[]) { \
            __VA_ARGS__                                 \
        }                                               \
    }
#define LIST(type, member, count) \
    { MEMBER(type, member), .second = offsetof(type, count), .second_kind = STORED_AS(type, count) }
#define RANGE(type, begin, end) \
    { MEMBER(type, begin), .second = offsetof(type, end), .second_kind = STORED_AS(type, end) }
/* In parentheses, so that a macro for an option of several kinds can take it. */
#define INTO(...) .members = ((const an_option_member[]){__VA_ARGS__, {.in = NULL}})

#define OPTION_AT(place_, path_, kind_, default_, words_, limits_, resume_, members_, help_)            \
    {                                                                                                   \
        .path = path_, .place = place_, .kind = AN_OPTION_##kind_, .of = "", .default_value = default_, \
        .words = words_, .help = help_, limits_, resume_, members_                                      \
    }
#define OPTIONS_AT(place_, sort, table_) \
    { .path = table_, .rows = AN_KINDS_##sort, .place = place_ }
#define OPTIONS_END \
    { .path = NULL }

#endif
