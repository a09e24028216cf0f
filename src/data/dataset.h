/* The internals of datasets. Reads run on several threads at once, so errors are reported in notes. */
#ifndef AN_DATA_DATASET_H
#define AN_DATA_DATASET_H

#include "anneal/data.h"
#include "base/memory.h"
#include "base/note.h"

/* Tokens of a sample: one more, with the token after it, is still a 32-bit number. */
enum { AN_MOST_CONTEXT = INT32_MAX - 1 };

/* ---- vocabularies of text ---- */

typedef struct an_vocabulary {
    int64_t count;
    const uint32_t *points; /* sorted code points; NULL: bytes, which are their own numbers */
} an_vocabulary;

/* ---- datasets ---- */

struct an_dataset {
    an_context *ctx;
    an_arena arena;
    an_dataset_record record;        /* fields and names lie in the arena */
    an_field *fields;                /* the record's */
    size_t *bytes;                   /* of one sample of each field */
    int64_t *checked;                /* of each field: the limit that reads are held against; 0: none */
    const an_vocabulary *vocabulary; /* the source's; NULL: not of text */
    const an_encoding *encoding;     /* the source's; NULL: none */
    const uint64_t *groups;          /* hash of the group of each sample; NULL: they are in none */
    const char *notice;              /* for users, in the source's memory; NULL: none */
    const char *const *class_names;  /* in the source's memory; NULL: classes have no names */
    int64_t class_count;             /* of names */
    const an_class_info
        *class_info; /* of a source that knows its classes without reading samples; NULL: nobody knows */
    /* The class of a sample, of a source that knows it without reading the sample; NULL: it must be
     * read. With the record's user. */
    int32_t (*class_at)(const void *user, int64_t index);
    /* Texts of the samples, of a source that can read them again; NULL: it has none. With the record's user. */
    an_status (*read_cells)(void *user, an_cells *cells);
    int64_t image[3]; /* channels, height and width of flat inputs that are images; 0: they are none */
    bool streams;     /* the program hands its samples over */
};

/* Its samples are those of another dataset, which outlives it: what their numbers mean is the same. */
void an_dataset_inherit(an_dataset *dataset, const an_dataset *source);

/* an_dataset_read for threads: touches no context. */
an_status an_dataset_fetch(const an_dataset *dataset, int64_t n, const int64_t *indices, void *const *fields,
                           an_note note);
/* "train.bin: byte 12", whether or not the record has a `locate`. */
void an_dataset_place(const an_dataset *dataset, int field, int64_t index, int64_t element, an_note place);

/* What the part of a source is: from first to before last, of `count`. */
an_status an_data_part(an_context *ctx, double begin, double end, int64_t count, int64_t *first, int64_t *last);

/* The field of an array whose first dimension is the sample. `flat`: one dimension. `channel`: a matrix gets a channel
 * in front. */
an_field an_array_field(const char *name, an_dtype dtype, int rank, const int64_t *dims, bool flat, bool channel);

#endif
