/* The parts of a config: nodes with places (yaml.c), the table of options (options.c), values with units (values.c),
 * settings and defaults (resolve.c), contradictions (check.c).
 *
 * A config keeps two trees: what was given, and the complete one, in which every table has the order of the options
 * and every key has a value. A setting changes a copy of the first tree and computes the second one again.
 */
#ifndef AN_CONFIG_CONFIG_H
#define AN_CONFIG_CONFIG_H

#include "anneal/config.h"
#include "base/memory.h"
#include "base/text/text.h"

/* ---- nodes ---- */

typedef enum an_config_node_type { AN_CONFIG_SCALAR, AN_CONFIG_LIST, AN_CONFIG_TABLE } an_config_node_type;

/* Where something was written. */
typedef struct an_spot {
    const char *name; /* a file's, or "--set KEY=VALUE" */
    int line, column; /* from 1; 0: none */
} an_spot;

struct an_option;
typedef struct an_rename an_rename;

typedef struct an_config_node {
    an_config_node_type type;
    an_config_origin origin;
    bool quoted;      /* "auto" in quotes is no word */
    const char *key;  /* in a table; NULL in a list */
    const char *text; /* of a scalar */
    an_spot place, key_place;
    const struct an_option *option; /* once it is resolved; NULL: an entry of a map */
    int count;                      /* of children */
    struct an_config_node *first, *last, *next;
} an_config_node;

struct an_config {
    an_context *ctx;
    an_arena arena;
    an_arena *texts;           /* the same: what getters make for a caller is no change of the config */
    const char *name, *folder; /* of the file; the folder ends in a slash or is "" */
    const char *working;       /* folder, the same; "" if it is not known */
    an_config_node *given, *root;
    const char **warnings;
    size_t warning_count, warning_capacity;
    const an_rename *renames;
    bool stored; /* the config of a checkpoint */
    bool piped;  /* it has no folder: paths in it are relative to the working directory */
};

/* Reads YAML into nodes of the config's arena. Refuses aliases, anchors, tags, keys that stand twice, several
 * documents, and what is too deep or too large. */
an_status an_config_parse(an_config *config, const char *name, const char *text, size_t length, an_config_origin origin,
                          an_config_node **root);
/* Reads a file or a pipe whole. The caller releases `capacity` bytes, whatever this returns; both begin with NULL
 * and 0. */
an_status an_config_read_file(an_context *ctx, const char *name, char **text, size_t *capacity, size_t *length);
enum { AN_CONFIG_MOST_BYTES = 1 << 20, AN_CONFIG_MOST_NODES = 10000, AN_CONFIG_MOST_DEPTH = 24 };

an_status an_config_node_create(an_config *config, an_config_node **node, an_config_node_type type,
                                an_config_origin origin, an_spot place);
void an_config_node_add(an_config_node *parent, an_config_node *child);
an_config_node *an_config_node_find(const an_config_node *table, const char *key);
an_status an_config_node_copy(an_config *config, an_config_node **copy, const an_config_node *node);
bool an_config_node_is(const an_config_node *node, const char *word); /* a scalar, not in quotes */

/* The node at a path of the made tree, such as "optimizer.groups[0].match"; NULL: there is none. */
an_config_node *an_config_find(const an_config *config, const char *path);

/* ---- messages ---- */

typedef struct an_spot_text {
    char text[256];
} an_spot_text;
an_spot_text an_spot_describe(an_spot place); /* "a.yaml:3:14" */
#define AN_SPOT(place) (an_spot_describe(place).text)

an_status an_config_warn(an_config *config, an_spot place, const char *format, ...) AN_PRINTF(3, 4);

/* ---- options ---- */

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
    AN_MEMBER_TEXT,
    AN_MEMBER_COUNTS, /* an array, and the number of its elements */
    AN_MEMBER_TEXTS
} an_member_kind;

/* A member of a struct that an_config_fill writes a value to. */
typedef struct an_option_member {
    const char *in; /* the struct's type; NULL ends a list of members */
    size_t offset;
    size_t second; /* where the number of elements is, or the end of a range */
    an_member_kind kind, second_kind;
    const int *values; /* for each word of a choice, or for off and on; NULL: 0, 1, 2, … */
} an_option_member;

typedef struct an_option {
    const char *path;
    an_option_kind kind;
    const char *of;
    const char *default_value; /* NULL: none; AN_OPTION_REQUIRED */
    const char *words;
    double least, most;
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
} an_option;
#define AN_OPTION_REQUIRED "!"

extern const an_option an_options[]; /* in the order of options.def */
extern const int an_option_count;

/* The options of a table, which is named by its path, "" for the whole: next after `after`, NULL to begin; NULL at
 * the end. */
