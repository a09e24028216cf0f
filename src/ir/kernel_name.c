#include "ir/kernel_name.h"

#include <string.h>

static const char portable[] = "portable", old_portable[] = "reference";

static bool is(const char *text, const char *name, size_t length) {
    return strlen(text) == length && !memcmp(text, name, length);
}

bool an_kernel_has_name(const char *kernel, const char *name, size_t length) {
    return is(kernel, name, length) || (!strcmp(kernel, portable) && is(old_portable, name, length));
}

/* One entry of a list: "op=" and the kernel's name behind it. */
typedef struct {
    const char *op, *name;
    size_t op_length, name_length;
} entry;

static entry next_entry(const char **list) {
    entry e = {.op = *list, .op_length = strcspn(*list, "=,")};
    e.name = e.op + e.op_length + (e.op[e.op_length] == '=');
    e.name_length = strcspn(e.name, ",");
    if (is(old_portable, e.name, e.name_length)) e.name = portable, e.name_length = strlen(portable);
    *list += strcspn(*list, ",");
    *list += **list == ',';
    return e;
}

bool an_kernel_lists_agree(const char *a, const char *b) {
    while (*a && *b) {
        const entry x = next_entry(&a), y = next_entry(&b);
        if (x.op_length != y.op_length || memcmp(x.op, y.op, x.op_length) != 0) return false;
        if (x.name_length != y.name_length || memcmp(x.name, y.name, x.name_length) != 0) return false;
    }
    return !*a && !*b;
}
