#include "text/split.h"

#include "text/unicode.h"

/* Takes the parts of a piece, one after another, and makes pieces of them. */
typedef struct cutter {
    an_encoder *encoder;
    an_pieces *to;
    an_split_behavior behavior;
    bool invert;
    bool has_last, last_matches; /* the part before */
    an_piece waiting;            /* a match that belongs to the part behind it; empty: none */
} cutter;

static an_status keep(const cutter *c, size_t begin, size_t end) {
    return begin < end ? an_pieces_add(c->encoder, c->to, begin, end) : AN_OK;
}

static an_status take(cutter *c, size_t begin, size_t end, bool matches) {
    if (begin == end) return AN_OK;
    matches = matches != c->invert;
    const bool same = c->has_last && c->last_matches == matches, follows = c->has_last && !c->last_matches;
    an_piece *last = c->has_last ? &c->to->pieces[c->to->count - 1] : NULL;
    switch (c->behavior) {
    case AN_SPLIT_REMOVED: return matches ? AN_OK : keep(c, begin, end);
    case AN_SPLIT_ISOLATED: return keep(c, begin, end);
    case AN_SPLIT_CONTIGUOUS:
    case AN_SPLIT_WITH_PREVIOUS:
        c->has_last = true;
        c->last_matches = matches;
        if (c->behavior == AN_SPLIT_CONTIGUOUS ? same : matches && follows) return last->end = (uint32_t)end, AN_OK;
        return keep(c, begin, end);
    default: /* AN_SPLIT_WITH_NEXT */
        if (matches) {
            const an_piece before = c->waiting;
            c->waiting = (an_piece){(uint32_t)begin, (uint32_t)end};
            return keep(c, before.begin, before.end);
        }
        if (c->waiting.begin < c->waiting.end) begin = c->waiting.begin;
        c->waiting = (an_piece){0, 0};
        return keep(c, begin, end);
    }
}

static an_status split_by_matcher(cutter *c, const an_matcher *matcher, const char *text, an_piece piece) {
    const size_t length = piece.end - piece.begin;
    const char *const bytes = text + piece.begin; /* a pattern sees nothing beyond the piece */
    if (matcher->scanner && c->behavior == AN_SPLIT_ISOLATED) {
        for (size_t at = 0, end; at < length; at = end) {
            end = an_scanner_next(matcher->scanner, bytes, length, at);
            AN_STEP_TRY(an_pieces_add(c->encoder, c->to, piece.begin + at, piece.begin + end));
        }
        return AN_OK;
    }
    for (size_t at = 0; at < length;) {
        bool found;
        size_t begin = length, end = length;
        AN_STEP_TRY(an_matcher_find(matcher, &c->encoder->space, bytes, length, at, &found, &begin, &end,
                                    an_encoder_note(c->encoder)));
        if (!found) begin = end = length;
        AN_STEP_TRY(take(c, piece.begin + at, piece.begin + begin, false));
        AN_STEP_TRY(take(c, piece.begin + begin, piece.begin + end, true));
        at = end;
    }
    return AN_OK;
}

static an_status split_by_character(cutter *c, bool (*is_match)(uint32_t character), const char *text, an_piece piece) {
    size_t begin = piece.begin;
    for (size_t at = begin; at < piece.end;) {
        size_t next = at;
        if (is_match(an_character_next(text, &next))) {
            AN_STEP_TRY(take(c, begin, at, false));
            AN_STEP_TRY(take(c, at, next, true));
            begin = next;
        }
        at = next;
    }
    return take(c, begin, piece.end, false);
}

static bool is_number(uint32_t character) {
    return an_character_kind_of(character) == AN_CHARACTER_NUMBER;
}

static int word_kind(uint32_t c) {
    return an_character_is_space(c) ? 0 : an_character_is_word(c) ? 1 : 2;
}

/* \w+|[^\w\s]+ */
static an_status split_words(cutter *c, const char *text, an_piece piece) {
    for (size_t at = piece.begin, end; at < piece.end; at = end) {
        end = at;
        const int kind = word_kind(an_character_next(text, &end));
        for (size_t next = end; next < piece.end && word_kind(an_character_next(text, &next)) == kind;) end = next;
        if (kind != 0) AN_STEP_TRY(keep(c, at, end));
    }
    return AN_OK;
}

/* White space is removed, and each punctuation mark is by itself. */
static an_status split_bert(cutter *c, const char *text, an_piece piece) {
    size_t begin = piece.begin;
    for (size_t at = begin; at < piece.end;) {
        size_t next = at;
        const uint32_t character = an_character_next(text, &next);
        const bool is_space = an_character_is_space(character);
        if (is_space || an_character_is_punctuation(character)) {
            AN_STEP_TRY(keep(c, begin, at));
            if (!is_space) AN_STEP_TRY(keep(c, at, next));
            begin = next;
        }
        at = next;
    }
    return keep(c, begin, piece.end);
}

static an_status split_piece(an_encoder *e, const an_step *step, const char *text, an_piece piece, an_pieces *to) {
    cutter c = {.encoder = e, .to = to, .behavior = step->behavior, .invert = step->invert};
    an_status status;
    switch (step->kind) {
    case AN_STEP_BYTE_LEVEL:
        if (!step->matcher.scanner) return keep(&c, piece.begin, piece.end);
        status = split_by_matcher(&c, &step->matcher, text, piece);
        break;
    case AN_STEP_SPLIT: status = split_by_matcher(&c, &step->matcher, text, piece); break;
    case AN_STEP_DIGITS: status = split_by_character(&c, is_number, text, piece); break;
    case AN_STEP_PUNCTUATION: status = split_by_character(&c, an_character_is_punctuation, text, piece); break;
    case AN_STEP_WHITESPACE_SPLIT: status = split_by_character(&c, an_character_is_space, text, piece); break;
    case AN_STEP_WHITESPACE: status = split_words(&c, text, piece); break;
    default: status = split_bert(&c, text, piece); break;
    }
    return status ? status : keep(&c, c.waiting.begin, c.waiting.end);
}

/* Copies the pieces, with a space before each that has none. */
static an_status add_spaces(an_encoder *e, an_bytes *text, an_pieces *pieces) {
    an_characters *to = &e->shaped;
    to->length = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        an_piece *piece = &pieces->pieces[i];
        const size_t begin = to->length;
        if (text->bytes[piece->begin] != ' ') AN_STEP_TRY(an_characters_add(e, to, " ", 1));
        AN_STEP_TRY(an_characters_add(e, to, text->bytes + piece->begin, piece->end - piece->begin));
        *piece = (an_piece){(uint32_t)begin, (uint32_t)to->length};
    }
    *text = (an_bytes){to->bytes, to->length};
    return AN_OK;
}

an_status an_text_split(an_encoder *e, an_bytes text, an_bytes *result, const an_pieces **words) {
    const an_steps *steps = &e->tokenizer->splitters;
    an_pieces *from = &e->pieces[0], *to = &e->pieces[1];
    from->count = 0;
    if (text.length > 0) AN_STEP_TRY(an_pieces_add(e, from, 0, text.length));
    for (size_t i = 0; i < steps->count; i++) {
        const an_step *step = &steps->steps[i];
        if (step->prefix_space) AN_STEP_TRY(add_spaces(e, &text, from));
        to->count = 0;
        for (size_t k = 0; k < from->count; k++) AN_STEP_TRY(split_piece(e, step, text.bytes, from->pieces[k], to));
        an_pieces *const done = to;
        to = from;
        from = done;
    }
    *result = text;
    *words = from;
    return AN_OK;
}
