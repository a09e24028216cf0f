/* Kernels of ops/embedding.c: rows of a table by index, and the sum of what flows back into each row. */
#ifndef AN_KERNELS_EMBEDDING_EMBEDDING_H
#define AN_KERNELS_EMBEDDING_EMBEDDING_H

#include "ir/op.h"
#include "kernels/common/list.h"

typedef struct an_embedding_diff_attributes {
    an_dim_list dims; /* of the table: entries, width */
} an_embedding_diff_attributes;

AN_DECLARE_KERNELS(embedding);
AN_DECLARE_KERNELS(embedding_diff);

#endif
