/* A small BERT, for tests: its folder, as it is and as others publish such models, and a tokenizer. */
#ifndef TESTS_OPEN_BERT_SUPPORT_H
#define TESTS_OPEN_BERT_SUPPORT_H

#include <unistd.h>

#include "open/init_support.h" /* last, as its ctx would be shadowed */

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/"
enum { MOST_BYTES = 1 << 17, VOCABULARY = 24 };

static inline size_t read_all(const char *path, char *bytes) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, MOST_BYTES - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_true(count < MOST_BYTES - 1);
    bytes[count] = 0;
    return count;
}

/* hub: the golden model, in whose config.json `old` is `new`. */
static inline void make_folder(const char *old, const char *new) {
    static char bytes[MOST_BYTES], changed[2 * MOST_BYTES];
    mkdir("hub", 0777);
    unlink("hub/modules.json");
    unlink("hub/1_Pooling/config.json");
    rmdir("hub/1_Pooling");
    write_file("hub/model.safetensors", bytes, read_all(GOLDEN "huggingface/bert/model.safetensors", bytes));
    read_all(GOLDEN "huggingface/bert/config.json", bytes);
    char *at = strstr(bytes, old);
    if (!at) fail_msg("'%s' is not in config.json", old);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - bytes), bytes, new, at + strlen(old));
    write_text("hub/config.json", changed);
}

static inline void make_sentence_folder(const char *pooling) {
    make_folder("BertForSequenceClassification", "BertModel");
    mkdir("hub/1_Pooling", 0777);
    write_text("hub/1_Pooling/config.json", pooling);
    write_text(
        "hub/modules.json",
        "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},"
        " {\"idx\": 1, \"name\": \"1\", \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},"
        " {\"idx\": 2, \"name\": \"2\", \"path\": \"2_Normalize\", \"type\": "
        "\"sentence_transformers.models.Normalize\"}]");
}

/* Words of one letter, each a token; 0 is padding and 1 an unknown word. */
static inline void write_tokenizer(void) {
    char text[2048];
    size_t at = (size_t)snprintf(
        text, sizeof text,
        "{\"version\": \"1.0\", \"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": {\"type\": "
        "\"BertPreTokenizer\"}, "
        "\"post_processor\": null, \"decoder\": null, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", "
        "\"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, \"vocab\": {\"[PAD]\": 0, "
        "\"[UNK]\": 1");
    for (int i = 2; i < VOCABULARY; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, ", \"%c\": %d", 'a' + i - 2, i);
    snprintf(text + at, sizeof text - at, "}}}");
    write_text("tokenizer.json", text);
}

#endif
