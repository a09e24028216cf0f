#include "formats/proto.h"

#include <string.h>

enum { VARINT = 0, LENGTH = 2, FIXED_32 = 5, MOST_VARINT = 10 };

static size_t encode(uint64_t value, char bytes[MOST_VARINT]) {
    size_t length = 0;
    for (; value >= 0x80; value >>= 7) bytes[length++] = (char)(value | 0x80);
    bytes[length++] = (char)value;
    return length;
}

static void varint(an_text *message, uint64_t value) {
    char bytes[MOST_VARINT];
    an_text_bytes(message, bytes, encode(value, bytes));
}

static uint64_t key(int field, int kind) {
    return (uint64_t)field << 3 | (uint64_t)kind;
}

void an_proto_integer(an_text *message, int field, int64_t value) {
    varint(message, key(field, VARINT));
    varint(message, (uint64_t)value);
}

void an_proto_float(an_text *message, int field, float value) {
    uint32_t bits;
    char bytes[sizeof bits];
    memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bits; i++) bytes[i] = (char)(bits >> 8 * i);
    varint(message, key(field, FIXED_32));
    an_text_bytes(message, bytes, sizeof bytes);
}

void an_proto_head(an_text *message, int field, uint64_t length) {
    varint(message, key(field, LENGTH));
    varint(message, length);
}

size_t an_proto_head_bytes(int field, uint64_t length) {
    char bytes[MOST_VARINT];
    return encode(key(field, LENGTH), bytes) + encode(length, bytes);
}

void an_proto_bytes(an_text *message, int field, const void *bytes, size_t length) {
    an_proto_head(message, field, length);
    an_text_bytes(message, bytes, length);
}

void an_proto_string(an_text *message, int field, const char *string) {
    an_proto_bytes(message, field, string, strlen(string));
}

void an_proto_message(an_text *message, int field, an_text *inside) {
    if (inside->status != AN_OK) message->status = inside->status;
    if (message->status == AN_OK) an_proto_bytes(message, field, inside->length ? inside->bytes : "", inside->length);
    inside->length = 0;
}
