/* Checkpoints: saving and opening a run from the host program, and reading what was saved.
 *
 * A checkpoint contains everything that a run continues with: a resumed run ends bit-identical to an uninterrupted one,
 * at the same instruction level and with the same version (docs/bits.md). The format is specified in
 * docs/checkpoint-format.md. Any safetensors reader can open its tensors.
 *
 * an_trainer_save, an_trainer_save_over, an_trainer_load and an_trainer_restart are collective: with several ranks,
 * every rank calls them. The other functions are not.
 */
#ifndef ANNEAL_CHECKPOINT_H
#define ANNEAL_CHECKPOINT_H

#include "anneal/anneal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* ---- saving and resuming ---- an_trainer_save is in anneal.h. */

/* Sets the run folder of a trainer that was created without a config; NULL: none. As with an_trainer_set_saving, the
 * first call that would save there refuses a folder that has the checkpoints of another run. */
AN_API an_status an_trainer_set_folder(an_trainer *trainer, const char *folder);
/* Loads everything from a checkpoint into a trainer that has not taken a step: this is how a run without a config
 * resumes. `path` is a checkpoint folder, or a run folder, whose newest checkpoint with a good manifest and all of its
 * files is taken. The program makes the same model, data and options as before, calls this, and runs:
 *
 *     OK = an_trainer_create(&trainer, graph, training, evaluation, &options) == AN_OK
 *       && an_trainer_set_saving(trainer, &saving) == AN_OK            (saving.folder = "runs/a")
 *       && an_folder_look(ctx, "runs/a", &state) == AN_OK
 *       && (state == AN_FOLDER_EMPTY || an_trainer_load(trainer, "runs/a") == AN_OK)
 *       && an_trainer_run(trainer, NULL, NULL) == AN_OK;
 *
 * A checkpoint of another model, optimizer or number of leaves is refused. Learning rate, data and seed are not
 * compared: they are the program's responsibility. After an error while reading, the trainer takes no more steps.
 * Collective. */
AN_API an_status an_trainer_load(an_trainer *trainer, const char *path);

/* The path of the checkpoint that the run resumed from, which lives as long as the trainer; NULL: the run is new. */
AN_API const char *an_trainer_resumed(const an_trainer *trainer);

/* ---- reading ---- */

typedef struct an_checkpoint an_checkpoint;

/* Opens a checkpoint folder, a run folder (its newest checkpoint with a good manifest and all of its files), a
 * safetensors file, or a folder with model.safetensors or its index. The contents of the files are not checked:
 * an_checkpoint_verify does that. */
AN_API an_status an_checkpoint_open(an_checkpoint **checkpoint, an_context *ctx, const char *path);
AN_API void an_checkpoint_close(an_checkpoint **checkpoint);

typedef struct an_checkpoint_info {
    size_t size;
    const char *path; /* of the checkpoint that was opened */
    int64_t step, steps, generation;
    int64_t user_step;                             /* the host program's step; 0: none */
    const char *isa, *onednn, *anneal, *precision; /* what the run computes with */
    const char *kernels; /* kernels other than the default, as in "attention=portable"; "": none */
    int64_t leaves;
    int64_t tensors, files, bytes; /* bytes of all files except the manifest */
    double loss, rate, norm;       /* of the last step; NaN: there was none */
    double best_value;             /* NaN: there was none */
    int64_t best_step;
    /* the step after which the run began to use this instruction set, oneDNN and kernels; 0: always */
    int64_t bits_since;
    /* the checkpoint whose weights and moments the run began with (AN_RESTART_SCHEDULE); NULL: none */
    const char *origin;
    int64_t origin_step;
    bool is_run;          /* the state of a run; otherwise only tensors, and most of these numbers are unknown */
    bool kept;            /* the host program saved it under its own step number */
    char origin_hash[40]; /* of its manifest, 32 digits; "": none */
    uint8_t reserved[6];
} an_checkpoint_info;
AN_API void an_checkpoint_info_init(an_checkpoint_info *info, size_t size);
AN_API an_status an_checkpoint_info_get(const an_checkpoint *checkpoint, an_checkpoint_info *info);

/* Checks every byte of every file in a checkpoint folder (in a run folder: of all its checkpoints), and that there are
 * no other files. Only the structure of a safetensors file can be checked. AN_ERR_DAMAGED: the message names the
 * file. */
AN_API an_status an_checkpoint_verify(an_context *ctx, const char *path);

/* ---- writing for other programs ---- */

typedef enum an_export_format {
    /* The weights in one safetensors file. */
    AN_EXPORT_SAFETENSORS = 0,
    /* The model that an adapter was trained on, with its changes added, in one safetensors file. Names, types and
     * layout of every tensor are those of the file that the run read the model from. That file must still exist, with
     * the same weights. */
    AN_EXPORT_MERGED = 1,
    /* The adapter of a checkpoint (an_graph_add_lora) in PEFT's format: a folder with adapter_config.json and
     * adapter_model.safetensors. */
    AN_EXPORT_ADAPTER = 2,
    /* A Hugging Face model directory for transformers: config.json, weights in one safetensors file or several, and the
     * files of the tokenizer. The checkpoint may be a run's, or a published model of one of the families of
     * an_pretrained_family. If it has an adapter, the model is merged with it. The folder must not contain a model
     * yet; once it has a config.json, the export is complete. */
    AN_EXPORT_HUGGINGFACE = 3,
    /* The same as a GGUF file for llama.cpp, with its tokenizer. Vectors, norms and position tables are always F32.
     * With q8_0, matrices whose rows are not whole blocks are F16. */
    AN_EXPORT_GGUF = 4,
    /* A folder for PyTorch: the weights in model.safetensors, and the model in model.py. */
    AN_EXPORT_TORCH = 5,
    /* The model and its weights in one ONNX file (opset 17). Above 1 GiB, the weights go to a second file beside it,
     * FILE.data. */
    AN_EXPORT_ONNX = 6,
    AN_EXPORT_LIMIT = 0x7fffffff
} an_export_format;

