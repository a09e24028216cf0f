/* Which template the chat_template of a tokenizer_config.json is. It is a program in Jinja, which is not run: the texts
 * in it tell which family it belongs to, and words that make a plain conversation look different make it unknown. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "text/chat/record.h"
#include "text/structs.h"

static bool has_all(const char *text, const char *const *marks) {
    for (int i = 0; i < AN_CHAT_MARKS && marks[i]; i++)
        if (!strstr(text, marks[i])) return false;
    return true;
}

/* The first of the marks that is in the text; NULL: none is. */
static const char *find_any(const char *text, const char *const *marks) {
    for (int i = 0; i < AN_CHAT_MARKS && marks[i]; i++)
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
    const an_chat_record *record;
    const char *mark = NULL;
    AN_TRY_RETURN(an_chat_format_check(ctx, format));
    AN_TRY_RETURN(an_chat_format_read(ctx, &own, format));
    for (int i = 0; (record = an_chat_record_at(i)); i++) {
        if (!record->needs[0] || !has_all(text, record->needs)) continue;
        mark = find_any(text, record->refuses);
        if (mark) continue;
        own.type = (an_chat_template)i;
        if (record->has_system) AN_TRY_RETURN(find_system(&own, ctx, text, memory));
        return an_chat_format_write(ctx, format, &own);
    }
    return mark ? unknown(ctx, "is not supported, as it contains", mark)
                : unknown(ctx, "is none that anneal knows", NULL);
}
