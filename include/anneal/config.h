/* The config of a run: YAML, checked against one table of options. Every message gives the place of the mistake and
 * says how to correct it.
 *
 * A config has every key: keys that neither the file nor a setting gives have their defaults. Values are read by path,
 * such as "optimizer.lr" or "optimizer.groups[0].match". docs/reference/options.md lists all keys. None of these
 * functions is collective.
 */
#ifndef ANNEAL_CONFIG_H
#define ANNEAL_CONFIG_H

#include "anneal/data.h"
#include "anneal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

typedef struct an_config an_config;

typedef struct an_config_options {
    size_t size;
    /* file to read if `text` is NULL; otherwise the name of the text in messages. Paths are relative to its folder */
    const char *file;
    const char *text;
    size_t length;
    const char *const *sets; /* "optimizer.lr=1e-3" overrides the file; "run.epochs=" removes a key */
    int set_count;
    /* the text is the config of a checkpoint: a value that no version ever supported is read as the default. In any
     * other config it is refused */
    bool stored;
    uint8_t reserved[3];
} an_config_options;
AN_API void an_config_options_init(an_config_options *options, size_t size);

/* Reads and checks a config. The message of an error in the file begins with FILE:LINE:COLUMN, that of an error in a
 * setting with --set KEY=VALUE. */
AN_API an_status an_config_create(an_config **config, an_context *ctx, const an_config_options *options);
AN_API void an_config_destroy(an_config **config);

/* Adds a setting and checks the whole config again. Pointers from getters are no longer valid. After an error the
 * config is as before. */
AN_API an_status an_config_set(an_config *config, const char *setting);

/* Warnings: valid settings that are probably mistakes, and renamed keys. Each text begins with its place, like an
 * error, and is valid until the next an_config_set. */
AN_API int an_config_warning_count(const an_config *config);
AN_API const char *an_config_warning(const an_config *config, int index);

/* ---- texts ---- Release them with an_string_release. */

/* Prints every key with its value and a comment that says where the value comes from. The text is a valid config. */
AN_API an_status an_config_show(const an_config *config, char **text);
/* Prints the same without comments and with absolute paths, for a run folder. Reading it gives the same config. */
AN_API an_status an_config_write(const an_config *config, char **text);

/* ==== details ==== the rest of the interface */

/* ---- values ---- An unknown path, or a value of another type, is an error. Texts are valid until the next
 * an_config_set. */

typedef enum an_config_origin {
    AN_ORIGIN_NONE = 0, /* the key has no value: it is optional, or it belongs to another type */
    AN_ORIGIN_DEFAULT = 1,
    AN_ORIGIN_FILE = 2,
    AN_ORIGIN_SET = 3,
    AN_ORIGIN_CHECKPOINT = 4, /* not given; the resumed run has it from its checkpoint */
    AN_ORIGIN_LIMIT = 0x7fffffff
} an_config_origin;
AN_API an_config_origin an_config_origin_of(const an_config *config, const char *path);

/* Where a value comes from, for messages: "FILE:LINE:COLUMN", or the name of the config for defaults. */
AN_API const char *an_config_place(const an_config *config, const char *path);

/* Whether a value is this word: "auto", "off", "all", or one of a list of choices. */
AN_API bool an_config_is(const an_config *config, const char *path, const char *word);

/* A value as it was written. */
AN_API an_status an_config_string(const an_config *config, const char *path, const char **text);
/* The path of a file, as the process can open it: relative to the config's folder, or unchanged if --set gave it. */
AN_API an_status an_config_path(const an_config *config, const char *path, const char **file);
AN_API an_status an_config_bool(const an_config *config, const char *path, bool *value);
AN_API an_status an_config_count(const an_config *config, const char *path, int64_t *value); /* also bytes */
AN_API an_status an_config_real(const an_config *config, const char *path, double *value);   /* also shares */
AN_API an_status an_config_seconds(const an_config *config, const char *path, double *value);
AN_API an_status an_config_range(const an_config *config, const char *path, double *begin, double *end); /* of 0 to 1 */

AN_API an_status an_config_length(const an_config *config, const char *path, an_length *length);

/* The number of elements of a list, or of entries of a table or map; 0 for anything else. */
AN_API int an_config_size(const an_config *config, const char *path);
/* The numbers of a list. *count is the number of elements; at most `capacity` of them are written. `values` may be NULL
 * if `capacity` is 0. */
AN_API an_status an_config_reals(const an_config *config, const char *path, int capacity, double *values, int *count);
AN_API an_status an_config_counts(const an_config *config, const char *path, int capacity, int64_t *values, int *count);
AN_API an_status an_config_lengths(const an_config *config, const char *path, int capacity, an_length *values,
                                   int *count);
/* Entry `index` of a map of numbers, in the order of its keys ("schedule.points", "batch.accumulate"). */
AN_API an_status an_config_pair(const an_config *config, const char *path, int index, int64_t *key, double *value);
/* Entry `index` of a map of texts, as it was written ("model.init.rename"). */
AN_API an_status an_config_entry(const an_config *config, const char *path, int index, const char **key,
                                 const char **value);

/* ---- the table of options ---- */

/* The JSON Schema of a config, for editors. */
AN_API an_status an_config_schema(an_context *ctx, char **text);

typedef struct an_config_key {
    size_t size;
    char path[64];             /* "optimizer.lr"; for elements of a list "optimizer.groups[].match" */
    char type[384];            /* "number above 0", "count from 1, or auto", "table" */
    const char *default_value; /* NULL: none */
    const char *of;            /* types that have the key, as in "gpt2|llama"; "": all */
    const char *help;          /* its meaning, and the reason for the default */
    /* NULL: supported; "": not supported yet, so only the default is accepted; otherwise the choices that are not
     * supported yet, as in "array" */
    const char *unsupported;
    bool required;
    uint8_t reserved[7];
} an_config_key;
AN_API void an_config_key_init(an_config_key *key, size_t size);
/* An option by its number; AN_ERR_UNKNOWN after the last. Its texts live as long as the context. */
AN_API an_status an_config_key_get(an_context *ctx, int index, an_config_key *key);

#ifdef __cplusplus
}
#endif
#endif
