#include "base/text/json_write.h"

#include <string.h>

#include "base/text/number.h"
#include "base/text/utf8.h"

enum { INDENT = 2 };

static void put(an_json_writer *w, const char *text) {
    w->put(w->to, text, strlen(text));
}

static void put_string(an_json_writer *w, const char *string) {
    char escape[8];
    put(w, "\"");
    for (const char *at = string, *plain = string;; at++) { /* `plain`: of what is put as it is, once it ends */
        const unsigned char c = (unsigned char)*at;
        const size_t length = c ? an_utf8_length_in_text(at) : 0;
        if (c >= ' ' && c != '"' && c != '\\' && length > 0) {
            at += length - 1;
            continue;
        }
        w->put(w->to, plain, (size_t)(at - plain));
        if (!c) break;
        plain = at + 1;
        snprintf(escape, sizeof escape, c < ' ' ? "\\u%04x" : "\\%c", (unsigned)c);
        put(w, length == 0 ? AN_UTF8_REPLACEMENT : escape);
    }
    put(w, "\"");
}

static void new_line(an_json_writer *w) {
    if (w->layout != AN_JSON_LINES && w->layout != AN_JSON_MARGIN) return;
    put(w, "\n");
    for (int i = 0; w->layout == AN_JSON_LINES && i < w->depth * INDENT; i++) put(w, " ");
}

static void begin_value(an_json_writer *w, const char *key) {
    if (w->depth > 0) {
        if (w->count++ > 0) put(w, w->layout == AN_JSON_FLAT ? ", " : ",");
        new_line(w);
    }
    if (!key) return;
    put_string(w, key);
    put(w, w->layout == AN_JSON_COMPACT ? ":" : ": ");
}

static void begin_group(an_json_writer *w, const char *key, bool object) {
    begin_value(w, key);
    put(w, object ? "{" : "[");
    w->objects = w->objects << 1 | object;
    w->depth++;
    w->count = 0;
}

static void put_file(void *to, const char *bytes, size_t length) {
    fwrite(bytes, 1, length, to);
}

an_json_writer an_json_to_file(FILE *file, an_json_layout layout) {
    return (an_json_writer){.put = put_file, .to = file, .layout = layout};
}

void an_json_write_object(an_json_writer *writer, const char *key) {
    begin_group(writer, key, true);
}

void an_json_write_array(an_json_writer *writer, const char *key) {
    begin_group(writer, key, false);
}

void an_json_write_end(an_json_writer *writer) {
    writer->depth--;
    if (writer->count > 0) new_line(writer);
    put(writer, writer->objects & 1 ? "}" : "]");
    writer->objects >>= 1;
    writer->count = 1; /* the group itself is a member of the one around it */
}

void an_json_write_finish(an_json_writer *writer) {
    an_json_write_end(writer);
    put(writer, "\n");
}

void an_json_write_string(an_json_writer *writer, const char *key, const char *value) {
    begin_value(writer, key);
    if (value)
        put_string(writer, value);
    else
        put(writer, "null");
}

void an_json_write_integer(an_json_writer *writer, const char *key, int64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    begin_value(writer, key);
    put(writer, digits);
}

void an_json_write_whole(an_json_writer *writer, const char *key, double value) {
    char digits[320]; /* the largest double has 309 digits */
    snprintf(digits, sizeof digits, "%.0f", value);
    begin_value(writer, key);
    put(writer, digits);
}

void an_json_write_bool(an_json_writer *writer, const char *key, bool value) {
    begin_value(writer, key);
    put(writer, value ? "true" : "false");
}

void an_json_write_null(an_json_writer *writer, const char *key) {
    begin_value(writer, key);
    put(writer, "null");
}

static void write_finite(an_json_writer *w, const char *key, double value, const char *text) {
    begin_value(w, key);
    put(w, __builtin_isfinite(value) ? text : "null");
}

void an_json_write_real(an_json_writer *writer, const char *key, double value) {
    char text[32];
    an_text_number(text, sizeof text, value);
    write_finite(writer, key, value, text);
}

void an_json_write_exact(an_json_writer *writer, const char *key, double value) {
    char text[32];
    an_text_rounded(text, sizeof text, value, 17);
    write_finite(writer, key, value, text);
}

void an_json_write_rounded(an_json_writer *writer, const char *key, double value) {
    char text[32];
    an_text_rounded(text, sizeof text, value, 9);
    write_finite(writer, key, value, text);
}
