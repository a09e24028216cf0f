/* Reads messages of conversations, {"role": …, "content": …}: of data for fine-tuning in the library, and of prompts
 * in the command. Needs no context. */
#ifndef AN_BASE_JSON_MESSAGE_H
#define AN_BASE_JSON_MESSAGE_H

#include "anneal/chat.h"
#include "base/text/json.h"

/* Reads the string of a member that an object may have once; `what` is the problem if it is no string. */
bool an_json_string_once(an_json *json, an_json_string *to, const char *what);

/* Reads one message. Its strings lie in the text of `json`. */
bool an_json_message(an_json *json, an_chat_message *message);

#endif
