#include "text/normalize.h"

#include <string.h>
#include <utf8proc.h>

#include "text/unicode.h"
#include "text/versions.h"

/* ---- what a text may become ---- */

/* Of a byte so many, and a little in any case. The longest that Unicode makes of a character is 11 times as long. */
enum { RATIO = 32, LEAST = 4096 };

void an_text_normalize_begin(an_encoder *e, size_t bytes) {
    e->normal_room = bytes < (AN_MOST_TEXT - LEAST) / RATIO ? LEAST + RATIO * bytes : AN_MOST_TEXT;
}

/* Normalizers add to a text by these. A few of them in a row can multiply it, as each sees what the one before has
 * made. */
static an_status add(an_encoder *e, an_characters *to, const char *bytes, size_t length) {
    if (length > e->normal_room - to->length) return AN_ERR_OVERFLOW; /* an_text_normalize says of what */
    return an_characters_add(e, to, bytes, length);
}

static an_status put(an_encoder *e, an_characters *to, uint32_t character) {
    char bytes[AN_UTF8_MOST];
    return add(e, to, bytes, an_character_put(character, bytes));
}

/* ---- Unicode's normalization forms ---- */

typedef struct form {
    bool compatible, composed;
} form;

static an_status add_point(an_encoder *e, size_t *count, uint32_t point) {
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&e->points, &e->point_capacity, *count + 1, sizeof *e->points));
    e->points[(*count)++] = point;
    return AN_OK;
}

static bool is_unknown(uint32_t point) {
    return an_version_flags(point) & AN_VERSION_PLAIN;
}

static int class_of(uint32_t point) {
    const int class = utf8proc_get_property((utf8proc_int32_t)point)->combining_class;
    return class != 0 && is_unknown(point) ? 0 : class;
}

/* Sorts marks by their class, equal ones in their order. By counting: a hostile text has one mark after
 * another, for which sorting by exchange takes the square of their number. The sorted ones are put behind
 * those of the text first. */
static an_status sort_marks(an_encoder *e, size_t begin, size_t *end) {
    enum { CLASSES = 256 };
    size_t places[CLASSES + 1] = {0};
    const size_t n = *end - begin;
    bool sorted = true;
    for (size_t i = begin; i + 1 < *end && sorted; i++) sorted = class_of(e->points[i]) <= class_of(e->points[i + 1]);
    if (sorted) return AN_OK;
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&e->points, &e->point_capacity, *end + n, sizeof *e->points));
    for (size_t i = begin; i < *end; i++) places[class_of(e->points[i]) + 1]++;
    for (int c = 0; c < CLASSES; c++) places[c + 1] += places[c];
    for (size_t i = begin; i < *end; i++) e->points[*end + places[class_of(e->points[i])]++] = e->points[i];
    memcpy(e->points + begin, e->points + *end, n * sizeof *e->points);
    return AN_OK;
}

static an_status decompose(an_encoder *e, an_bytes text, form f, size_t *count) {
    enum { MOST = 18 }; /* characters that one can become: U+FDFA */
    const int options = f.compatible ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
    size_t marks = 0; /* where the marks behind the last other character begin */
    for (size_t at = 0; at < text.length;) {
        utf8proc_int32_t parts[MOST];
        const uint32_t c = an_character_next(text.bytes, &at);
        int boundary = 0;
        const bool whole = c < 0x80 || is_unknown(c);
        const utf8proc_ssize_t n =
            whole ? 1
                  : utf8proc_decompose_char((utf8proc_int32_t)c, parts, MOST, (utf8proc_option_t)options, &boundary);
        if (whole) parts[0] = (utf8proc_int32_t)c;
        if (n < 1 || n > MOST) return AN_NOTE(an_encoder_note(e), AN_ERR_UNSUPPORTED, "U+%04X cannot be decomposed", c);
        for (utf8proc_ssize_t i = 0; i < n; i++) {
            if (class_of((uint32_t)parts[i]) == 0) {
                AN_STEP_TRY(sort_marks(e, marks, count));
                marks = *count + 1;
            }
            AN_STEP_TRY(add_point(e, count, (uint32_t)parts[i]));
        }
    }
    return sort_marks(e, marks < *count ? marks : *count, count);
}

