#include "cli/json.h"

#include "cli/utf8.h"

enum { INDENT = 2 };

static void write_string(FILE *file, const char *string) {
    putc('"', file);
    while (*string) {
        const unsigned char c = (unsigned char)*string;
        const size_t length = utf8_length(string);
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < ' ')
            fprintf(file, "\\u%04x", c);
        else if (length == 0)
            fputs(UTF8_REPLACEMENT, file);
        else
            fwrite(string, 1, length, file);
        string += length ? length : 1;
    }
    putc('"', file);
}

static void new_line(json *j) {
    fprintf(j->file, "\n%*s", j->depth * INDENT, "");
}

static void begin_member(json *j, const char *key) {
    if (j->count++ > 0) putc(',', j->file);
    new_line(j);
    write_string(j->file, key);
    fputs(": ", j->file);
}

json json_begin(FILE *file) {
    putc('{', file);
    return (json){.file = file, .depth = 1};
}

void json_end(json *j) {
    json_object_end(j);
    putc('\n', j->file);
}

void json_object_begin(json *j, const char *key) {
    begin_member(j, key);
    putc('{', j->file);
    j->depth++;
    j->count = 0;
}

void json_object_end(json *j) {
    j->depth--;
    if (j->count > 0) new_line(j);
    putc('}', j->file);
    j->count = 1; /* the object itself is a member of the one around it */
}

void json_string(json *j, const char *key, const char *value) {
    begin_member(j, key);
    write_string(j->file, value);
}

void json_integer(json *j, const char *key, int64_t value) {
    begin_member(j, key);
    fprintf(j->file, "%lld", (long long)value);
}

void json_whole(json *j, const char *key, double value) {
    begin_member(j, key);
    fprintf(j->file, "%.0f", value);
}

void json_null(json *j, const char *key) {
    begin_member(j, key);
    fputs("null", j->file);
}