typedef struct an_export_options {
    size_t size;
    /* For HUGGINGFACE and GGUF: the published model that training began with. Its config.json, its tokenizer and its
     * settings are copied. NULL: the model that an adapter was trained on, or the checkpoint itself if it is a
     * published model; otherwise the graph says what the model is. */
    const char *from;
    /* For HUGGINGFACE and GGUF: the folder, tokenizer.json or GGUF file that has the tokenizer. NULL: as `from`. */
    const char *tokenizer;
    int64_t max_bytes; /* maximum bytes of weights in one file of a folder; 5 GB by default */
    an_export_format format;
    /* Type of the weights, for HUGGINGFACE and GGUF: F32, F16 or BF16, and for GGUF also Q8_0. NONE: F32. The other
     * formats keep the type that the weights have. */
    an_dtype dtype;
    an_model_weights weights; /* AUTO: the moving average if the checkpoint has one */
    uint32_t reserved;
} an_export_options;
AN_API void an_export_options_init(an_export_options *options, size_t size);

/* Writes a checkpoint for other programs, to a file or a folder, as options.format says. The bytes of the checkpoint
 * are checked against their hashes first. A file is written under another name, synced and renamed. AN_ERR_ARGUMENT: an
 * option is set that the format does not use. AN_ERR_STATE: weights is AVERAGE, and the checkpoint has no average.
 * AN_ERR_UNSUPPORTED: the format cannot hold this model. `options` may be NULL. */
AN_API an_status an_checkpoint_export(const an_checkpoint *checkpoint, const char *path,
                                      const an_export_options *options);

/* ==== details ==== the rest of the interface */

/* ---- more about saving and resuming ---- */

/* As an_trainer_save, but replaces the checkpoint of this user step if there is one. The old one is removed after the
 * new one is durable. A crash in between leaves both, and an_open_options.user_step opens the newer one. Collective. */
AN_API an_status an_trainer_save_over(an_trainer *trainer, int64_t user_step);

/* For a run without a config that restarts its schedule (AN_RESTART_SCHEDULE in open.h): loads weights, running
 * statistics, moments and the moving average from a checkpoint (or the newest one of a run folder) into a trainer that
 * has not taken a step, and nothing else. Its steps start again from 0. After an error while reading, the trainer takes
 * no more steps. Collective. */
AN_API an_status an_trainer_restart(an_trainer *trainer, const char *path);

/* The checkpoint whose weights and moments the run began with, as "PATH, after step N, hash H"; NULL: none. */
AN_API const char *an_trainer_origin(const an_trainer *trainer);
/* Notes about the run before its first step, one a line: damaged checkpoints that were skipped, config keys that
 * changed, memory or disk space that may not be enough. "": none. */
AN_API const char *an_trainer_notes(const an_trainer *trainer);
/* Adds lines to the notes. Each ends with \n. */
AN_API an_status an_trainer_add_note(an_trainer *trainer, const char *lines);

/* ---- tensors, texts and keys ---- */

/* The role of a tensor in its run. */
typedef enum an_saved_role {
    AN_SAVED_WEIGHT = 0,  /* weights and running statistics */
    AN_SAVED_MOMENT = 1,  /* of the optimizer */
    AN_SAVED_AVERAGE = 2, /* the moving average of a weight */
    AN_SAVED_LIMIT = 0x7fffffff
} an_saved_role;

typedef struct an_checkpoint_tensor {
    size_t size;
    const char *name; /* lives as long as the checkpoint is open */
    const char *type; /* its type in safetensors, "F32" */
    size_t element_bytes;
    int64_t dims[AN_MAX_DIMS], elements;
    int64_t slices;     /* pieces that it is stored in */
    const char *stored; /* its type in the file: as `type`, or one of GGUF's that is read as F32, "Q4_1" */
    an_saved_role role;
    an_dtype dtype; /* NONE: a type that anneal does not have; an_checkpoint_read gives its bytes */
    int ndims;
    uint32_t reserved;
} an_checkpoint_tensor;
AN_API void an_checkpoint_tensor_init(an_checkpoint_tensor *tensor, size_t size);

/* A tensor by its number, in the order of names. */
AN_API an_status an_checkpoint_tensor_get(const an_checkpoint *checkpoint, int64_t index, an_checkpoint_tensor *tensor);
AN_API int64_t an_checkpoint_find(const an_checkpoint *checkpoint, const char *name); /* -1: not found */
/* Reads elements begin … begin + count - 1 into the caller's memory, in the tensor's type. */
AN_API an_status an_checkpoint_read(const an_checkpoint *checkpoint, int64_t index, int64_t begin, int64_t count,
                                    void *elements);
/* A text file of the checkpoint: "config.yaml", "graph.ang", "metrics.json", "manifest.json". It is checked against its
 * hash. Release the text with an_string_release. */
AN_API an_status an_checkpoint_text(const an_checkpoint *checkpoint, const char *name, char **text);

/* Gives key `index` of a GGUF file and its value, each as a short text for people: truncated, and without control
 * characters. The value of an array is its number of elements. An empty name: there are no more keys, or the file is
 * not a GGUF file. */
enum { AN_KEY_TEXT = 80 };
AN_API an_status an_checkpoint_key(const an_checkpoint *checkpoint, int64_t index, char name[AN_KEY_TEXT],
                                   char value[AN_KEY_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