/* Composes what lies between characters that normalization does not know: each of them ends what comes before it. */
static an_status compose(an_encoder *e, size_t *count) {
    size_t kept = 0;
    for (size_t begin = 0, end; begin < *count; begin = end) {
        for (end = begin + 1; end < *count && !is_unknown(e->points[end]);) end++;
        const utf8proc_ssize_t n =
            utf8proc_normalize_utf32((utf8proc_int32_t *)(void *)(e->points + begin), (utf8proc_ssize_t)(end - begin),
                                     UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        if (n < 0) return AN_NOTE(an_encoder_note(e), AN_ERR_UNSUPPORTED, "a text cannot be composed");
        memmove(e->points + kept, e->points + begin, (size_t)n * sizeof *e->points);
        kept += (size_t)n;
    }
    *count = kept;
    return AN_OK;
}

static an_status to_form(an_encoder *e, an_bytes text, form f, an_characters *to) {
    size_t count = 0;
    AN_STEP_TRY(decompose(e, text, f, &count));
    if (f.composed) AN_STEP_TRY(compose(e, &count));
    for (size_t i = 0; i < count; i++) AN_STEP_TRY(put(e, to, e->points[i]));
    return AN_OK;
}

static bool is_ascii(an_bytes text) {
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.bytes[i] >= 0x80) return false;
    return true;
}

/* ---- single characters ---- */

static an_status lower(an_encoder *e, an_bytes text, an_characters *to) {
    for (size_t at = 0; at < text.length;) {
        uint32_t small[2];
        const size_t n = an_character_lower(an_character_next(text.bytes, &at), small);
        for (size_t i = 0; i < n; i++) AN_STEP_TRY(put(e, to, small[i]));
    }
    return AN_OK;
}

static an_status without(an_encoder *e, an_bytes text, bool (*is_out)(uint32_t character), an_characters *to) {
    for (size_t at = 0; at < text.length;) {
        const uint32_t c = an_character_next(text.bytes, &at);
        if (!is_out(c)) AN_STEP_TRY(put(e, to, c));
    }
    return AN_OK;
}

/* ---- BERT ---- */

