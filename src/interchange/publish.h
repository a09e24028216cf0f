/* Writing a model for other programs: as a folder of Hugging Face, or as a GGUF file. */
#ifndef AN_INTERCHANGE_PUBLISH_H
#define AN_INTERCHANGE_PUBLISH_H

#include "formats/gguf_write.h"
#include "pretrained/description.h"

typedef struct an_publication {
    an_context *ctx;
    const an_description *description;
    an_weights *weights;       /* under the names and in the layout of the model; writing puts a view in their place */
    const char *from;          /* the published model that it began as, a folder or a GGUF file; NULL: none */
    const char *tokenizer;     /* a folder, a tokenizer.json or a GGUF file; NULL: none */
    const an_gguf_type *type;  /* F32, F16, BF16 or Q8_0 */
    int64_t max_bytes;         /* of weights in a file of a folder */
    const char *const *labels; /* names of the classes; NULL: as `from` has them */
    int64_t label_count;
    bool new_head; /* a run has made a classifier of what was none */
} an_publication;

/* Puts the weights of a model in the place of those of its files, in the order of the graph, which must outlive them:
 * names without the prefix that files have before them, and GPT-2's matrices as [out, in]. Heads for other tasks,
 * which only BERT's files may have, are left out, or come behind. `path` is for messages. */
an_status an_model_weights_view(an_weights *weights, const an_graph *graph, const char *path, bool with_heads);

an_status an_publish_folder(const an_publication *publication, const char *folder);
an_status an_publish_gguf(const an_publication *publication, const char *file);

/* ---- their parts ---- */

/* config.json. What it says is read again, and compared with the description. */
an_status an_publish_config(const an_publication *publication, const char *folder);
/* Files of the tokenizer, and settings of the folder that the model came from. */
an_status an_publish_tokenizer(const an_publication *publication, const char *folder);
/* generation_config.json, unless it was among these. */
an_status an_publish_generation(const an_publication *publication, const char *folder);
/* Copies a file, if there is one. */
an_status an_publish_copy(an_context *ctx, const char *from, const char *name, const char *to);
/* The keys of the tokenizer, and those of a GGUF file that say where the model comes from. */
an_status an_publish_tokenizer_keys(const an_publication *publication, an_gguf_keys *keys);
an_status an_publish_general_keys(const an_publication *publication, const char *file, an_gguf_keys *keys);

#endif
