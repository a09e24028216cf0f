/* Fuzzes JSON: a text is skipped as a whole, and walked with the readers of values. What is taken lies within the
 * text, strings are valid, kinds of numbers agree, and so do both ways; what is written again has the same bits.
 * What is refused has a place. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "base/text/text.h"
#include "base/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((noreturn)) static void broken(const char *what, const an_json *j) {
    fprintf(stderr, "fuzz_json: %s: byte %zu: %s\n", what, j->at, j->problem ? j->problem : "no problem");
    abort();
}

/* The text lies in memory of exactly its size, whose borders a sanitizer watches. */
static char *copy_of(const uint8_t *data, size_t size) {
    char *copy = malloc(size ? size : 1);
    if (!copy) abort();
    if (size) memcpy(copy, data, size);
    return copy;
}

static void check_string(const an_json *j, an_json_string s) {
    if (s.bytes < j->text || s.bytes + s.length >= j->text + j->length) broken("a string outside the text", j);
    if (strlen(s.bytes) != s.length || !an_utf8_is_valid(s.bytes)) broken("a string that is none", j);
}

static int next_character(const an_json *j) {
    size_t at = j->at;
    while (at < j->length && (j->text[at] == ' ' || j->text[at] == '\t' || j->text[at] == '\n' || j->text[at] == '\r'))
        at++;
    return at < j->length ? j->text[at] : -1;
}

static uint64_t bits_of(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* A number is read as the narrowest kind that takes it; kinds that take it agree. */
static void read_number(an_json *j) {
    const an_json before = *j;
    an_json wide = before, count = before, integer = before;
    int64_t counted, signed_number;
    uint64_t unsigned_number;
    double real;
    const bool whole = an_json_u64(&wide, &unsigned_number);
    if (an_json_count(&count, &counted) && !(whole && (uint64_t)counted == unsigned_number)) broken("a count", &count);
    if (an_json_integer(&integer, &signed_number) && signed_number > 0 &&
        !(whole && (uint64_t)signed_number == unsigned_number))
        broken("an integer", &integer);
    if (whole && unsigned_number <= INT64_MAX && (count.problem || integer.problem)) broken("a whole number", &count);
    if (an_json_real(j, &real)) {
        char text[32];
        an_json again;
        double number;
        if (whole && wide.at != j->at) broken("numbers of two lengths", j);
        if (real != real) return; /* null */
        an_text_number(text, sizeof text, real);
        an_json_init(&again, text, strlen(text));
        if (!an_json_real(&again, &number) || bits_of(number) != bits_of(real)) broken("other bits", j);
    } else if (!j->problem || j->at > before.length) {
        broken("a number without a reason", j);
    }
}

static void read_plain(an_json *j, int c) {
    an_json_string string;
    bool truth;
    if (c == '"') {
        if (an_json_string_value(j, &string)) check_string(j, string);
    } else if (c == 't' || c == 'f') {
        an_json_bool(j, &truth);
    } else {
        read_number(j);
    }
}

static void walk(an_json *j) {
    bool objects[AN_JSON_DEPTH + 1] = {false};
    do {
        const int c = next_character(j);
        if (c == '{' || c == '[') {
            if (c == '{' ? an_json_object(j) : an_json_array(j)) objects[j->depth] = c == '{';
        } else {
            read_plain(j, c);
        }
        while (!j->problem && j->depth > 0) {
            an_json_string key;
            if (objects[j->depth] ? an_json_member(j, &key) : an_json_element(j)) {
                if (objects[j->depth]) check_string(j, key);
                break;
            }
        }
    } while (!j->problem && j->depth > 0);
    an_json_end(j);
}

/* A decoded string is written and read again to itself. */
static void round_trip(const an_json_string *s) {
    static an_context *context;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_text text;
    an_json j;
    an_json_string again;
    options.threads = 1;
    if (!context && an_context_create(&context, &options)) abort();
    an_text_init(&text, context);
    an_json_writer writer = an_text_json(&text, AN_JSON_FLAT);
    an_json_write_string(&writer, NULL, s->bytes);
    if (text.status) abort();
    an_json_init(&j, text.bytes, text.length);
    if (!an_json_string_value(&j, &again) || !an_json_end(&j)) broken("what was written cannot be read", &j);
    if (again.length != s->length || memcmp(again.bytes, s->bytes, s->length) != 0) broken("another string", &j);
    an_text_destroy(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    an_json skipped, walked;
    an_json_string string;
    char *first = copy_of(data, size), *second = copy_of(data, size), *third = copy_of(data, size);
    an_json_init(&skipped, first, size);
    if (an_json_skip(&skipped)) an_json_end(&skipped);
    an_json_init(&walked, second, size);
    walk(&walked);
    if (skipped.at > size || walked.at > size) broken("a place outside the text", &skipped);
    /* Skipping does not look whether a number fits a double. */
    if (!walked.problem && skipped.problem) broken("skipping refuses what reading takes", &skipped);
    if (!skipped.problem && (skipped.depth != 0 || skipped.at != size)) broken("an end before the end", &skipped);
    if (!skipped.problem && walked.problem && !strstr(walked.problem, "too large for a double") &&
        !strstr(walked.problem, "more than 400 characters"))
        broken("reading refuses what skipping takes", &walked);
    an_json_init(&walked, third, size);
    if (an_json_string_value(&walked, &string)) {
        check_string(&walked, string);
        round_trip(&string);
    }
    free(first);
    free(second);
    free(third);
    return 0;
}
