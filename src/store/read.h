/* Reading files of a checkpoint. */
#ifndef AN_STORE_READ_H
#define AN_STORE_READ_H

#include "base/files/file.h"
#include "store/manifest.h"

/* Bytes of a file that go to one place of memory; dst NULL: only their hash is of use. */
typedef struct an_file_segment {
    int64_t offset, bytes;
    char *dst;
} an_file_segment;

/* Reads the whole file, in the order of its bytes, which the segments cover. AN_ERR_DAMAGED if its hash is not the
 * manifest's; then the memory has been written to all the same. */
an_status an_checkpoint_load_file(an_context *ctx, const an_device *device, const an_manifest_file *file,
                                  const char *folder, const an_file_segment *segments, size_t count);

/* A file that is read from its beginning to its end, in pieces of any size, for who passes them on. */
typedef struct an_file_reader {
    an_context *ctx;
    const an_manifest_file *file;
    char path[AN_FILE_PATH];
    int descriptor; /* -1: it is not open */
    void *hash;     /* XXH3_state_t */
    int64_t at;     /* what was read */
} an_file_reader;

an_status an_file_reader_open(an_file_reader *reader, an_context *ctx, const an_manifest_file *file,
                              const char *folder);
an_status an_file_reader_read(an_file_reader *reader, char *memory, size_t bytes);
/* Whether the bytes that were read have the manifest's hash. */
an_status an_file_reader_check(const an_file_reader *reader);
/* One that was not opened has nothing to close. */
void an_file_reader_close(an_file_reader *reader);

/* Reads the file in pieces of constant size and checks its hash. */
an_status an_checkpoint_check_file(an_context *ctx, const an_manifest_file *file, const char *folder);

#endif
