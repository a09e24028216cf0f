/* The config of a run: YAML, checked against one table of options, with the place and the remedy in every message.
 *
 * A config has every key: what the file and the settings leave out has its default. Values are asked for by their path, as
 * in "optimizer.lr" or "optimizer.groups[0].match". docs/reference/options.md lists them all. None of these is collective.
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
    const char *file; /* read if `text` is NULL; else the name of the text in messages, and its folder that of paths */
    const char *text;
    size_t length;
    int set_count;
    const char *const *sets; /* "optimizer.lr=1e-3": over what the file says; "run.epochs=" takes a key out */
    /* The text is the config of a checkpoint. A value in it that no version has obeyed is read as the default, where it is
     * refused in any other config. */
    bool stored;
} an_config_options;

/* Reads and checks. A message about the file begins with FILE:LINE:COLUMN, one about a setting with --set KEY=VALUE. */
AN_API an_status an_config_create(an_config **config, an_context *ctx, const an_config_options *options);
AN_API void an_config_destroy(an_config **config);

/* One more setting. The whole is checked again; on error the config is as before. What getters gave is no longer valid. */
AN_API an_status an_config_set(an_config *config, const char *setting);

/* Things that are allowed and hardly meant; also renamed keys. They begin with their place like errors. */
AN_API int an_config_warning_count(const an_config *config);
AN_API const char *an_config_warning(const an_config *config, int index);

/* ---- values ---- A path that no option has, or a value of another kind, is an error. Texts live as long as the config. */

typedef enum an_config_origin {
    AN_ORIGIN_NONE = 0, /* the key has no value: it is optional, or belongs to another type */
    AN_ORIGIN_DEFAULT = 1,
    AN_ORIGIN_FILE = 2,
    AN_ORIGIN_SET = 3,
    AN_ORIGIN_CHECKPOINT = 4 /* it was not given, and the run that carries on has it from its checkpoint */
} an_config_origin;
AN_API an_config_origin an_config_origin_of(const an_config *config, const char *path);

/* "FILE:LINE:COLUMN" of a value, to begin a message with; the name of the config for defaults. */
AN_API const char *an_config_place(an_config *config, const char *path);

/* Whether a value is this word: "auto", "off", "all", one of a list of choices. */
AN_API bool an_config_is(const an_config *config, const char *path, const char *word);

AN_API an_status an_config_string(an_config *config, const char *path, const char **text); /* as it was written */
/* A file's path as the process can open it: relative to the config's folder, or as it is if --set gave it. */
AN_API an_status an_config_path(an_config *config, const char *path, const char **file);
AN_API an_status an_config_bool(an_config *config, const char *path, bool *value);
AN_API an_status an_config_count(an_config *config, const char *path, int64_t *value); /* also bytes */
AN_API an_status an_config_real(an_config *config, const char *path, double *value);   /* also shares */
AN_API an_status an_config_seconds(an_config *config, const char *path, double *value);
AN_API an_status an_config_range(an_config *config, const char *path, double *begin, double *end); /* of 0 to 1 */

AN_API an_status an_config_length(an_config *config, const char *path, an_length *length);

/* How many elements a list has, or entries a table or map; 0 for anything else. */
AN_API int an_config_size(const an_config *config, const char *path);
/* Numbers of a list, at most `capacity` of them; `count` is how many there are. `values` may be NULL if `capacity` is 0. */
AN_API an_status an_config_reals(an_config *config, const char *path, int capacity, double *values, int *count);
AN_API an_status an_config_counts(an_config *config, const char *path, int capacity, int64_t *values, int *count);
AN_API an_status an_config_lengths(an_config *config, const char *path, int capacity, an_length *values, int *count);
/* Entry `index` of a map of numbers, in the order of its keys ("schedule.points", "batch.accumulate"). */
AN_API an_status an_config_pair(an_config *config, const char *path, int index, int64_t *key, double *value);
/* Entry `index` of a map of texts, as it was written ("model.init.rename"). */
AN_API an_status an_config_entry(an_config *config, const char *path, int index, const char **key, const char **value);

/* ---- texts ---- Released with an_string_release. */

/* Every key with its value, and beside it where that is from. It is a config too. */
AN_API an_status an_config_show(const an_config *config, char **text);
/* The same without remarks, files by their whole path: for a run's folder. Read again, it gives the same. */
AN_API an_status an_config_write(const an_config *config, char **text);
/* JSON Schema, for editors. */
AN_API an_status an_config_schema(an_context *ctx, char **text);

/* ---- the table of options ---- */

typedef struct an_config_key {
    size_t size;
    char path[64];             /* "optimizer.lr"; of the elements of a list "optimizer.groups[].match" */
    char type[384];            /* "number above 0", "count from 1, or auto", "table" */
    const char *default_value; /* NULL: none */
    const char *of;            /* types that have it, as in "gpt2|llama"; "": all */
    const char *help;          /* what it is, and why the default is what it is */
    bool required;
    const char *unsupported; /* NULL: it is supported; "": not yet, so only its default is accepted; else the choices
                                that are not supported yet, as in "rollback" */
} an_config_key;
/* Every option by its number; AN_ERR_UNKNOWN after the last. `ctx` may be NULL. */
AN_API an_status an_config_key_get(an_context *ctx, int index, an_config_key *key);

#ifdef __cplusplus
}
#endif
#endif