const an_option *an_option_next(const char *table, const an_option *after);
/* The option of a key for a type (NULL: the first of any type). */
const an_option *an_option_find(const char *table, const char *key, const char *type);
const char *an_option_key(const an_option *option);     /* the last part of its path */
const char *an_option_table(const an_option *option);   /* whose options a table or the tables of a list have */
const char *an_option_default(const an_option *option); /* NULL: none */
bool an_option_is_required(const an_option *option);
/* Of files that are read; of any files. */
static inline bool an_option_is_input(const an_option *option) {
    return option->kind == AN_OPTION_INPUT || option->kind == AN_OPTION_INPUTS;
}
static inline bool an_option_is_path(const an_option *option) {
    return an_option_is_input(option) || option->kind == AN_OPTION_OUTPUT;
}
bool an_option_is_of(const an_option *option, const char *type);

/* Words of a list such as "auto|off". */
bool an_words_have(const char *words, const char *word);
/* A path, and not a word such as auto in place of one. */
static inline bool an_config_node_is_path(const an_config_node *node) {
    return node->option && an_option_is_path(node->option) &&
           (node->quoted || !an_words_have(node->option->words, node->text));
}
typedef struct an_words_text {
    char text[256];
} an_words_text;
an_words_text an_words_describe(const char *words, const char *last); /* "auto, f32 or bf16"; last: " or " */
#define AN_WORDS(words) (an_words_describe((words), " or ").text)

/* Its words without those that nothing obeys yet. */
an_words_text an_option_words(const an_option *option);
/* Whether a value is the name of something that the program has added. */
bool an_option_is_added(const an_config *config, const an_option *option, const char *name);
/* The type whose options a table has: AN_OWN_TYPE for one that the program has added. */
#define AN_OWN_TYPE "own"

/* "a number above 0", and with words "off, or a number above 0". */
typedef struct an_wants_text {
    char text[384];
} an_wants_text;
an_wants_text an_option_wants(const an_option *option);

/* Keys that had another name until some version: accepted for two minor versions with a warning. */
struct an_rename {
    const char *old_path, *new_key; /* "optimizer.learning_rate", "lr"; a NULL path ends the list */
    const char *version;            /* that renamed it */
};
extern const an_rename an_renames[];
/* As an_config_create, with a list of its own. */
an_status an_config_create_renamed(an_config **config, an_context *ctx, const an_config_options *options,
                                   const an_rename *renames);

/* ---- values ---- True: the text is such a value. Numbers do not depend on the locale. */

bool an_read_real(const char *text, double *value);
bool an_read_count(const char *text, int64_t *value); /* 12, 50k, 1.5M, 1e6 */
bool an_read_share(const char *text, double *value);
bool an_read_bool(const char *text, bool *value);
bool an_read_bytes(const char *text, int64_t *value);
bool an_read_seconds(const char *text, double *value);
bool an_read_range(const char *text, double *begin, double *end);
/* Units by name, "steps|epochs"; the first is that of a bare number. */
bool an_read_length(const char *text, const char *units, an_length *length);
bool an_read_first_samples(const char *text, int64_t *value);
const char *an_length_unit_name(an_length_unit unit); /* "steps", "share" */

/* Whether two texts are the same value of an option: 1M and 1000000 are. */
bool an_option_same(const an_option *option, const char *a, const char *b);

/* Whether a scalar is a value of the option that something obeys, within its limits; the reason goes to the context. */
an_status an_option_check(an_config *config, const an_option *option, const an_config_node *node, const char *path);

/* ---- filling structs ---- */

/* Writes the values below a path ("" for all, "data.train") to those members of a struct that options.def names. A word
 * in the place of a value, such as auto, leaves its member as it is. Lists live as long as the config. */
an_status an_config_fill_in(const an_config *config, const char *path, const char *type, void *members);
#define an_config_fill(config, path, type, members) \
    an_config_fill_in((config), (path), #type, (1 ? (members) : (type *)0))

/* ---- making it whole ---- */

/* Puts a setting into the given tree. */
an_status an_config_merge(an_config *config, an_config_node *given, const char *setting);
/* Puts a scalar into a table or list of its own, in its place; takes a child out. */
an_status an_config_node_wrap(an_config *config, an_config_node *node, an_config_node_type type, const char *key);
void an_config_node_take_out(an_config_node *table, const an_config_node *child);
/* A table where a single value may stand for the first key of the table's options, and nothing for none of them. */
an_status an_config_make_table(an_config *config, an_config_node *node, const char *table, const char *path);
/* What became of an old name; NULL: the key is none. */
const an_rename *an_config_find_rename(const an_config *config, const char *table, const char *key);
/* The sentence for a key that a table does not have, with the nearest right one. */
an_status an_config_unknown_key(an_config *config, an_spot place, const char *table, const char *path, const char *key);
/* Errors for keys and values of other tools that have another name here, or no counterpart; AN_OK for all others.
 * `path` is the whole name of the key. */
an_status an_config_other_key(an_config *config, an_spot place, const char *path, const char *key);
an_status an_config_other_value(an_config *config, const an_option *option, const an_config_node *node,
                                const char *path);
/* Checks the copy of a given tree against the options, in place, and fills in defaults. */
an_status an_config_resolve(an_config *config, an_config_node *root);
/* What contradicts what; adds warnings. Works on config->root. */
an_status an_config_check(an_config *config);
an_status an_config_check_lora(an_config *config);
an_status an_config_check_lengths(an_config *config); /* its last part: warnings about lengths beyond the run's */

#endif
