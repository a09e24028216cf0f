#include "interchange/renames.h"

#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/memory.h"
#include "base/pattern.h"
#include "base/text/text.h"

enum { MATCH_STEPS = 100000 }; /* a pattern that needs more is refused instead of being waited for */

struct an_renaming {
    const char *pattern, *text;
    pcre2_code *code;
    bool used;
};

void an_renamings_destroy(an_renamings *n) {
    for (int i = 0; i < n->count && n->rules; i++) pcre2_code_free(n->rules[i].code);
    pcre2_match_context_free(n->limits);
    an_release(n->ctx, (void **)&n->rules, (size_t)n->count, sizeof *n->rules);
}

an_status an_renamings_create(an_renamings *n, an_context *ctx, int count, const an_load_rename *renames) {
    an_status status;
    *n = (an_renamings){.ctx = ctx, .count = count};
    AN_TRY(an_alloc(ctx, (void **)&n->rules, (size_t)n->count, sizeof *n->rules));
    n->limits = pcre2_match_context_create(NULL);
    AN_CHECK(ctx, n->limits, AN_ERR_MEMORY, "not enough memory for the patterns of model.init.rename");
    pcre2_set_match_limit(n->limits, MATCH_STEPS);
    for (int i = 0; i < n->count; i++) {
        an_renaming *r = &n->rules[i];
        PCRE2_UCHAR message[128];
        int error;
        PCRE2_SIZE at;
        r->pattern = renames[i].pattern;
        r->text = renames[i].text;
        r->code = an_pattern_compile(r->pattern, PCRE2_UTF, &error, &at);
        if (!r->code) pcre2_get_error_message(error, message, sizeof message);
        AN_CHECK(ctx, r->code, AN_ERR_ARGUMENT,
                 "the pattern '%s' of rename is not a valid regular expression: %s, at character %zu",
                 AN_QUOTE(r->pattern), (const char *)message, (size_t)at + 1);
    }
    status = AN_OK;
fail:
    return status;
}

an_status an_renamings_apply(const an_renamings *n, const char *name, char out[AN_NAME_BYTES]) {
    const size_t length = strlen(name);
    char before[AN_NAME_BYTES];
    snprintf(out, AN_NAME_BYTES, "%s", length < AN_NAME_BYTES ? name : "");
    for (int i = 0; i < n->count && length < AN_NAME_BYTES; i++) {
        an_renaming *r = &n->rules[i];
        PCRE2_SIZE made = AN_NAME_BYTES;
        memcpy(before, out, AN_NAME_BYTES);
        const int count =
            pcre2_substitute(r->code, (PCRE2_SPTR)before, PCRE2_ZERO_TERMINATED, 0, PCRE2_SUBSTITUTE_GLOBAL, NULL,
                             n->limits, (PCRE2_SPTR)r->text, PCRE2_ZERO_TERMINATED, (PCRE2_UCHAR *)out, &made);
        r->used = r->used || count > 0;
        if (count >= 0) continue;
        PCRE2_UCHAR message[128];
        pcre2_get_error_message(count, message, sizeof message);
        return AN_ERROR(n->ctx, AN_ERR_ARGUMENT, "renaming '%s' by '%s: %s' failed: %s", AN_QUOTE(before),
                        AN_QUOTE(r->pattern), AN_QUOTE(r->text),
                        count == PCRE2_ERROR_NOMEMORY ? "the name would be too long" : (const char *)message);
    }
    return AN_OK;
}

void an_renamings_tell(const an_renamings *n, const char *path) {
    for (int i = 0; i < n->count; i++)
        if (!n->rules[i].used)
            an_log_write(n->ctx, AN_LOG_WARNING, "model.init.rename: '%s' matches no tensor of %s",
                         AN_QUOTE(n->rules[i].pattern), path);
}
