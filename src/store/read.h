/* Reading files of a checkpoint. */
#ifndef AN_STORE_READ_H
#define AN_STORE_READ_H

#include "store/manifest.h"

/* Bytes of a file that go to one place of memory; dst NULL: only their hash is of use. */
typedef struct an_file_segment {
    int64_t offset, bytes;
    char *dst;
} an_file_segment;

/* Reads the whole file, in the order of its bytes, which the segments cover. AN_ERR_DAMAGED if its hash is not the manifest's; then the
 * memory has been written to all the same. */
an_status an_checkpoint_load_file(an_context *ctx, const an_device *device, const an_manifest_file *file,
                                  const char *folder, const an_file_segment *segments, size_t count);

/* Reads the file in pieces of constant size and checks its hash. */
an_status an_checkpoint_check_file(an_context *ctx, const an_manifest_file *file, const char *folder);

#endif
