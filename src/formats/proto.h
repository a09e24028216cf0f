/* Messages of Protocol Buffers, as far as ONNX needs them. A message is a text of fields; one inside another is
 * written first and then added with its length. */
#ifndef AN_FORMATS_PROTO_H
#define AN_FORMATS_PROTO_H

#include "base/text/text.h"

void an_proto_integer(an_text *message, int field, int64_t value);
void an_proto_float(an_text *message, int field, float value);
void an_proto_string(an_text *message, int field, const char *string);
void an_proto_bytes(an_text *message, int field, const void *bytes, size_t length);
/* The head of a field of bytes that the caller writes behind it, and how long that head is. */
void an_proto_head(an_text *message, int field, uint64_t length);
size_t an_proto_head_bytes(int field, uint64_t length);
/* Adds the message as a field of another, and empties it. */
void an_proto_message(an_text *message, int field, an_text *inside);

#endif