static bool is_chinese(uint32_t c) {
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static an_status clean(an_encoder *e, const an_step *step, an_bytes text, an_characters *to) {
    enum { REPLACEMENT = 0xfffd };
    for (size_t at = 0; at < text.length;) {
        uint32_t c = an_character_next(text.bytes, &at);
        if (step->clean) {
            const bool is_space = an_character_is_space(c), is_plain = c == '\t' || c == '\n' || c == '\r';
            if (c == 0 || c == REPLACEMENT || (!is_plain && an_character_is_other(c))) continue;
            if (is_space) c = ' ';
        }
        const bool apart = step->chinese && is_chinese(c);
        if (apart) AN_STEP_TRY(put(e, to, ' '));
        AN_STEP_TRY(put(e, to, c));
        if (apart) AN_STEP_TRY(put(e, to, ' '));
    }
    return AN_OK;
}

/* Each part of it needs the whole text before: they go to one buffer and the other in turns. */
static an_status bert(an_encoder *e, const an_step *step, an_bytes text, an_characters *to, an_characters *other) {
    AN_STEP_TRY(clean(e, step, text, to));
    if (step->accents && !is_ascii((an_bytes){to->bytes, to->length})) {
        other->length = 0;
        AN_STEP_TRY(to_form(e, (an_bytes){to->bytes, to->length}, (form){false, false}, other));
        to->length = 0;
        AN_STEP_TRY(without(e, (an_bytes){other->bytes, other->length}, an_character_is_nonspacing, to));
    }
    if (!step->lower) return AN_OK;
    other->length = 0;
    AN_STEP_TRY(add(e, other, to->bytes, to->length));
    to->length = 0;
    return lower(e, (an_bytes){other->bytes, other->length}, to);
}

/* ---- replacing ---- */

static an_status replace(an_encoder *e, const an_step *step, an_bytes text, an_characters *to) {
    for (size_t at = 0; at < text.length;) {
        bool found;
        size_t begin = 0, end = 0;
        AN_STEP_TRY(an_matcher_find(&step->matcher, &e->space, text.bytes, text.length, at, &found, &begin, &end,
                                    an_encoder_note(e)));
        if (!found) begin = end = text.length;
        AN_STEP_TRY(add(e, to, text.bytes + at, begin - at));
        if (found) AN_STEP_TRY(add(e, to, step->text.bytes, step->text.length));
        at = end;
    }
    return AN_OK;
}

static an_bytes stripped(const an_step *step, an_bytes text) {
    size_t begin = 0, end = text.length;
    for (size_t at = 0; step->left && at < end; begin = at)
        if (!an_character_is_space(an_character_next(text.bytes, &at))) break;
    for (size_t at = end; step->right && at > begin; end = at)
        if (!an_character_is_space(an_character_before(text.bytes, &at))) break;
    return (an_bytes){text.bytes + begin, end - begin};
}

static an_status apply(an_encoder *e, const an_step *step, an_bytes text, an_characters *to, an_characters *other) {
    switch (step->kind) {
    case AN_STEP_NFC: return to_form(e, text, (form){false, true}, to);
    case AN_STEP_NFD: return to_form(e, text, (form){false, false}, to);
    case AN_STEP_NFKC: return to_form(e, text, (form){true, true}, to);
    case AN_STEP_NFKD: return to_form(e, text, (form){true, false}, to);
    case AN_STEP_LOWERCASE: return lower(e, text, to);
    case AN_STEP_STRIP_ACCENTS: return without(e, text, an_character_is_mark, to);
    case AN_STEP_REPLACE: return replace(e, step, text, to);
    case AN_STEP_BERT_NORMALIZER: return bert(e, step, text, to, other);
    case AN_STEP_PREPEND:
        if (text.length > 0) AN_STEP_TRY(add(e, to, step->text.bytes, step->text.length));
        return add(e, to, text.bytes, text.length);
    default: return add(e, to, text.bytes, text.length);
    }
}

/* Whether a step leaves a text as it is, which needs no second look. */
static bool is_nothing(const an_step *step, an_bytes text) {
    return step->kind <= AN_STEP_NFKD && is_ascii(text);
}

static an_status refuse(an_encoder *e, size_t number) {
    static const char *const names[] = {
        [AN_STEP_NFC] = "NFC",
        [AN_STEP_NFD] = "NFD",
        [AN_STEP_NFKC] = "NFKC",
        [AN_STEP_NFKD] = "NFKD",
        [AN_STEP_LOWERCASE] = "Lowercase",
        [AN_STEP_STRIP_ACCENTS] = "StripAccents",
        [AN_STEP_STRIP] = "Strip",
        [AN_STEP_PREPEND] = "Prepend",
        [AN_STEP_REPLACE] = "Replace",
        [AN_STEP_BERT_NORMALIZER] = "BertNormalizer",
    };
    return AN_NOTE(an_encoder_note(e), AN_ERR_UNSUPPORTED,
                   "normalizer %zu of the tokenizer, %s, makes the text too long: a text can become %d times as long "
                   "as it was, and %d bytes more",
                   number + 1, names[e->tokenizer->normalizers.steps[number].kind], RATIO, LEAST);
}

an_status an_text_normalize(an_encoder *e, an_bytes text, an_bytes *result) {
    const an_steps *steps = &e->tokenizer->normalizers;
    size_t longest = 0;
    int turn = 0;
    for (size_t i = 0; i < steps->count; i++) {
        const an_step *step = &steps->steps[i];
        if (step->kind == AN_STEP_STRIP) {
            text = stripped(step, text);
            continue;
        }
        if (is_nothing(step, text)) continue;
        an_characters *to = &e->normal[turn];
        to->length = 0;
        const an_status status = apply(e, step, text, to, &e->folded);
        if (status != AN_OK) return status == AN_ERR_OVERFLOW ? refuse(e, i) : status;
        text = (an_bytes){to->bytes, to->length};
        longest = text.length > longest ? text.length : longest;
        turn = 1 - turn;
    }
    e->normal_room -= longest;
    *result = text;
    return AN_OK;
}
