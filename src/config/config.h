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
#include "base/options/option.h"
#include "base/options/settings.h"
#include "base/text/text.h"

/* ---- nodes ---- */

typedef enum an_config_node_type { AN_CONFIG_SCALAR, AN_CONFIG_LIST, AN_CONFIG_TABLE } an_config_node_type;

/* Where something was written. */
typedef struct an_spot {
    const char *name; /* a file's, or "--set KEY=VALUE" */
    int line, column; /* from 1; 0: none */
} an_spot;

typedef struct an_rename an_rename;

/* Every option: those of options.def, and those of the context's kinds. */
typedef struct an_option_list {
    const an_option *items; /* in the order in which they are listed */
    int count;
} an_option_list;

typedef struct an_config_node {
    an_config_node_type type;
    an_config_origin origin;
    bool quoted;      /* "auto" in quotes is no word */
    const char *key;  /* in a table; NULL in a list */
    const char *text; /* of a scalar */
    an_spot place, key_place;
    const an_option *option; /* once it is resolved; NULL: an entry of a map */
    int count;               /* of children */
    struct an_config_node *first, *last, *next;
} an_config_node;

struct an_config {
    an_context *ctx;
    const an_option_list *options;
    an_arena arena;
    an_arena *texts;           /* the same: what getters make for a caller is no change of the config */
    const char *name, *folder; /* of the file; the folder ends in a slash or is "" */
    const char *working;       /* folder, the same; "" if it is not known */
    an_config_node *given, *root;
    const an_settings *settings; /* of the root */
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

/* Those of options.def, in its order, ended by one without a path. */
extern const an_option an_fixed_options[];
/* That of a context, which is made when it is first asked for and lives as long. */
an_status an_option_list_get(an_context *ctx, const an_option_list **all);

/* The options of a table, which is named by its path, "" for the whole: next after `after`, NULL to begin; NULL at
 * the end. */
const an_option *an_option_next(const an_option_list *all, const char *table, const an_option *after);
/* The option of a key for a type (NULL: the first of any type). */
const an_option *an_option_find(const an_option_list *all, const char *table, const char *key, const char *type);
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

/* Makes the settings of the root, which has changed. Those from before stay as they were. */
an_status an_config_settle(an_config *config);

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
