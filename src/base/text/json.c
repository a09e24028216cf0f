#include "base/text/json.h"

#include <string.h>

#include "base/text/number.h"
#include "base/text/utf8.h"
#include "base/word.h"

void an_json_init(an_json *json, char *text, size_t length) {
    *json = (an_json){.text = text, .length = length};
}

bool an_json_refuse(an_json *json, size_t at, const char *problem) {
    if (json->problem) return false;
    json->problem = problem;
    json->at = at;
    return false;
}

int an_json_peek(an_json *j) {
    for (; j->at < j->length; j->at++) {
        const char c = j->text[j->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return (unsigned char)c;
    }
    return -1;
}

/* ---- objects and arrays ---- */

static uint64_t level(const an_json *j) {
    return (uint64_t)1 << (j->depth - 1);
}

static bool enter(an_json *j, char first, const char *expected) {
    if (j->problem) return false;
    if (an_json_peek(j) != first) return an_json_refuse(j, j->at, expected);
    if (j->depth == AN_JSON_DEPTH) return an_json_refuse(j, j->at, "it is nested deeper than 64 levels");
    j->at++;
    j->depth++;
    j->begun &= ~level(j);
    j->objects = first == '{' ? j->objects | level(j) : j->objects & ~level(j);
    return true;
}

bool an_json_object(an_json *json) {
    return enter(json, '{', "an object is expected here");
}

bool an_json_array(an_json *json) {
    return enter(json, '[', "an array is expected here");
}

/* Goes to what is next in the innermost object or array; false at its end. */
static bool next(an_json *j, bool object) {
    const char last = object ? '}' : ']';
    if (j->problem) return false;
    if (j->depth == 0 || ((j->objects & level(j)) != 0) != object)
        return an_json_refuse(j, j->at, object ? "this is not inside an object" : "this is not inside an array");
    const int c = an_json_peek(j);
    if (c == last) {
        j->at++;
        j->depth--;
        return false;
    }
    if (j->begun & level(j)) {
        if (c != ',')
            return an_json_refuse(j, j->at, object ? "',' or '}' is expected here" : "',' or ']' is expected here");
        j->at++;
        if (an_json_peek(j) == last) return an_json_refuse(j, j->at, "nothing follows a comma");
    }
    j->begun |= level(j);
    return true;
}

bool an_json_member(an_json *json, an_json_string *key) {
    if (!next(json, true) || !an_json_string_value(json, key)) return false;
    if (an_json_peek(json) != ':') return an_json_refuse(json, json->at, "':' is expected here");
    json->at++;
    return true;
}

bool an_json_element(an_json *json) {
    return next(json, false);
}

/* ---- strings ---- */

static size_t encode(uint32_t point, char *to) {
    enum { CONTINUED = 0x80, SIX_BITS = 0x3f };
    if (point < 0x80) {
        to[0] = (char)point;
        return 1;
    }
    const size_t length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {[2] = 0xc0, [3] = 0xe0, [4] = 0xf0};
    for (size_t i = length - 1; i > 0; i--, point >>= 6) to[i] = (char)(CONTINUED | (point & SIX_BITS));
    to[0] = (char)(marks[length] | point);
    return length;
}

/* The number of \uXXXX at `from`. */
static bool escaped_unit(const an_json *j, size_t from, uint32_t *unit) {
    *unit = 0;
    if (j->length - from < 6 || j->text[from] != '\\' || j->text[from + 1] != 'u') return false;
    for (size_t i = from + 2; i < from + 6; i++) {
        const char c = j->text[i];
        const int digit = c >= '0' && c <= '9'                 ? c - '0'
                          : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                               : -1;
        if (digit < 0) return false;
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

/* Decodes the escape at *from to *to. No escape is shorter than what it stands for. */
static bool decode_escape(an_json *j, size_t *from, size_t *to) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char c = *from + 1 < j->length ? j->text[*from + 1] : 0;
    const char *letter = c ? strchr(letters, c) : NULL;
    uint32_t unit, second = 0;
    if (letter) {
        j->text[(*to)++] = meant[letter - letters];
        *from += 2;
        return true;
    }
    if (!escaped_unit(j, *from, &unit)) return an_json_refuse(j, *from, "this is not a JSON escape");
    if (unit == 0) return an_json_refuse(j, *from, "a string has the character U+0000");
    size_t length = 6;
    if (unit >= 0xd800 && unit < 0xe000) { /* half of a pair that stands for one character */
        if (unit >= 0xdc00 || !escaped_unit(j, *from + length, &second) || second < 0xdc00 || second >= 0xe000)
            return an_json_refuse(j, *from, "this escape is half of a surrogate pair");
        unit = 0x10000 + ((unit - 0xd800) << 10 | (second - 0xdc00));
        length *= 2;
    }
    *from += length;
    *to += encode(unit, j->text + *to);
    return true;
}

bool an_json_string_value(an_json *json, an_json_string *string) {
    an_json *j = json;
    if (j->problem) return false;
    if (an_json_peek(j) != '"') return an_json_refuse(j, j->at, "a string is expected here");
    size_t from = j->at + 1, to = from;
    string->bytes = j->text + from;
    for (;;) {
        if (from == j->length) return an_json_refuse(j, j->at, "this string is not terminated");
        const char c = j->text[from];
        if (c == '"') break;
        if ((unsigned char)c < ' ')
            return an_json_refuse(j, from, "a string has a control character that is not escaped");
        if (c == '\\') {
            if (!decode_escape(j, &from, &to)) return false;
            continue;
        }
        const size_t length = an_utf8_length(j->text + from, j->length - from);
        if (length == 0) return an_json_refuse(j, from, "a string is not valid UTF-8");
        for (size_t i = 0; i < length; i++) j->text[to++] = j->text[from++];
    }
    string->length = (size_t)(j->text + to - string->bytes);
    j->text[to] = 0; /* at the latest where the last quote was */
    j->at = from + 1;
    return true;
}

/* ---- words and numbers ---- */

static bool word(an_json *j, const char *expected) {
    const size_t length = strlen(expected);
    if (j->problem) return false;
    an_json_peek(j);
    if (j->length - j->at < length || memcmp(j->text + j->at, expected, length) != 0) return false;
    j->at += length;
    return true;
}

bool an_json_bool(an_json *json, bool *value) {
    if (word(json, "true")) return *value = true;
    if (!word(json, "false")) return an_json_refuse(json, json->at, "true or false is expected here");
    *value = false;
    return true;
}

static bool is_digit(const an_json *j, size_t at) {
    return at < j->length && an_is_digit(j->text[at]);
}

static bool is_one_of(const an_json *j, size_t at, const char *characters) {
    return at < j->length && j->text[at] && strchr(characters, j->text[at]);
}

/* Where digits end; `from` itself if there are none. */
static size_t digits(const an_json *j, size_t from) {
    while (is_digit(j, from)) from++;
    return from;
}

typedef struct numeral {
    size_t begin, end; /* without the sign; the reader is not moved */
    bool negative, whole;
} numeral;

static bool scan_number(an_json *j, numeral *n) {
    static const char none[] = "this is not a JSON number";
    if (j->problem) return false;
    an_json_peek(j);
    n->negative = is_one_of(j, j->at, "-");
    n->begin = j->at + n->negative;
    size_t end = digits(j, n->begin);
    if (end == n->begin) return an_json_refuse(j, j->at, n->negative ? none : "a number is expected here");
    if (j->text[n->begin] == '0' && end > n->begin + 1) return an_json_refuse(j, j->at, "a number has a leading zero");
    n->whole = true;
    if (is_one_of(j, end, ".")) {
        const size_t fraction = end + 1;
        n->whole = false;
        end = digits(j, fraction);
        if (end == fraction) return an_json_refuse(j, j->at, none);
    }
    if (is_one_of(j, end, "eE")) {
        const size_t exponent = end + 1 + is_one_of(j, end + 1, "+-");
        n->whole = false;
        end = digits(j, exponent);
        if (end == exponent) return an_json_refuse(j, j->at, none);
    }
    n->end = end;
    return true;
}

/* A whole number of at most `most`, or of the other sign `least`. */
static bool read_whole(an_json *j, uint64_t maximum, uint64_t minimum, uint64_t *magnitude, bool *negative) {
    numeral n;
    uint64_t value = 0;
    if (!scan_number(j, &n)) return false;
    if (!n.whole) return an_json_refuse(j, j->at, "a whole number is expected here, without fraction and exponent");
    if (n.negative && minimum == 0) return an_json_refuse(j, j->at, "a number without a sign is expected here");
    for (size_t i = n.begin; i < n.end; i++)
        if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(j->text[i] - '0'), &value) ||
            value > (n.negative ? minimum : maximum))
            return an_json_refuse(j, j->at, "a number does not fit in 64 bits");
    j->at = n.end;
    *magnitude = value;
    *negative = n.negative;
    return true;
}

