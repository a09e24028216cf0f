/* The internals of an open safetensors file. */
#ifndef AN_FORMATS_SAFETENSORS_FILE_H
#define AN_FORMATS_SAFETENSORS_FILE_H

#include "base/files/reader.h"
#include "base/text/json.h"
#include "formats/safetensors.h"

/* What is kept of a tensor: its shape is read again from the header when it is asked for. */
typedef struct an_safetensors_entry {
    int64_t begin, end;
    uint32_t name, shape; /* where they are in the header */
    const an_safetensors_type *type;
} an_safetensors_entry;

struct an_safetensors {
    an_context *ctx;
    an_reader file;
    char *path, *header;
    size_t path_bytes, header_bytes, table_bytes;
    an_safetensors_entry *entries;
    uint32_t *numbers, *keys; /* both in the memory of the entries */
    size_t count, key_count;
    bool has_metadata;
};

typedef struct an_safetensors_shown {
    char text[100];
} an_safetensors_shown;

/* A name of the file's for a message: cut, and without what a terminal would obey. */
const char *an_safetensors_show(an_safetensors_shown *shown, const char *name);

/* Reads the header into the tables, in the order that it has; each entry is checked for itself. */
an_status an_safetensors_parse(an_safetensors *s);
/* The dimensions that are next: all are looked at, the first AN_MAX_DIMS kept. Gives how many there are. */
int an_safetensors_dims(an_json *json, int64_t *dims);

#endif
