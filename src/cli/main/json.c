#include "cli/main/json.h"

#include "cli/main/utf8.h"

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
    if (!j->is_flat) fprintf(j->file, "\n%*s", j->depth * INDENT, "");
}

static void begin_member(json *j, const char *key) {
    if (j->count++ > 0) fputs(j->is_flat ? ", " : ",", j->file);
    new_line(j);
    if (!key) return;
    write_string(j->file, key);
    fputs(": ", j->file);
}

static void begin_group(json *j, const char *key, char bracket) {
    begin_member(j, key);
    putc(bracket, j->file);
    j->depth++;
    j->count = 0;
}

static void end_group(json *j, char bracket) {
    j->depth--;
    if (j->count > 0) new_line(j);
    putc(bracket, j->file);
    j->count = 1; /* the group itself is a member of the one around it */
}

json json_begin(FILE *file) {
    putc('{', file);
    return (json){.file = file, .depth = 1};
}

json json_begin_flat(FILE *file) {
    json j = json_begin(file);
    j.is_flat = true;
    return j;
}

void json_end(json *j) {
    end_group(j, '}');
    putc('\n', j->file);
}

void json_object_begin(json *j, const char *key) {
    begin_group(j, key, '{');
}

void json_object_end(json *j) {
    end_group(j, '}');
}

void json_array_begin(json *j, const char *key) {
    begin_group(j, key, '[');
}

void json_array_end(json *j) {
    end_group(j, ']');
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

void json_real(json *j, const char *key, double value) {
    begin_member(j, key);
    fprintf(j->file, "%.9g", value);
}

void json_exact(json *j, const char *key, double value) {
    begin_member(j, key);
    fprintf(j->file, "%.17g", value);
}

void json_null(json *j, const char *key) {
    begin_member(j, key);
    fputs("null", j->file);
}