bool an_json_u64(an_json *json, uint64_t *number) {
    bool negative;
    return read_whole(json, UINT64_MAX, 0, number, &negative);
}

bool an_json_count(an_json *json, int64_t *count) {
    bool negative;
    uint64_t value;
    if (!read_whole(json, INT64_MAX, 0, &value, &negative)) return false;
    *count = (int64_t)value;
    return true;
}

bool an_json_integer(an_json *json, int64_t *number) {
    bool negative;
    uint64_t value;
    if (!read_whole(json, INT64_MAX, (uint64_t)INT64_MAX + 1, &value, &negative)) return false;
    *number = !negative ? (int64_t)value : value == 0 ? 0 : -(int64_t)(value - 1) - 1; /* -2^63 has no positive twin */
    return true;
}

bool an_json_real(an_json *json, double *number) {
    numeral n;
    if (word(json, "null")) {
        *number = __builtin_nan("");
        return true;
    }
    if (!scan_number(json, &n)) return false;
    if (n.end - json->at > AN_LONGEST_NUMBER)
        return an_json_refuse(json, json->at, "a number has more than 400 characters");
    const double value = an_text_double(json->text + json->at, n.end - json->at);
    if (!__builtin_isfinite(value)) return an_json_refuse(json, json->at, "a number is too large for a double");
    json->at = n.end;
    *number = value;
    return true;
}

/* ---- the rest ---- */

static bool skip_plain(an_json *j) {
    an_json_string string;
    numeral n;
    if (an_json_peek(j) == '"') return an_json_string_value(j, &string);
    if (word(j, "true") || word(j, "false") || word(j, "null")) return true;
    if (!is_one_of(j, j->at, "-0123456789")) return an_json_refuse(j, j->at, "a value is expected here");
    if (!scan_number(j, &n)) return false;
    j->at = n.end;
    return true;
}

bool an_json_skip(an_json *json) {
    an_json *j = json;
    an_json_string key;
    const int outside = j->depth;
    if (j->problem) return false;
    do { /* one value, then all the ends that follow it */
        const int c = an_json_peek(j);
        if (c != '{' && c != '[')
            skip_plain(j);
        else if (c == '{')
            an_json_object(j);
        else
            an_json_array(j);
        while (!j->problem && j->depth > outside)
            if (j->objects & level(j) ? an_json_member(j, &key) : an_json_element(j)) break;
    } while (!j->problem && j->depth > outside);
    return !j->problem;
}

bool an_json_end(an_json *json) {
    if (json->problem) return false;
    return an_json_peek(json) < 0 || an_json_refuse(json, json->at, "unexpected text after the end of the value");
}
