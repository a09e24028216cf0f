/* Options that several types of models have, each with members of its own. */
#ifndef AN_KINDS_MODELS_ROWS_H
#define AN_KINDS_MODELS_ROWS_H

#include "base/options/option_rows.h"

#define EMBEDDING_OPTION                                                                                              \
    OPTION_AT(                                                                                                        \
        60, "model.embedding", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), DERIVED,                                 \
        "numbers that a category is embedded as, with data.train.categories: embedding; auto is half as many as the " \
        "column has categories, at most 50")

#define CLASSES_OPTION(members)                                                            \
    OPTION_AT(100, "model.classes", COUNT, "auto", "auto", FROM(2), FIXED(MODEL), members, \
              "number of target classes; auto takes it from the data")

#define ACTIVATION_OPTION(members)                                                                        \
    OPTION_AT(140, "model.activation", CHOICE, "relu", "relu|gelu|tanh|silu", ANY, FIXED(MODEL), members, \
              "activation after each hidden layer; relu is the cheapest that works")

#define BATCH_NORM_OPTION(members)                                                  \
    OPTION_AT(150, "model.batch_norm", BOOL, "off", "", ANY, FIXED(MODEL), members, \
              "batch norm before each activation; off, because its results depend on batch.micro")

#define CONTEXT_OPTION(members)                                                        \
    OPTION_AT(330, "model.context", COUNT, "1024", "", FROM(2), FIXED(MODEL), members, \
              "most tokens in a sample; same as GPT-2")

#define VOCABULARY_OPTION(members)                                                                                    \
    OPTION_AT(                                                                                                        \
        350, "model.vocabulary", COUNT, "auto", "auto", FROM(2), FIXED(MODEL), members,                               \
        "number of different tokens; auto takes it from the data, for a file of tokens from the tokenizer that lies " \
        "beside it")

#define DROPOUT_OPTION(members)                                                        \
    OPTION_AT(410, "model.dropout", REAL, "0", "", BELOW(0, 1), FIXED(MODEL), members, \
              "share of activations to drop; none, because most runs see their data only a few times")

#define LOSS_OPTION                                                                                                    \
    OPTION_AT(                                                                                                         \
        430, "model.loss", CHOICE, "auto", "auto|cross_entropy|squared|binary_cross_entropy", ANY, FIXED(MODEL),       \
        DERIVED,                                                                                                       \
        "loss function; auto is cross entropy for classes and squared error for numbers. binary_cross_entropy is for " \
        "several labels of which a sample may have any number: each target is 0 or 1, and predictions are a "          \
        "probability for each label")

#endif
