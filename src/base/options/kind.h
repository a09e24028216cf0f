/* Kinds: what a config chooses by the key `type` of a table, such as a type of data or of model. A kind is a record
 * with a name and its own options, and a line in a .def table. A layer that needs more of it puts the record first in
 * one of its own, with functions. A context has a list of each sort (kinds/kinds.c,
 * step/kinds.c), so that the config, which is below those layers, knows names and options. docs/howto/add-a-kind.md
 * shows how to write one. */
#ifndef AN_BASE_OPTIONS_KIND_H
#define AN_BASE_OPTIONS_KIND_H

struct an_context;
struct an_option;

typedef enum an_kind_sort {
    AN_KINDS_NONE,
    AN_KINDS_DATA,      /* data.train.type */
    AN_KINDS_MODEL,     /* model.type */
    AN_KINDS_LAYER,     /* model.layers.type */
    AN_KINDS_OPTIMIZER, /* optimizer.type */
    AN_KINDS_SCHEDULE,  /* schedule.type */
    AN_KIND_SORTS
} an_kind_sort;

/* What samples are. Data gives one of these, or what its parts give (0); a model takes some, or any (0). */
enum { AN_GIVES_NUMBERS = 1, AN_GIVES_TOKENS = 2, AN_GIVES_SENTENCES = 4 };

/* What a kind is, as far as the config must know. */
enum {
    AN_KIND_UNSUPPORTED = 1, /* no config can use it yet */
    AN_KIND_UNNAMED = 2,     /* it stands for kinds that a program adds to the context, by their names */
    AN_KIND_ENDLESS = 4,     /* data without an end, so without epochs */
    AN_KIND_TABLE = 8,       /* data with named columns, in which cells may be empty */
    AN_KIND_MIXTURE = 16,    /* data that consists of other data, which may have any of these */
    AN_KIND_OF_CALLS = 32    /* programs choose it by calls, and no config does */
};

typedef struct an_kind {
    const char *name;
    const struct an_option *options; /* ended by one without a path; NULL: none */
    unsigned samples;                /* that it gives or takes */
    unsigned flags;
} an_kind;

/* NULL: no kind of the context has that name, or `name` is NULL. */
const an_kind *an_kind_find(const struct an_context *ctx, an_kind_sort sort, const char *name);

#endif
