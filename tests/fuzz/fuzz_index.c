/* Fuzzes model.safetensors.index.json: the input is the index of a folder with two good files and a bad one. A refusal
 * names the folder, takes no memory beyond the index and its files and leaves none; what is opened has the tensors
 * of the files that the index names, each of which can be read. */
#include "fuzz_data.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/context.h"
#include "formats/weights.h"

enum { MOST_BYTES = 1 << 15, PATH = 64, HEADER = 128 };
static char folder[PATH];
static const char *const files[] = {"a.safetensors", "b.safetensors", "bad", "model.safetensors.index.json"};
enum { A, B, BAD, INDEX, FILES };

static void remove_folder(void) {
    char path[2 * PATH];
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

static int make_file(int number, const void *bytes, size_t size) {
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s/%s", folder, files[number]);
    const int descriptor = open(path, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0 || write(descriptor, bytes, size) != (ssize_t)size) abort();
    return descriptor;
}

/* One tensor of one number. */
static void make_tensor(int number, const char *name) {
    unsigned char bytes[8 + HEADER + 4] = {0};
    const int length =
        snprintf((char *)bytes + 8, HEADER, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", name);
    bytes[0] = (unsigned char)length;
    close(make_file(number, bytes, 8 + (size_t)length + 4));
}

/* In memory, if the system has such a place. The index is written anew for each input. */
static int need_folder(void) {
    static int descriptor = -1;
    char on_disk[] = "/tmp/fuzz_index.XXXXXX", in_memory[] = "/dev/shm/fuzz_index.XXXXXX";
    if (descriptor >= 0) return descriptor;
    const char *made = mkdtemp(in_memory);
    if (!made) made = mkdtemp(on_disk);
    if (!made) abort();
    snprintf(folder, sizeof folder, "%s", made);
    atexit(remove_folder);
    make_tensor(A, "a");
    make_tensor(B, "b");
    close(make_file(BAD, "bad", 3));
    return descriptor = make_file(INDEX, "", 0);
}

static void check_weights(const an_weights *w) {
    float number = 1;
    an_safetensor t;
    if (w->count < 0 || w->count > 2) broken("tensors that no file has");
    for (int64_t i = 0; i < w->count; i++)
        if (w->get(w, i, &t) || strlen(t.name) != 1 || w->read(w, i, &t, 0, 1, &number) || number != 0)
            broken("a tensor that cannot be read");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { ROOM = 1 << 16 }; /* for the record of files and their headers */
    an_weights w;
    if (size > MOST_BYTES) return 0;
    need_context();
    const int index = need_folder();
    if (ftruncate(index, 0) || pwrite(index, data, size, 0) != (ssize_t)size) abort();
    const size_t held = an_context_bytes(context);
    context->peak_bytes = held;
    const an_status status = an_weights_open_files(&w, context, folder);
    if (context->peak_bytes - held > 2 * size + ROOM) broken("memory beyond the index");
    if (status == AN_OK) {
        check_weights(&w);
        an_weights_close(&w);
    } else if (status != AN_ERR_DAMAGED && status != AN_ERR_UNSUPPORTED && status != AN_ERR_FILE) {
        broken("a refusal of a strange kind");
    } else if (strncmp(an_last_error(context), folder, strlen(folder)) != 0) {
        broken("a refusal without the file");
    }
    if (an_context_bytes(context) != held) broken("memory was not given back");
    return 0;
}
