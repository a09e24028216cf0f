/* Encoding of parts, by threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
                 an_last_error(NULL));
        return false;
    }
    if (!add(p, tokens, (size_t)count)) return false;
    p->documents += ends;
    return !ends || c->end < 0 || add(p, &c->end, 1);
}

static void encode_part(const encoding *c, an_encoder *e, part *p) {
    const char *text;
    size_t at = 0, length;
    while (tokenize_next_text(p, c->key, &at, &text, &length))
        if (!encode_text(c, e, p, text, length, p->lines || p->ends)) return;
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
    const int maximum = c->threads < count ? c->threads : count;
    int started = 0;
    while (started < maximum - 1 && pthread_create(&threads[started], NULL, run, &w) == 0) started++;
    run(&w); /* this thread too: with one, or if none can be started */
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return atomic_load(&w.next) >= count && !atomic_load(&w.failed);
}
