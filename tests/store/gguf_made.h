/* GGUF files without tensors, made in memory. */
#ifndef AN_TESTS_STORE_GGUF_MADE_H
#define AN_TESTS_STORE_GGUF_MADE_H

#include <stdint.h>
#include <string.h>

typedef struct {
    unsigned char bytes[4096];
    size_t size;
} made;

static inline void add_number(made *m, int bytes, uint64_t number) {
    for (int i = 0; i < bytes; i++, number >>= 8) m->bytes[m->size++] = (unsigned char)number;
}

static inline void add_text(made *m, const char *text) {
    add_number(m, 8, strlen(text));
    memcpy(m->bytes + m->size, text, strlen(text));
    m->size += strlen(text);
}

static inline void add_head(made *m, uint64_t keys) {
    *m = (made){.bytes = "GGUF", .size = 4};
    add_number(m, 4, 3);
    add_number(m, 8, 0);
    add_number(m, 8, keys);
}

static inline void add_key(made *m, const char *name, uint32_t type, int bytes, uint64_t number) {
    add_text(m, name);
    add_number(m, 4, type);
    add_number(m, bytes, number);
}

static inline void add_array(made *m, const char *name, uint32_t type, uint64_t count) {
    add_text(m, name);
    add_number(m, 4, 9);
    add_number(m, 4, type);
    add_number(m, 8, count);
}

#endif
