/* Families of published models. A family is one file with a record, and a line in
 * families.def: what its files are called and what
 * they say, what an absent key means, how its graph is built, and what its tensors are called in GGUF.
 * docs/howto/add-a-model-family.md shows how to write one. */
#ifndef AN_PRETRAINED_FAMILY_H
#define AN_PRETRAINED_FAMILY_H

#include "anneal/pretrained.h"
#include "pretrained/keys.h"

typedef struct an_description an_description;

enum { AN_KEY_UNSTATED = -1 }; /* no default, or one that depends on other keys */

/* A key of config.json that the family has. */
typedef struct an_family_key {
    int row;            /* of an_key_rows */
    double usual;       /* what Hugging Face takes where the key is absent */
    const char *option; /* of our config; NULL: it has none */
} an_family_key;
#define AN_FAMILY_KEYS_END \
    { -1, 0, NULL }

/* The layer of a tensor, without ".weight" or ".bias". "blk.#." is every block. */
typedef struct an_family_name {
    const char *gguf, *ours; /* ours NULL: the tensor is no weight of the model */
    bool turns; /* rows of a head are pairs in the file, (0, h/2), (1, h/2 + 1) …, and halves in the model */
} an_family_name;
#define AN_FAMILY_NAMES_END \
    { NULL, NULL, false }

/* Layers that lie in one tensor of the files, one behind the other. Names are patterns as those above. */
typedef struct an_family_joint {
    const char *tensor, *layers[3]; /* NULL after the last */
} an_family_joint;
#define AN_FAMILY_JOINTS_END \
    {                        \
        NULL, {              \
            NULL             \
        }                    \
    }

typedef struct an_family {
    const char *name; /* model_type of config.json */
    const char *gguf; /* general.architecture; NULL: GGUF has no name of its own for it */
    const char *type; /* model.type of a config that describes such a model by its sizes; NULL: there is none */
    const char *architectures[8]; /* of config.json */
    const an_family_key *keys;
    const an_family_name *names;
    const an_family_joint *joints; /* NULL: every layer has a tensor of its own */
    /* The table of tokens, which every model of the family has and no other model but those of relatives; and whether a
     * model with this table, of which these facts are known and not 0, is of this family. NULL: if no relative's is. */
    const char *table;
    bool (*fits)(const bool has[AN_FACTS]);
    /* A parameter that every model of the family has, and what the names of its heads begin with. A folder may
     * lack a head of the model, or have one for another task. NULL: models of the family have one head,
     * which the folder must have. */
    const char *body, *heads[4];
    /* Settles what keys together mean, after the usual values are there: absent ones, and facts that no key states. */
    void (*settle)(an_description *d);
    an_status (*look)(an_description *d,
                      const char *folder); /* at other files than config.json; NULL: there are none */
    an_status (*build)(an_graph **graph, const an_description *d, const an_pretrained_options *options);
    /* What is written. config.json has the keys of the family whose facts are known, with the first of its
     * architectures. */
    const char *prefix; /* before the names of its parameters in safetensors; NULL: nothing */
    bool (*prefixed)(const an_description *d, const char *name); /* whether this parameter has it; NULL: all have */
    const char *classifier; /* of its architectures, that which tells classes apart; NULL: none does */
    const char *gguf_as; /* general.architecture, where `gguf` is NULL; NULL there too: it cannot be written as GGUF */
} an_family;

#define AN_FAMILY(name) extern const an_family an_family_##name;
#include "pretrained/families.def"
#undef AN_FAMILY

const an_family *an_family_at(int index);                /* NULL after the last */
const an_family *an_family_find(const char *model_type); /* NULL: none */
const an_family *an_family_find_gguf(const char *name, size_t length);
bool an_family_has(const an_family *family, const char *architecture);
const an_family_key *an_family_key_of(const an_family *family, int row); /* NULL: the family does not have it */
/* The family of a model that was trained here, by its parameters and facts; NULL: none. */
const an_family *an_family_of_model(const an_graph *graph, const bool has[AN_FACTS]);
/* The family whose `body` the parameter is; NULL: none. */
const an_family *an_family_of_body(const char *parameter);
/* Whether a parameter or a tensor is of one of the family's heads. */
bool an_family_is_head(const an_family *family, const char *name);
/* "gpt2, llama and qwen2" */
const char *an_family_list(char *text, size_t size, bool gguf);

#endif
