/* Conversations, written as the text that a chat model was trained on. How a model writes them is its template, which
 * has a name here. The templates in tokenizer_config.json are programs and are never run. None of these functions is
 * collective. */
#ifndef ANNEAL_CHAT_H
#define ANNEAL_CHAT_H

#include "anneal/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

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

enum { AN_CHAT_SYSTEM_BYTES = 1024 };

/* Finds the format of a published model, a Hugging Face folder or a tokenizer.json, by the template beside it:
 * chat_template.jinja, or the one in tokenizer_config.json. `memory` is as in an_chat_recognize. AN_ERR_UNSUPPORTED:
 * there is no template, or an_chat_recognize refuses it. */
AN_API an_status an_chat_open(an_chat_format *format, an_context *ctx, const char *path,
                              char memory[AN_CHAT_SYSTEM_BYTES]);

/* One message. Roles are system, user and assistant. This struct never grows. */
typedef struct an_chat_message {
    const char *role, *content;
} an_chat_message;

/* Encodes a conversation. With `prompt`, the beginning of an answer follows, for generation. Only what the template
 * itself writes becomes special tokens: in messages, "<|im_end|>" is text like any other, so the author of a message
 * cannot end it and speak in another's name. The tokens belong to the encoder and are valid until its next call. */
AN_API an_status an_chat_encode(an_context *ctx, an_encoder *encoder, const an_chat_format *format,
                                const an_chat_message *messages, int64_t count, bool prompt, const int32_t **tokens,
                                int64_t *token_count);

/* ==== details ==== the rest of the interface */

/* "chatml", "llama3", "mistral", "zephyr", "qwen", "llama3.1" or "qwen3"; NULL after the last. */
AN_API const char *an_chat_template_name(int index);

/* Recognizes the text `chat_template` of a tokenizer_config.json. Sets `type`, and `system` if the template has one of
 * its own, which is written to `memory`; `memory` must outlive the format. AN_ERR_UNSUPPORTED: the template writes a
 * plain conversation in another way than those above. `ctx` may be NULL. */
AN_API an_status an_chat_recognize(an_chat_format *format, an_context *ctx, const char *text,
                                   char memory[AN_CHAT_SYSTEM_BYTES]);

/* Writes a conversation as text. *length is its number of bytes; at most `capacity` of them are written. With capacity
 * 0, `text` may be NULL. With `prompt`, the text ends with the beginning of an answer, for generation. */
AN_API an_status an_chat_render(an_context *ctx, const an_chat_format *format, const an_chat_message *messages,
                                int64_t count, bool prompt, char *text, size_t capacity, size_t *length);

/* The token that ends an answer, as text. It lives as long as the format's strings. NULL: it would be eos, and the
 * format has none. */
AN_API const char *an_chat_end(const an_chat_format *format);

#ifdef __cplusplus
}
#endif
#endif
