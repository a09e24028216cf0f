/* Fuzzes safetensors. A refusal names the file and a place, takes no memory beyond twice the file and leaves none; what
 * is opened is read to its last byte, covers its data exactly, and written again has the same tensors. The first byte
 * of an input chooses: 0, the rest is a file; else the length is put before the rest, and the number of bytes of
 * data is the byte's, so that headers need not be counted. */
#include "fuzz_data.h"

#include "base/context.h"
#include "formats/safetensors.h"

static void check_refused(an_status status, const char *path, size_t size, size_t bytes) {
    const char *message = an_last_error(context);
    if (status != AN_ERR_DAMAGED && status != AN_ERR_UNSUPPORTED) broken("a refusal of a strange kind");
    if (strncmp(message, path, strlen(path)) != 0 || !strstr(message, ": byte ")) broken("a refusal without a place");
    if (context->peak_bytes - bytes > 2 * size + 1024) broken("memory beyond twice the file");
}

/* The tensors of a file, in order: they cover the data, and each is found by its name. */
static void check_tensors(const an_safetensors *s, an_safetensor *tensors) {
    int64_t at = 0;
    for (int i = 0; i < an_safetensors_count(s); i++) {
        an_safetensor *t = &tensors[i];
        int64_t bytes;
        if (an_safetensors_get(s, i, t)) broken("a tensor that is not there");
        if (!an_safetensor_measure(t, &bytes) || bytes != t->bytes || t->begin != at)
            broken("a tensor with other bytes");
        if (an_safetensors_find(s, t->name) != i) broken("a tensor that is not found");
        at += bytes;
    }
    if (an_safetensors_data_offset(s) + at != an_safetensors_bytes(s)) broken("bytes that belong to none");
}

static void read_tensors(const an_safetensors *s, const an_safetensor *tensors) {
    for (int i = 0; i < an_safetensors_count(s); i++) {
        const size_t bytes = (size_t)tensors[i].bytes;
        char *memory = malloc(bytes ? bytes : 1);
        if (!memory) abort();
        if (an_safetensors_read(s, &tensors[i], 0, bytes, memory)) broken("a tensor that cannot be read");
        if (an_safetensors_read(s, &tensors[i], 1, bytes, memory) != AN_ERR_ARGUMENT) broken("a read beyond a tensor");
        free(memory);
    }
}

static void write_again(const an_safetensors *s, const an_safetensor *tensors) {
    static memory_file file;
    const int count = an_safetensors_count(s);
    const int64_t data = an_safetensors_bytes(s) - an_safetensors_data_offset(s);
    an_safetensors *again = NULL;
    an_safetensor t;
    an_text text;
    an_text_init(&text, context);
    if (an_safetensors_header(&text, tensors, (size_t)count, 64, NULL)) broken("a header that cannot be written");
    fill_file(&file, text.bytes, text.length);
    if (ftruncate(file.descriptor, (off_t)text.length + data)) abort();
    if (an_safetensors_open(&again, context, file.path)) broken("what was written cannot be read");
    if (an_safetensors_count(again) != count || an_safetensors_data_offset(again) % 64 != 0) broken("another file");
    for (int i = 0; i < count; i++) {
        if (an_safetensors_get(again, i, &t)) broken("a tensor that is gone");
        if (strcmp(t.name, tensors[i].name) != 0 || t.type != tensors[i].type || t.ndims != tensors[i].ndims ||
            memcmp(t.dims, tensors[i].dims, sizeof t.dims) != 0 || t.begin != tensors[i].begin ||
            t.bytes != tensors[i].bytes)
            broken("a tensor that has changed");
    }
    an_safetensors_close(&again);
    an_text_destroy(&text);
}

static size_t fill(memory_file *file, const uint8_t *data, size_t size) {
    static uint8_t bytes[1 << 16];
    const size_t header = size - 1, extra = data[0];
    if (extra == 0) {
        fill_file(file, data + 1, header);
        return header;
    }
    for (size_t i = 0; i < AN_SAFETENSORS_LENGTH; i++) bytes[i] = (uint8_t)((uint64_t)header >> 8 * i);
    memcpy(bytes + AN_SAFETENSORS_LENGTH, data + 1, header);
    memset(bytes + AN_SAFETENSORS_LENGTH + header, 0, extra - 1);
    fill_file(file, bytes, AN_SAFETENSORS_LENGTH + header + extra - 1);
    return AN_SAFETENSORS_LENGTH + header + extra - 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    an_safetensors *s = NULL;
    if (size < 1 || size > 1 << 15) return 0;
    need_context();
    const size_t length = fill(&file, data, size), bytes = an_context_bytes(context);
    context->peak_bytes = bytes;
    const an_status status = an_safetensors_open(&s, context, file.path);
    if (status != AN_OK) {
        check_refused(status, file.path, length, bytes);
    } else {
        an_safetensor *tensors = calloc((size_t)an_safetensors_count(s) + 1, sizeof *tensors);
        if (!tensors) abort();
        if (context->peak_bytes - bytes > 2 * length + 1024) broken("memory beyond twice the file");
        check_tensors(s, tensors);
        read_tensors(s, tensors);
        write_again(s, tensors);
        free(tensors);
        an_safetensors_close(&s);
    }
    if (an_context_bytes(context) != bytes) broken("memory was not given back");
    return 0;
}
