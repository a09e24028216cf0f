/* The config of a run: YAML, checked against one table of options. Every message has the place of the mistake and how
 * to correct it.
 *
 * A config has every key: keys that the file and the settings leave out have their defaults. Values are read by path,
 * such as "optimizer.lr" or "optimizer.groups[0].match". docs/reference/options.md lists them all. None of these
 * functions is collective.
 */
#ifndef ANNEAL_CONFIG_H
#define ANNEAL_CONFIG_H

#include "anneal/data.h"
#include "anneal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct an_config an_config;

typedef struct an_config_options {
    size_t size;
    /* read if `text` is NULL; otherwise the name of the text in messages. Paths are relative to its folder */
    const char *file;
    const char *text;
    size_t length;
    const char *const *sets; /* "optimizer.lr=1e-3" overrides the file; "run.epochs=" removes a key */
    int set_count;
    /* The text is the config of a checkpoint. A value that no version has ever obeyed is read as the default; in any
     * other config it is refused. */
    bool stored;
    uint8_t reserved[3];
} an_config_options;
AN_API void an_config_options_init(an_config_options *options, size_t size);

/* Reads and checks a config. A message about the file begins with FILE:LINE:COLUMN, one about a
 * setting with --set KEY=VALUE. */
AN_API an_status an_config_create(an_config **config, an_context *ctx, const an_config_options *options);
AN_API void an_config_destroy(an_config **config);

/* Adds a setting and checks the whole config again. After an error the config is as before. Pointers from
 * getters are no longer valid. */
AN_API an_status an_config_set(an_config *config, const char *setting);

/* Valid settings that are probably mistakes, and renamed keys. Each text begins with its place, like an error. */
AN_API int an_config_warning_count(const an_config *config);
AN_API const char *an_config_warning(const an_config *config, int index);

/* ---- values ---- An unknown path, or a value of another type, is an error. Texts live as long as the config. */

typedef enum an_config_origin {
    AN_ORIGIN_NONE = 0, /* the key has no value: it is optional, or it belongs to another type */
    AN_ORIGIN_DEFAULT = 1,
    AN_ORIGIN_FILE = 2,
    AN_ORIGIN_SET = 3,
    AN_ORIGIN_CHECKPOINT = 4, /* not given; the resumed run has it from its checkpoint */
    AN_ORIGIN_LIMIT = 0x7fffffff
} an_config_origin;
AN_API an_config_origin an_config_origin_of(const an_config *config, const char *path);

/* "FILE:LINE:COLUMN" of a value, for messages; the name of the config for defaults. */
AN_API const char *an_config_place(const an_config *config, const char *path);

/* Whether a value is this word: "auto", "off", "all", or one of a list of choices. */
AN_API bool an_config_is(const an_config *config, const char *path, const char *word);

AN_API an_status an_config_string(const an_config *config, const char *path, const char **text); /* as it was written */
/* A file's path as the process can open it: relative to the config's folder, or as it is if --set gave it. */
AN_API an_status an_config_path(const an_config *config, const char *path, const char **file);
AN_API an_status an_config_bool(const an_config *config, const char *path, bool *value);
AN_API an_status an_config_count(const an_config *config, const char *path, int64_t *value); /* also bytes */
AN_API an_status an_config_real(const an_config *config, const char *path, double *value);   /* also shares */
AN_API an_status an_config_seconds(const an_config *config, const char *path, double *value);
AN_API an_status an_config_range(const an_config *config, const char *path, double *begin, double *end); /* of 0 to 1 */

AN_API an_status an_config_length(const an_config *config, const char *path, an_length *length);

/* The number of elements of a list, or of entries of a table or map; 0 for anything else. */
AN_API int an_config_size(const an_config *config, const char *path);
/* The numbers of a list, at most `capacity` of them; `count` is how many there are. `values` may be
 * NULL if `capacity` is 0. */
AN_API an_status an_config_reals(const an_config *config, const char *path, int capacity, double *values, int *count);
AN_API an_status an_config_counts(const an_config *config, const char *path, int capacity, int64_t *values, int *count);
AN_API an_status an_config_lengths(const an_config *config, const char *path, int capacity, an_length *values,
                                   int *count);
/* Entry `index` of a map of numbers, in the order of its keys ("schedule.points", "batch.accumulate"). */
AN_API an_status an_config_pair(const an_config *config, const char *path, int index, int64_t *key, double *value);
/* Entry `index` of a map of texts, as it was written ("model.init.rename"). */
AN_API an_status an_config_entry(const an_config *config, const char *path, int index, const char **key,
                                 const char **value);

/* ---- texts ---- Released with an_string_release. */

/* Every key with its value and a comment that says where the value comes from. The text is a valid config. */
AN_API an_status an_config_show(const an_config *config, char **text);
/* The same without comments and with absolute paths, for a run folder. Reading it gives the same config. */
AN_API an_status an_config_write(const an_config *config, char **text);
/* JSON Schema, for editors. */
AN_API an_status an_config_schema(an_context *ctx, char **text);

/* ---- the table of options ---- */

typedef struct an_config_key {
    size_t size;
    char path[64];             /* "optimizer.lr"; for elements of a list "optimizer.groups[].match" */
    char type[384];            /* "number above 0", "count from 1, or auto", "table" */
    const char *default_value; /* NULL: none */
    const char *of;            /* types that have it, as in "gpt2|llama"; "": all */
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
