/* Encoding of parts, by threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "cli/tokenize/tokenize.h"

typedef struct work {
    const encoding *encoding;
    part *parts;
    int count;
    atomic_int next;
    atomic_bool failed; /* no memory for an encoder */
} work;

static bool add(part *p, const int32_t *tokens, size_t count) {
    if (p->count + count > p->token_capacity) {
        const size_t capacity = 2 * (p->count + count);
        int32_t *const grown = realloc(p->tokens, capacity * sizeof *grown);
        if (!grown) {
            snprintf(p->error, sizeof p->error, "out of memory");
            return false;
        }
        p->tokens = grown;
        p->token_capacity = capacity;
    }
    if (count > 0) memcpy(p->tokens + p->count, tokens, count * sizeof *tokens);
    p->count += count;
    return true;
}

static bool encode_text(const encoding *c, an_encoder *e, part *p, const char *text, size_t length, bool ends) {
    an_encode_options options;
    const int32_t *tokens;
    int64_t count;
    an_encode_options_init(&options, sizeof options);
    options.special = options.parse = false; /* what looks like a special token is text here */
    if (an_encoder_run(e, text, length, &options, &tokens, &count) != AN_OK) {
        snprintf(p->error, sizeof p->error, "%s: byte %lld: %.900s", p->path, (long long)p->offset,
                 an_encoder_error(e));
        return false;
    }
    if (!add(p, tokens, (size_t)count)) return false;
    p->documents += ends;
    return !ends || c->end < 0 || add(p, &c->end, 1);
}

/* A line of JSON: an object with a member that is the text. */
static bool encode_line(const encoding *c, an_encoder *e, part *p, size_t begin, size_t end) {
    an_json j;
    an_json_string key, text = {NULL, 0};
    bool blank = true;
    for (size_t i = begin; i < end && blank; i++) blank = strchr(" \t\r\n", p->bytes[i]) && p->bytes[i];
    if (blank) return true;
    an_json_init(&j, p->bytes + begin, end - begin);
    if (an_json_object(&j))
        while (an_json_member(&j, &key))
            if (strcmp(key.bytes, c->key) != 0 ? !an_json_skip(&j) : !an_json_string_value(&j, &text)) break;
    const bool good = an_json_end(&j);
    if (!good || !text.bytes) {
        if (good)
            snprintf(p->error, sizeof p->error,
                     "%s: byte %lld: the record has no '%s'; --key names the member that is the text", p->path,
                     (long long)p->offset + (long long)begin, c->key);
        else
            snprintf(p->error, sizeof p->error, "%s: byte %lld: %s", p->path,
                     (long long)p->offset + (long long)(begin + j.at), j.problem);
        return false;
    }
    return encode_text(c, e, p, text.bytes, text.length, true);
}

static void encode_part(const encoding *c, an_encoder *e, part *p) {
    if (!p->lines) {
        encode_text(c, e, p, p->bytes, p->length, p->ends);
        return;
    }
    for (size_t begin = 0, end; begin < p->length; begin = end) {
        const char *line = memchr(p->bytes + begin, '\n', p->length - begin);
        end = line ? (size_t)(line - p->bytes) + 1 : p->length;
        if (!encode_line(c, e, p, begin, end)) return;
    }
}

static void *run(void *user) {
    work *w = user;
    an_encoder *e = NULL;
    if (an_encoder_create(&e, w->encoding->tokenizer) != AN_OK) {
        atomic_store(&w->failed, true);
        return NULL;
    }
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->count;) encode_part(w->encoding, e, &w->parts[i]);
    an_encoder_destroy(&e);
    return NULL;
}

bool tokenize_encode(const encoding *c, part *parts, int count) {
    work w = {.encoding = c, .parts = parts, .count = count};
    pthread_t threads[TOKENIZE_BATCH];
    const int most = c->threads < count ? c->threads : count;
    int started = 0;
    while (started < most - 1 && pthread_create(&threads[started], NULL, run, &w) == 0) started++;
    run(&w); /* this thread too: with one, or if none can be started */
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return atomic_load(&w.next) >= count && !atomic_load(&w.failed);
}
