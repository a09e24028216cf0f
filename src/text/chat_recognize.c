/* Which template the chat_template of a tokenizer_config.json is. It is a program in Jinja, which is not run: the texts
 * in it tell which family it belongs to, and words that make a plain conversation look different make it unknown. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/structs.h"
#include "text/chat.h"

enum { MOST_MARKS = 8 };

static const struct {
    an_chat_template type;
    const char *needs[MOST_MARKS];   /* all of these are in the text */
    const char *refuses[MOST_MARKS]; /* and none of these: the content is changed, or something is added */
} families[] = {
    {AN_CHAT_CHATML,
     {"<|im_start|>", "<|im_end|>"},
     {"<think>", "reasoning", "trim", "strip", "strftime", "date", "bos_token"}},
    {AN_CHAT_LLAMA3,
     {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "trim"},
     {"<think>", "Cutting Knowledge", "strftime", "date_string", "Environment", "tool", "function"}},
    {AN_CHAT_LLAMA31,
     {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "trim", "Cutting Knowledge Date: December 2023",
      "Today Date: ", "26 Jul 2024"},
     {"<think>", "strftime"}},
    {AN_CHAT_QWEN3,
     {"<|im_start|>", "<|im_end|>", "enable_thinking is false", "<think>\\n\\n</think>\\n\\n", "ns.last_query_index",
      "reasoning_content.strip('\\n')"},
     {"trim", "strftime", "date", "bos_token", "macro"}},
    {AN_CHAT_MISTRAL,
     {"[INST]", "[/INST]", "eos_token", "loop.last and system_message"},
     {"[INST] ", " [/INST]", "<<SYS>>", "[SYSTEM_PROMPT]", "trim", "strip", "<think>", "strftime"}},
    {AN_CHAT_ZEPHYR,
     {"<|user|>", "<|assistant|>", "<|system|>", "eos_token"},
     {"<|end|>", "trim", "strip", "<think>", "strftime"}},
};

static bool has_all(const char *text, const char *const *marks) {
    for (int i = 0; i < MOST_MARKS && marks[i]; i++)
        if (!strstr(text, marks[i])) return false;
    return true;
}

/* The first of the marks that is in the text; NULL: none is. */
static const char *find_any(const char *text, const char *const *marks) {
    for (int i = 0; i < MOST_MARKS && marks[i]; i++)
        if (strstr(text, marks[i])) return marks[i];
    return NULL;
}

static an_status unknown(an_context *ctx, const char *why, const char *mark) {
    char list[160] = "";
    size_t length = 0;
    for (int i = 0; an_chat_template_name(i); i++)
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", an_chat_template_name(i));
    return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                    "the chat template %s%s%s%s; choose one of %s by its name if the model can read it, or write "
                    "conversations as prompt and completion",
                    why, mark ? " '" : "", mark ? mark : "", mark ? "'" : "", list);
}

/* A new line, written as itself or as \n. */
static const char *after_line(const char *at) {
    return *at == '\n' ? at + 1 : at[0] == '\\' && at[1] == 'n' ? at + 2 : NULL;
}

/* The text between the head of a system message and its end, where both are in one string of the template. */
static an_status find_system(an_chat_format *format, an_context *ctx, const char *text, char *memory) {
    static const char head[] = "<|im_start|>system", end[] = "<|im_end|>";
    for (const char *at = text; (at = strstr(at, head)) != NULL; at++) {
        const char *begin = after_line(at + sizeof head - 1);
        const char *stop = begin ? strstr(begin, end) : NULL;
        if (!stop || stop == begin || strchr("'\"{", *begin)) continue; /* what follows is the content of a message */
        const size_t length = (size_t)(stop - begin);
        if (strcspn(begin, "'\"{\\") < length)
            return unknown(ctx, "has a system message with quotes, escapes or parts that are computed", NULL);
        if (length >= AN_CHAT_SYSTEM_BYTES) return unknown(ctx, "has a system message that is too long", NULL);
        memcpy(memory, begin, length);
        memory[length] = 0;
        format->system = memory;
        return AN_OK;
    }
    return AN_OK;
}

an_status an_chat_recognize(an_chat_format *format, an_context *ctx, const char *text,
                            char memory[AN_CHAT_SYSTEM_BYTES]) {
    AN_NEED_IN(ctx, format, text, memory);
    an_chat_format own;
    const char *mark = NULL;
    AN_TRY_RETURN(an_chat_format_check(ctx, format));
    AN_TRY_RETURN(an_chat_format_read(ctx, &own, format));
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (!has_all(text, families[i].needs)) continue;
        mark = find_any(text, families[i].refuses);
        if (mark) continue;
        own.type = families[i].type;
        if (own.type == AN_CHAT_CHATML) AN_TRY_RETURN(find_system(&own, ctx, text, memory));
        return an_chat_format_write(ctx, format, &own);
    }
    return mark ? unknown(ctx, "is not supported, as it contains", mark)
                : unknown(ctx, "is none that anneal knows", NULL);
}
