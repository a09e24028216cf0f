/* What a file says about its model: the keys of config.json, or those of GGUF, as facts. */
#ifndef AN_PRETRAINED_DESCRIPTION_H
#define AN_PRETRAINED_DESCRIPTION_H

#include "base/text/json.h"
#include "base/text/text.h"
#include "formats/weights.h"
#include "pretrained/family.h"

enum { AN_WORD = 48, AN_MOST_ARCHITECTURES = 8 }; /* bytes of a word */

typedef struct an_stated {
    bool given, assumed; /* by the file; by Hugging Face, where the file has no such key */
    bool is_null;        /* the file says null */
    double number;
    char word[AN_WORD]; /* as the file has it, for messages */
    const char *parent; /* "rope_scaling." or "rope_parameters."; "": the top */
} an_stated;

struct an_description {
    an_context *ctx;
    char *path; /* of config.json or of the GGUF file */
    const an_family *family;
    an_stated values[AN_KEY_ROWS]; /* of config.json */
    an_stated architectures[AN_MOST_ARCHITECTURES];
    int architecture_count;
    int64_t windowed_layers, whole_layers; /* layer_types; both 0: it is absent */
    int64_t labels;                        /* members of id2label */
    an_text problems;                      /* what no model here has, a line each */
    an_text unknown;                       /* keys that nobody here knows and that are not off, as a list */
    struct {
        bool known;
        double value;
    } facts[AN_FACTS];
};

/* Reads config.json. `advice`: what the message about an unknown kind of model ends with. What it has that no model
 * here can do is not an error yet: an_description_check says so. Destroy the description also if this fails. */
an_status an_description_read(an_description *d, an_context *ctx, const char *path, const char *advice);
/* … the keys and tensors of a GGUF file. */
an_status an_description_read_gguf(an_description *d, an_context *ctx, const char *path, const an_weights *weights);
/* What both begin with. */
an_status an_description_begin(an_description *d, an_context *ctx, const char *path);
void an_description_destroy(an_description *d);

/* It belongs to the opened model. */
const an_description *an_pretrained_description(const an_pretrained *pretrained);
/* The same for an export, which states in it what a run has changed. */
an_description *an_pretrained_description_changed(an_pretrained *pretrained);

/* Refuses what no model here can do, by the names of the keys. */
an_status an_description_check(const an_description *d);

/* Reads a value that must be off: null, false, zero, empty. `v->number` is 0 if it is. */
bool an_stated_read_off(an_json *j, an_stated *v);

/* The kind of rotary scaling, as the newer or the older key says it. */
const an_stated *an_description_rope_type(const an_description *d);

/* ---- for families ---- */

/* Gives a key that the file does not have a value. */
void an_description_assume(an_description *d, int row, double number);
void an_description_assume_word(an_description *d, int row, const char *word);
void an_description_state(an_description *d, an_fact fact, double value);
/* Notes a key that may change what the model computes, in a way that nobody here knows. */
void an_description_doubt(an_description *d, const char *parent, const char *key);
/* Notes a value that no model of the family has: "sliding_window: 4, in some layers only". */
void an_description_refuse(an_description *d, const char *parent, const char *key, const char *word, const char *why);

double an_description_fact(const an_description *d, an_fact fact); /* 0: it is unknown */
/* A whole number that must be there. `name` is for the message. */
an_status an_description_count(const an_description *d, an_fact fact, const char *name, int64_t *count);
/* A number above 0. */
an_status an_description_positive(const an_description *d, an_fact fact, const char *name, double *number);
/* Refuses a fact that is known and is another: the builder cannot do it. */
an_status an_description_expect(const an_description *d, an_fact fact, const char *name, double value);
/* Refuses options that only a classifier has. */
an_status an_description_no_classes(const an_description *d, const an_pretrained_options *options);

#endif
