/* What fuzzers of data files share: a file without a disk, and what must hold of any dataset and of any refusal. The first byte of an
 * input chooses options, the rest is the file. */
#ifndef TESTS_FUZZ_FUZZ_DATA_H
#define TESTS_FUZZ_FUZZ_DATA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "anneal/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static an_context *context;

__attribute__((noreturn)) static inline void broken(const char *what) {
    fprintf(stderr, "fuzz_data: %s\n%s\n", what, an_last_error(context));
    abort();
}

static inline void need_context(void) {
    an_context_options options = AN_INIT(options);
    options.threads = 1;
    if (!context && an_context_create(&context, &options)) abort();
}

/* A file without a name, opened by its descriptor's path like any other. Each fuzzer has few of them, which are written anew for each input. */
typedef struct memory_file {
    int descriptor; /* 0: not there yet */
    char path[64];
} memory_file;

static inline void fill_file(memory_file *file, const void *bytes, size_t size) {
    if (file->descriptor == 0) {
        char on_disk[] = "/tmp/fuzz_data.XXXXXX", in_memory[] = "/dev/shm/fuzz_data.XXXXXX", *path = in_memory;
        file->descriptor = mkstemp(path);
        if (file->descriptor <= 0) file->descriptor = mkstemp(path = on_disk);
        if (file->descriptor <= 0 || unlink(path)) abort(); /* it stays until it is closed */
        snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->descriptor);
    }
    if (ftruncate(file->descriptor, 0) || pwrite(file->descriptor, bytes, size, 0) != (ssize_t)size) abort();
}

/* The same, compressed, so that what is inside is reached whatever gzip's checksum says. */
static inline void fill_compressed(memory_file *file, const void *bytes, size_t size) {
    static unsigned char packed[1 << 16];
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes,
                  .avail_in = (uInt)size,
                  .next_out = packed,
                  .avail_out = sizeof packed};
    if (deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) abort();
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) abort();
    fill_file(file, packed, sizeof packed - z.avail_out);
    deflateEnd(&z);
}

/* A refusal says what is wrong, and where in a file: "…: byte 12: " or "…: line 3". */
static inline void check_refusal(an_status status) {
    const char *message = an_last_error(context);
    if (status == AN_ERR_PARSE && !strstr(message, ": byte ") && !strstr(message, ": line ") &&
        !strstr(message, ": before byte "))
        broken("a refusal without a place");
    if (status != AN_ERR_PARSE && status != AN_ERR_ARGUMENT && status != AN_ERR_SHAPE && status != AN_ERR_UNKNOWN)
        broken("a refusal of a strange kind");
}

/* Reads some samples, the first and the last among them: twice the same, integers within the field's limit. */
static inline void check_dataset(an_dataset *d) {
    enum { MOST_FIELDS = 3, MOST_READS = 16 };
    const int64_t count = an_dataset_count(d), step = count / MOST_READS + 1;
    const int fields = an_dataset_field_count(d);
    unsigned char *memory[2][MOST_FIELDS] = {{NULL}};
    size_t bytes[MOST_FIELDS];
    an_field about[MOST_FIELDS];
    if (count < 1 || fields < 1 || fields > MOST_FIELDS) broken("a dataset without samples or fields");
    for (int f = 0; f < fields; f++) {
        about[f] = (an_field)AN_INIT(about[f]);
        if (an_dataset_field(d, f, &about[f])) broken("a field that is not there");
        bytes[f] = an_dtype_size(about[f].dtype);
        for (int i = 0; i < about[f].ndims; i++) bytes[f] *= (size_t)about[f].dims[i];
        for (int k = 0; k < 2; k++)
            if (!(memory[k][f] = malloc(bytes[f]))) abort();
    }
    for (int64_t i = 0; i < count; i = i < count - 1 && i + step >= count ? count - 1 : i + step) {
        const an_status status = an_dataset_read(d, 1, &i, (void *const *)memory[0]);
        if (status != AN_OK) {
            check_refusal(status);
            continue;
        }
        if (an_dataset_read(d, 1, &i, (void *const *)memory[1])) broken("a sample that can be read only once");
        for (int f = 0; f < fields; f++) {
            if (memcmp(memory[0][f], memory[1][f], bytes[f])) broken("a sample that changes");
            for (size_t k = 0; about[f].dtype == AN_DTYPE_I32 && about[f].limit > 0 && k < bytes[f] / 4; k++) {
                const int32_t value = ((const int32_t *)(const void *)memory[0][f])[k];
                if ((value < 0 || value >= about[f].limit) && !(about[f].target && value == AN_TARGET_IGNORED))
                    broken("a number beyond its limit");
            }
        }
    }
    for (int f = 0; f < fields; f++) {
        free(memory[0][f]);
        free(memory[1][f]);
    }
}

/* What became of an input. */
static inline void finish(an_status status, an_dataset **d, size_t bytes_before) {
    if (status == AN_OK)
        check_dataset(*d);
    else
        check_refusal(status);
    an_dataset_destroy(d);
    if (an_context_bytes(context) != bytes_before) broken("memory was not given back");
}

#endif
