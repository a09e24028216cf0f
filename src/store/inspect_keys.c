/* The keys of a GGUF file as text. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/text/text.h"
#include "formats/gguf_keys.h"
#include "store/inspect.h"

static void describe_array(const an_gguf_key *key, char *text, size_t size) {
    static const char *const kinds[] = {[AN_GGUF_KIND_INTEGER] = "integers",
                                        [AN_GGUF_KIND_REAL] = "numbers",
                                        [AN_GGUF_KIND_BOOL] = "truth values",
                                        [AN_GGUF_KIND_STRING] = "texts"};
    snprintf(text, size, "%" PRIu64 " %s", an_gguf_key_elements(key), kinds[an_gguf_key_kind(key)]);
}

static void describe_value(const an_gguf_value *v, char *text, size_t size) {
    char word[128];
    const size_t length = v->length < sizeof word - 1 ? v->length : sizeof word - 1;
    switch (v->kind) {
    case AN_GGUF_KIND_INTEGER: snprintf(text, size, "%" PRId64, v->integer); break;
    case AN_GGUF_KIND_REAL: an_text_number(text, size, v->real); break;
    case AN_GGUF_KIND_BOOL: snprintf(text, size, "%s", v->integer ? "true" : "false"); break;
    case AN_GGUF_KIND_STRING:
        if (length > 0) memcpy(word, v->bytes, length);
        word[length] = 0;
        snprintf(text, size, "%s", AN_QUOTE(word));
        break;
    }
}

an_status an_checkpoint_key(const an_checkpoint *checkpoint, int64_t index, char name[AN_KEY_TEXT],
                            char value[AN_KEY_TEXT]) {
    AN_GUARD;
    AN_NEED(checkpoint, name, value);
    const an_gguf *g = checkpoint->manifest ? NULL : an_weights_gguf(&checkpoint->weights);
    an_gguf_value found;
    *name = *value = 0;
    if (!g || index < 0 || (uint64_t)index >= an_gguf_key_count(g)) return AN_OK;
    const an_gguf_key *key = an_gguf_key_at(g, (size_t)index);
    an_gguf_cursor cursor = an_gguf_values(g, key);
    snprintf(name, AN_KEY_TEXT, "%s", AN_QUOTE(an_gguf_key_name(g, key)));
    if (an_gguf_key_is_array(key))
        describe_array(key, value, AN_KEY_TEXT);
    else if (an_gguf_next(&cursor, &found))
        describe_value(&found, value, AN_KEY_TEXT);
    return AN_OK;
}
