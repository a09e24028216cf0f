#include "base/text/json_message.h"

#include <string.h>

bool an_json_string_once(an_json *json, an_json_string *to, const char *what) {
    if (json->problem) return false;
    if (to->bytes) return an_json_refuse(json, json->at, "a member appears twice");
    if (an_json_peek(json) != '"') return an_json_refuse(json, json->at, what);
    return an_json_string_value(json, to);
}

bool an_json_message(an_json *json, an_chat_message *message) {
    an_json_string key, role = {NULL, 0}, content = {NULL, 0};
    const size_t at = json->at;
    if (an_json_peek(json) != '{' || !an_json_object(json))
        return an_json_refuse(json, at, "a message is an object with role and content");
    while (an_json_member(json, &key))
        if (!strcmp(key.bytes, "role"))
            an_json_string_once(json, &role, "the role of a message is one text");
        else if (!strcmp(key.bytes, "content"))
            an_json_string_once(json, &content, "the content of a message is one text");
        else if (!strcmp(key.bytes, "tool_calls"))
            an_json_refuse(json, json->at, "messages with tool_calls are not supported; write them as text");
        else
            an_json_skip(json);
    if (!json->problem && (!role.bytes || !content.bytes))
        an_json_refuse(json, at, "a message needs a role and a content");
    *message = (an_chat_message){role.bytes, content.bytes};
    return !json->problem;
}
