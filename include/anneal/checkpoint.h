/* Checkpoints: saving and opening a run at the host program's own clock, and looking at what was saved.
 *
 * A checkpoint is everything that a run carries on with: it goes on from it with the same bits as if it had never stopped. Its format is
 * specified in docs/checkpoint-format.md; its tensors can be opened with any reader of safetensors. None of these is collective.
 */
#ifndef ANNEAL_CHECKPOINT_H
#define ANNEAL_CHECKPOINT_H

#include "anneal/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a host program's clock ---- */

/* Saves the run with the caller's own step number, and returns when the checkpoint is durable. AN_ERR_STATE if the run already has a
 * checkpoint of this user step: nothing is written then. All of these checkpoints are kept, or the newest `save.keep_named`. */
AN_API an_status an_trainer_save(an_trainer *trainer, int64_t user_step);
/* The same, and replaces the checkpoint of this user step if there is one. The old one is removed after the new one is durable. A crash in
 * between leaves both, and an_trainer_open_at takes the newer. */
AN_API an_status an_trainer_save_over(an_trainer *trainer, int64_t user_step);
/* Opens the checkpoint that was saved at this user step, or refuses. */
AN_API an_status an_trainer_open_at(an_trainer **trainer, an_context *ctx, const char *file, int64_t user_step);
/* The user step of the last save at one, in this launch or before it; 0: there was none. */
AN_API int64_t an_trainer_user_step(const an_trainer *trainer);
/* Where a run that was made without a config is saved; NULL: nowhere. */
AN_API an_status an_trainer_set_folder(an_trainer *trainer, const char *folder);
/* Takes everything from a checkpoint, into a trainer that has taken no step: for runs that were made without a config. After an
 * error while reading, the trainer takes no step any more. */
AN_API an_status an_trainer_load(an_trainer *trainer, const char *path);

/* The path of the checkpoint that the run resumed from; NULL: the run is new. */
AN_API const char *an_trainer_resumed(const an_trainer *trainer);
/* Notes about the run before its first step, a line each: damaged checkpoints that were skipped, config keys that changed, memory or
 * disk space that may not be enough. "": none. */
AN_API const char *an_trainer_notes(const an_trainer *trainer);
/* Adds lines to them, each with its \n. */
AN_API an_status an_trainer_add_note(an_trainer *trainer, const char *lines);

/* ---- looking at one ---- */

typedef struct an_checkpoint an_checkpoint;

/* A checkpoint's folder; or a run's, whose newest is taken that has a good manifest and all its files; or a file of safetensors, or a
 * folder with model.safetensors or its index. What the files contain is not looked at: an_checkpoint_verify does that. */
AN_API an_status an_checkpoint_open(an_checkpoint **checkpoint, an_context *ctx, const char *path);
AN_API void an_checkpoint_close(an_checkpoint **checkpoint);

typedef struct an_checkpoint_info {
    size_t size;
    const char *path; /* of what was taken */
    bool is_run;      /* the state of a run, and all of these are known; else tensors only */
    int64_t step, steps, generation;
    bool kept;                                     /* the host program named it */
    int64_t user_step;                             /* its time; 0: none */
    const char *isa, *onednn, *anneal, *precision; /* that the run computes with */
    int64_t leaves;
    int64_t tensors, files, bytes; /* bytes of all files but the manifest */
    double loss, rate, norm;       /* of the last step; NaN: there was none */
    double best_value;             /* NaN: there was none */
    int64_t best_step;
    const char *kernels; /* that are not the usual ones, as "attention=reference"; "": none */
    int64_t bits_since;  /* the step after which the run began to compute with these; 0: it always did */
} an_checkpoint_info;
AN_API an_status an_checkpoint_info_get(const an_checkpoint *checkpoint, an_checkpoint_info *info);

/* What a tensor is to its run. */
typedef enum an_saved_role {
    AN_SAVED_WEIGHT = 0,
    AN_SAVED_MOMENT = 1
} an_saved_role; /* weights and running statistics; the optimizer's */

typedef struct an_checkpoint_tensor {
    size_t size;
    const char *name;
    an_saved_role role;
    an_dtype dtype;   /* NONE: one that anneal has not, of which only the bytes can be read */
    const char *type; /* its name in safetensors, "F32" */
    size_t element_bytes;
    int ndims;
    int64_t dims[AN_MAX_DIMS], elements;
    int64_t slices; /* that it is cut into */
} an_checkpoint_tensor;
/* By number, in the order of names; the name lives as long as the checkpoint is open. */
AN_API an_status an_checkpoint_tensor_get(const an_checkpoint *checkpoint, int64_t index, an_checkpoint_tensor *tensor);
AN_API int64_t an_checkpoint_find(const an_checkpoint *checkpoint, const char *name); /* -1: there is none */
/* Elements begin … begin + count - 1, in the type that they have. */
AN_API an_status an_checkpoint_read(const an_checkpoint *checkpoint, int64_t index, int64_t begin, int64_t count,
                                    void *elements);
/* A file of it that is a text: "config.yaml", "graph.ang", "metrics.json", "manifest.json"; held against its hash. Released with an_string_release. */
AN_API an_status an_checkpoint_text(const an_checkpoint *checkpoint, const char *name, char **text);

/* Whether every byte of every file in a checkpoint's folder (of a run's: of all its checkpoints) is as it was written, and there is no other file.
 * AN_ERR_DAMAGED, and the message names the file, where it is not. Of a file of safetensors only its structure can be looked at. */
AN_API an_status an_checkpoint_verify(an_context *ctx, const char *path);

/* Writes the weights into one file of safetensors, by streaming: written beside, synced, renamed. */
AN_API an_status an_checkpoint_export(const an_checkpoint *checkpoint, const char *file);
/* Writes them into FOLDER/model.safetensors, and FOLDER/model.py, the same model for PyTorch, from the graph of the checkpoint. */
AN_API an_status an_checkpoint_export_torch(const an_checkpoint *checkpoint, const char *folder);

#ifdef __cplusplus
}
#endif
#endif
