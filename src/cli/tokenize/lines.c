/* Texts of a part: the part itself, or a member of each line of JSON. */
#include <string.h>

#include "base/text/json.h"
#include "cli/tokenize/tokenize.h"

static bool is_blank(const part *p, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        if (!p->bytes[i] || !strchr(" \t\r\n", p->bytes[i])) return false;
    return true;
}

/* A line of JSON: an object with a member that is the text. */
static bool read_line(part *p, const char *name, size_t begin, size_t end, const char **text, size_t *length) {
    an_json j;
    an_json_string key, found = {NULL, 0};
    an_json_init(&j, p->bytes + begin, end - begin);
    if (an_json_object(&j))
        while (an_json_member(&j, &key))
            if (strcmp(key.bytes, name) != 0 ? !an_json_skip(&j) : !an_json_string_value(&j, &found)) break;
    const bool good = an_json_end(&j);
    *text = found.bytes;
    *length = found.length;
    if (good && found.bytes) return true;
    if (good)
        snprintf(p->error, sizeof p->error,
                 "%s: byte %lld: the record has no '%s'; --key names the member that is the text", p->path,
                 (long long)p->offset + (long long)begin, name);
    else
        snprintf(p->error, sizeof p->error, "%s: byte %lld: %s", p->path,
                 (long long)p->offset + (long long)(begin + j.at), j.problem);
    return false;
}

bool tokenize_next_text(part *p, const char *key, size_t *at, const char **text, size_t *length) {
    if (!p->lines) {
        *text = p->bytes;
        *length = p->length;
        return (*at)++ == 0;
    }
    for (size_t begin = *at, end; begin < p->length; begin = end) {
        const char *line = memchr(p->bytes + begin, '\n', p->length - begin);
        end = line ? (size_t)(line - p->bytes) + 1 : p->length;
        *at = end;
        if (!is_blank(p, begin, end)) return read_line(p, key, begin, end, text, length);
    }
    return false;
}
