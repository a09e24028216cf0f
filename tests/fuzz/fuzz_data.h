/* What fuzzers of data files share: a file without a disk, and what must hold of any dataset and of any refusal. The
 * first byte of an input chooses options, the rest is the file. */
#ifndef TESTS_FUZZ_FUZZ_DATA_H
#define TESTS_FUZZ_FUZZ_DATA_H

#include <stdbool.h>
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

/* One large block is kept, and nobody may touch it meanwhile: a sanitizer would get each from the system and give it
 * back, which costs more than a run. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(memory, bytes) ((void)(memory), (void)(bytes))
#endif
enum { LARGE = 100000, MALLOC_ALIGNMENT = 16 };
static void *large_block;
static size_t large_bytes;
static bool large_taken;

static inline void *fuzz_allocate(void *user, size_t bytes, size_t alignment) {
    void *memory = NULL;
    (void)user;
    if (alignment > MALLOC_ALIGNMENT) return posix_memalign(&memory, alignment, bytes) ? NULL : memory;
    if (bytes < LARGE || large_taken) return malloc(bytes);
    if (large_bytes != bytes) {
        free(large_block);
        large_block = malloc(bytes);
        large_bytes = large_block ? bytes : 0;
    }
    if (!large_block) return NULL;
    ASAN_UNPOISON_MEMORY_REGION(large_block, bytes);
    large_taken = true;
    return large_block;
}

static inline void fuzz_release(void *user, void *memory, size_t bytes) {
    (void)user;
    if (memory && memory == large_block && large_taken) {
        ASAN_POISON_MEMORY_REGION(memory, bytes);
        large_taken = false;
    } else {
        free(memory);
    }
}

static inline void need_context(void) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_allocator allocator;
    an_allocator_init(&allocator, sizeof allocator);
    allocator.allocate = fuzz_allocate;
    allocator.release = fuzz_release;
    options.allocator = &allocator;
    options.threads = 1;
    if (!context && an_context_create(&context, &options)) abort();
}

/* A file without a name, opened by its descriptor's path like any other. Each fuzzer has few of them, which are
 * written anew for each input. */
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

/* Fills the file as the lowest bit of the options says; gives whether it is compressed. As that costs more than
 * the reading, one input in SHARE is, chosen by its bytes, and those with which a process begins: seeds, and
 * an input that is tried alone. */
static inline bool fill_either(memory_file *file, int options, const uint8_t *bytes, size_t size) {
    enum { SHARE = 8, FIRST = 64 };
    static int count;
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 16777619u;
    const bool compressed = (options & 1) && (count < FIRST || (hash ^ hash >> 16) % SHARE == 0);
    if (count < FIRST) count++;
    (compressed ? fill_compressed : fill_file)(file, bytes, size);
    return compressed;
}

/* A refusal says what is wrong, and where in a file: "…: byte 12: ", "…: line 3", "…: column 2", or that it concerns
 * the whole of it: "…: this file has …". */
static inline void check_refusal(an_status status) {
    static const char *const places[] = {": byte ", ": before byte ", ": line ", ": column ", ": this file has "};
    const char *message = an_last_error(context);
    bool placed = status != AN_ERR_PARSE;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) placed = placed || strstr(message, places[i]);
    if (!placed) broken("a refusal without a place");
    if (status != AN_ERR_PARSE && status != AN_ERR_ARGUMENT && status != AN_ERR_SHAPE && status != AN_ERR_UNKNOWN)
        broken("a refusal of a strange kind");
}

/* Reads some samples, the first and the last among them: twice the same, integers within the field's limit. */
static inline void check_dataset(an_dataset *d) {
    enum { MOST_FIELDS = 4, MOST_READS = 16 };
    const int64_t count = an_dataset_count(d), step = count / MOST_READS + 1;
    const int fields = an_dataset_field_count(d);
    unsigned char *memory[2][MOST_FIELDS] = {{NULL}};
    size_t bytes[MOST_FIELDS];
    an_field about[MOST_FIELDS];
    if (count < 1 || fields < 1 || fields > MOST_FIELDS) broken("a dataset without samples or fields");
    for (int f = 0; f < fields; f++) {
        an_field_init(&about[f], sizeof about[f]);
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
