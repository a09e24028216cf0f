#include "base/pattern.h"

enum { MOST_PARENTHESES = 24 }; /* in each other */

pcre2_code *an_pattern_compile(const char *text, uint32_t options, int *error, PCRE2_SIZE *at) {
    pcre2_compile_context *limits = pcre2_compile_context_create(NULL);
    *error = PCRE2_ERROR_NOMEMORY;
    *at = 0;
    if (!limits) return NULL;
    pcre2_set_parens_nest_limit(limits, MOST_PARENTHESES);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, error, at, limits);
    pcre2_compile_context_free(limits);
    return code;
}
