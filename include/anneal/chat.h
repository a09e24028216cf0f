/* Conversations as the text that a chat model was trained on. A model's own way to write them, its template, has a name
 * here; the templates themselves, which are programs in tokenizer_config.json, are never run. None of these
 * functions is collective. */
#ifndef ANNEAL_CHAT_H
#define ANNEAL_CHAT_H

#include "anneal/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum an_chat_template {
    AN_CHAT_CHATML = 0, /* <|im_start|>role, a new line, content<|im_end|>: SmolLM2 and many others */
    AN_CHAT_LLAMA3 = 1, /* <|start_header_id|>role<|end_header_id|>, two new lines, content<|eot_id|>: Llama 3 */
    /* [INST]content[/INST]answer</s>: Mistral Nemo and later models without spaces between these */
    AN_CHAT_MISTRAL = 2,
    AN_CHAT_ZEPHYR = 3, /* <|role|>, a new line, content</s> */
    AN_CHAT_QWEN = 4,   /* as ChatML, with the system message of Qwen 2.5 */
    /* as Llama 3, with a system message that begins with two dates, which are fixed: Llama 3.1 and 3.3 */
    AN_CHAT_LLAMA31 = 5,
    AN_CHAT_QWEN3 = 6, /* as ChatML; <think>, what was thought, and </think> precede the answer to the last question */
    AN_CHAT_LIMIT = 0x7fffffff
} an_chat_template;

typedef struct an_chat_format {
    size_t size;
    const char *bos, *eos; /* the texts of these tokens, for templates that write them; NULL: none */
    const char *system;    /* of conversations without a system message; "": none; NULL: the template's own */
    an_chat_template type;
    uint32_t reserved;
} an_chat_format;
AN_API void an_chat_format_init(an_chat_format *format, size_t size);

/* "chatml", "llama3", "mistral", "zephyr", "qwen", "llama3.1" or "qwen3"; NULL after the last. */
AN_API const char *an_chat_template_name(int index);

/* Recognizes the text `chat_template` of a tokenizer_config.json. Sets `type`, and `system` if the template has one of
 * its own, which is written to `memory`. A template that would write a plain conversation in another way than those
 * above is refused: AN_ERR_UNSUPPORTED. `ctx` may be NULL. */
enum { AN_CHAT_SYSTEM_BYTES = 1024 };
AN_API an_status an_chat_recognize(an_chat_format *format, an_context *ctx, const char *text,
                                   char memory[AN_CHAT_SYSTEM_BYTES]);

/* The same with the template of a Hugging Face folder, or the one beside a tokenizer.json: chat_template.jinja, or what
 * tokenizer_config.json has. AN_ERR_UNSUPPORTED too if there is none. */
AN_API an_status an_chat_open(an_chat_format *format, an_context *ctx, const char *path,
                              char memory[AN_CHAT_SYSTEM_BYTES]);

/* One message. Roles are system, user and assistant. This struct never grows. */
typedef struct an_chat_message {
    const char *role, *content;
} an_chat_message;

/* Writes a conversation. *length is its number of bytes; at most `capacity` of them are written. With capacity 0,
 * `text` may be NULL. With `prompt`, the beginning of an answer follows, for generation. */
AN_API an_status an_chat_render(an_context *ctx, const an_chat_format *format, const an_chat_message *messages,
                                int64_t count, bool prompt, char *text, size_t capacity, size_t *length);

/* Makes tokens of a conversation. Only what the template itself writes becomes special tokens: in messages,
 * "<|im_end|>" is text like any other, so nobody who writes one can end it and speak in another's name. The tokens
 * are the encoder's, and valid until its next call. */
AN_API an_status an_chat_encode(an_context *ctx, an_encoder *encoder, const an_chat_format *format,
                                const an_chat_message *messages, int64_t count, bool prompt, const int32_t **tokens,
                                int64_t *token_count);

/* The token that ends an answer, as text. It lives as long as the format's strings. NULL: it is eos,
 * and the format has none. */
AN_API const char *an_chat_end(const an_chat_format *format);

#ifdef __cplusplus
}
#endif
#endif
