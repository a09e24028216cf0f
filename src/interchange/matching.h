/* Which tensor of a file goes to which parameter, and what does not fit. */
#ifndef AN_INTERCHANGE_MATCHING_H
#define AN_INTERCHANGE_MATCHING_H

#include "base/text/text.h"
#include "exec/params.h"
#include "formats/conv1d.h"
#include "formats/weights.h"
#include "interchange/renames.h"
#include "pretrained/family.h"

typedef enum {
    AN_MATCHING_MISSING,
    AN_MATCHING_UNEXPECTED,
    AN_MATCHING_SHAPE,
    AN_MATCHING_TYPE,
    AN_MATCHING_TWICE,
    AN_MATCHING_UNKNOWN_TWICE,
    AN_MATCHING_PROBLEMS
} an_matching_problem;
enum { AN_MATCHING_MOST_SHOWN = 20 }; /* of each */

typedef struct an_matching {
    an_context *ctx;
    an_params *params;
    an_weights weights;
    an_renamings names;
    size_t entry_count, slot_count;
    int64_t *tensors; /* of each entry, the number of its tensor + 1; 0: none */
    size_t *slots;    /* a table of entries + 1 by the hash of their name */
    int64_t *others;  /* a table of tensors + 1 that the model does not have, by the hash of their new name */
    size_t other_count;
    bool accepts[AN_MATCHING_PROBLEMS];
    int64_t counts[AN_MATCHING_PROBLEMS];
    struct {
        int64_t tensor, first; /* first: the other tensor of AN_MATCHING_UNKNOWN_TWICE */
        size_t entry;
    } shown[AN_MATCHING_PROBLEMS][AN_MATCHING_MOST_SHOWN];
    int64_t converted;
    bool gpt2;               /* config.json says that the folder is a GPT-2 */
    bool has_conv1d;         /* the model has weights of GPT-2's names */
    const an_family *family; /* of the model, if it is one whose heads may be new; NULL: it is none */
    bool new_heads;          /* a head that the files do not have, or have in another shape, keeps its random values */
    bool other_heads;        /* a head that the model does not have is ignored */
    an_text fresh;           /* the parameters that are new, as a list */
    bool adapter;            /* only what is trained is looked for; otherwise only what is not the adapter's */
    bool transposes;         /* the file has GPT-2's Conv1D weights as [in, out], and the model as [out, in] */
} an_matching;

/* Whether the file has a weight as [in, out], and the model as [out, in]. */
static inline bool an_matching_transposes(const an_matching *m, const an_stored *e) {
    return m->transposes && an_conv1d_has(e->name);
}

an_status an_matching_create(an_matching **matching, an_params *params);
void an_matching_destroy(an_matching **matching);
/* Opens the files. Tensors of a GGUF file get the names that their family has in our models, unless the caller has
 * names of its own for them. */
an_status an_matching_open(an_matching *matching, const char *path, an_model_weights weights, int rename_count,
                           const an_load_rename *renames);
/* … of an adapter in PEFT's format, which must be that of the graph. */
an_status an_matching_open_adapter(an_matching *matching, const an_graph *graph, const char *folder);
/* Finds the tensor of every parameter, and what does not fit. */
an_status an_matching_find(an_matching *matching);
/* Refuses what does not fit and is not accepted, with every problem in the message, or as many as it can hold;
 * `prefix` goes before it. */
an_status an_matching_check(const an_matching *matching, const char *path, const char *prefix);
/* Copies what was found into the store. */
an_status an_matching_load(an_matching *matching);
/* Logs what was new or converted. `adapted`: the model has an adapter. */
void an_matching_tell(const an_matching *matching, const char *path, bool adapted);

#endif
