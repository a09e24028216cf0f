/* Options that several types of data have, each with members of its own. */
#ifndef AN_KINDS_DATA_ROWS_H
#define AN_KINDS_DATA_ROWS_H

#include "base/options/option_rows.h"

#define PATH_OPTION(members)                                                                                           \
    OPTION_AT(                                                                                                         \
        20, "data.train.path", INPUT, REQUIRED, "", ANY, SAME_FILE, members,                                           \
        "path of the file, relative to the config's folder; for megatron, without .bin; for images, of a folder with " \
        "one folder of PNG and JPEG files for each class")

#define LABELS_OPTION(members)                                                                                   \
    OPTION_AT(30, "data.train.labels", INPUT, NONE, "", ANY, SAME_FILE, members,                                 \
              "path of the IDX or .npy file with the targets; for npy, targets may also be in the .npz file of " \
              "data.train.path")

#define FLAT_OPTION(members)                                                             \
    OPTION_AT(40, "data.train.flat", BOOL, "auto", "auto", ANY, FIXED(SAMPLES), members, \
              "images as flat rows of numbers; auto is on for models of type mlp")

#define SCALED_OPTION(members)                                                       \
    OPTION_AT(50, "data.train.scaled", BOOL, "on", "", ANY, FIXED(SAMPLES), members, \
              "bytes divided by 255; on, because models train better on small numbers")

#define DTYPE_OPTION(members)                                                                  \
    OPTION_AT(220, "data.train.dtype", CHOICE, "f32", "f32|f64", ANY, FIXED(SAMPLES), members, \
              "number type of the samples; with f64 and train.precision auto, the model is f64 too")

#define CONTEXT_OPTION                                                                            \
    OPTION_AT(250, "data.train.context", COUNT, "auto", "auto", FROM(2), FIXED(SAMPLES), DERIVED, \
              "tokens from the start of one sample to the start of the next; auto is the model's context")

#define DOCUMENTS_OPTION(members)                                                                      \
    OPTION_AT(260, "data.train.documents", CHOICE, "join", "join|apart", ANY, FIXED(SAMPLES), members, \
              "whether attention crosses document boundaries (join) or not (apart); join, as GPT-2 was trained")

#define BORDER_TARGETS_OPTION                                                           \
    OPTION_AT(                                                                          \
        270, "data.train.border_targets", BOOL, "on", "", ANY, FIXED(SAMPLES), DERIVED, \
        "last token of a document is trained to predict the first token of the next one; on, as GPT-2 was trained")

#define TOKENIZER_OPTION                                                                        \
    OPTION_AT(290, "data.train.tokenizer", INPUT, "auto", "auto", ANY, FIXED(SAMPLES), DERIVED, \
              "tokenizer.json, or a folder with it; auto is the folder of model.init.from")

#define TEMPLATE_OPTION                                                                                            \
    OPTION_AT(330, "data.train.template", CHOICE, "auto", "auto|chatml|llama3|mistral|zephyr|qwen|llama3.1|qwen3", \
              ANY, FIXED(SAMPLES), DERIVED,                                                                        \
              "how conversations (messages) are written; auto recognizes the chat template beside the tokenizer")

#define SYSTEM_OPTION                                                                   \
    OPTION_AT(340, "data.train.system", STRING, NONE, "", ANY, FIXED(SAMPLES), DERIVED, \
              "system message of conversations without one; by default that of the template, if it has one")

#define PART_OPTION(members)                                                               \
    OPTION_AT(370, "data.train.part", RANGE, "0%..100%", "", ANY, FIXED(SAMPLES), members, \
              "part of the file to use, such as 0%..90%, or of every class of images; all of it by default")

#endif
