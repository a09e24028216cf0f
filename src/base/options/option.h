/* An option of a config. docs and messages come from it, and the values of a config go where it says. The options that
 * every config may have stand in config/options.def, and those of a kind with its record (base/options/kind.h). */
#ifndef AN_BASE_OPTIONS_OPTION_H
#define AN_BASE_OPTIONS_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options/kind.h"

typedef enum an_option_kind {
    AN_OPTION_STRING,
    AN_OPTION_INPUT,  /* a file that is read: relative to the config's folder */
    AN_OPTION_INPUTS, /* … or a list of them; a single one stays what it is */
    AN_OPTION_OUTPUT, /* a file or folder that is written: relative to the working directory */
    AN_OPTION_CHOICE,
    AN_OPTION_COUNT,
    AN_OPTION_REAL,
    AN_OPTION_SHARE, /* 5% or 0.05 */
    AN_OPTION_BOOL,
    AN_OPTION_LENGTH,
    AN_OPTION_FIRST_SAMPLES, /* first 10000 samples */
    AN_OPTION_BYTES,
    AN_OPTION_DURATION,
    AN_OPTION_RANGE,
    AN_OPTION_COUNTS, /* lists; a single value is a list of one */
    AN_OPTION_REALS,
    AN_OPTION_NAMED_REALS, /* … or a map from names to numbers */
    AN_OPTION_LENGTHS,
    AN_OPTION_STRINGS,
    AN_OPTION_COUNT_MAP, /* number to number; a single value is that of 0 */
    AN_OPTION_REAL_MAP,
    AN_OPTION_STRING_MAP,
    AN_OPTION_TABLE,
    AN_OPTION_TABLES, /* a list of tables */
    AN_OPTION_KINDS
} an_option_kind;

/* Which names that a program has added to the context an option takes. */
typedef enum an_added_names {
    AN_NAMES_NONE,
    AN_NAMES_OPTIMIZERS,
    AN_NAMES_METRICS,  /* "x" */
    AN_NAMES_REPORTED, /* "val_x", as reports have them, or "x" */
} an_added_names;

/* What it is if a resumed run has another value than its checkpoint. */
typedef enum an_config_change_kind {
    AN_CHANGE_FREE,   /* it is applied, and said */
    AN_CHANGE_BITS,   /* the same training in other bits: the user must ask for it */
    AN_CHANGE_LENGTH, /* the end of the run moves */
    /* another path of data or of a graph: free if what it names is the same, which the caller looks at */
    AN_CHANGE_DATA_PATH,
    AN_CHANGE_FIXED /* it would be another run */
} an_config_change_kind;
#define AN_SAME_FILE "the file may move, but its contents must be the same"

typedef enum an_member_kind {
    AN_MEMBER_BOOL,
    AN_MEMBER_CHARACTER,
    AN_MEMBER_INT, /* also an enum */
    AN_MEMBER_INT64,
    AN_MEMBER_REAL,
    AN_MEMBER_LENGTH,
    AN_MEMBER_TEXT,
    AN_MEMBER_COUNTS, /* an array, and the number of its elements */
    AN_MEMBER_TEXTS
} an_member_kind;

/* A member of a struct that an_config_fill writes a value to. */
typedef struct an_option_member {
    const char *in;   /* the struct's type; NULL ends a list of members */
    const char *name; /* "loss.beta" */
    size_t offset;
    size_t second; /* where the number of elements is, the end of a range, or the second of two numbers */
    an_member_kind kind, second_kind;
    const int *values; /* for each word of a choice, or for off and on; NULL: 0, 1, 2, … */
} an_option_member;

typedef struct an_option {
    const char *path; /* NULL ends a list of options */
    an_option_kind kind;
    const char *of;            /* types that have it; "": all of them */
    const char *default_value; /* NULL: none; AN_OPTION_REQUIRED */
    const char *words;
    double minimum, maximum;
    bool above, below; /* the limits themselves are outside */
    const char *units;
    const char *table; /* the path whose options a table has; NULL: its own */
    const char *help;
    /* names that it takes besides its words, if the program has added such things to the context */
    an_added_names added;
    const char *unsupported; /* choices that nothing obeys yet; "": the whole option; NULL: it is obeyed */
    an_config_change_kind change;
    const char *why; /* … it is that; NULL for tables, whose keys say it */
    /* The reason for fixed options inside of this table, which has the options of another; NULL: theirs. */
    const char *why_inside;
    const an_option_member *members; /* NULL: the code that uses the option reads it */
    an_kind_sort names;              /* its words are the names of these kinds */
    /* Where an option of a kind is listed among those of all kinds of the sort; 0: behind the others. */
    int place;
    /* No option: those of these kinds stand here, as far as they are not listed before, up to a place (0: all). `path`
     * is that of their table. */
    an_kind_sort rows;
    int last_place;
} an_option;
#define AN_OPTION_REQUIRED "!"

#endif
