#include "run/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"

struct an_events {
    an_context *ctx;
    int file;
    char path[4096];
};

/* ---- bytes ---- */

/* CRC-32C (Castagnoli), bit by bit: records are tens of bytes, a few a second. */
static uint32_t crc32c(const unsigned char *bytes, size_t length) {
    const uint32_t polynomial = 0x82f63b78; /* reflected */
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    }
    return ~crc;
}

/* TFRecord's: a CRC of data that holds CRCs would be weak. */
static uint32_t masked_crc(const unsigned char *bytes, size_t length) {
    const uint32_t crc = crc32c(bytes, length), delta = 0xa282ead8;
    return (crc >> 15 | crc << 17) + delta;
}

typedef struct {
    unsigned char *at;
} writer;

static void put_bytes(writer *w, const void *bytes, size_t length) {
    memcpy(w->at, bytes, length);
    w->at += length;
}

static void put_u64(writer *w, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) *w->at++ = (unsigned char)(value >> 8 * i);
}

static void put_varint(writer *w, uint64_t value) {
    for (; value >= 0x80; value >>= 7) *w->at++ = (unsigned char)(value | 0x80);
    *w->at++ = (unsigned char)value;
}

/* Protobuf: the number of a field and how its value is written. */
enum { VARINT = 0, EIGHT_BYTES = 1, BYTES = 2, FOUR_BYTES = 5 };
static void put_key(writer *w, unsigned field, unsigned type) {
    put_varint(w, field << 3 | type);
}

/* ---- records ---- */

enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3, SUMMARY = 5 }; /* of an Event */
enum { VALUE = 1, TAG = 1, SIMPLE_VALUE = 2 };                   /* of a Summary, and of its Value */
enum { HEAD = sizeof(uint64_t) + sizeof(uint32_t), CRC = sizeof(uint32_t) };

static void put_summary(writer *w, const char *tag, double value) {
    unsigned char inner[AN_EVENT_BYTES];
    writer v = {inner};
    const size_t length = strlen(tag) < AN_EVENT_TAG ? strlen(tag) : AN_EVENT_TAG;
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    put_key(&v, TAG, BYTES);
    put_varint(&v, length);
    put_bytes(&v, tag, length);
    put_key(&v, SIMPLE_VALUE, FOUR_BYTES);
    put_u64(&v, bits, sizeof bits);
    const size_t bytes = (size_t)(v.at - inner), prefix = bytes < 0x80 ? 2 : 3; /* a key and a length */
    put_key(w, SUMMARY, BYTES);
    put_varint(w, prefix + bytes);
    put_key(w, VALUE, BYTES);
    put_varint(w, bytes);
    put_bytes(w, inner, bytes);
}

size_t an_event_encode(double seconds, int64_t step, const char *tag, double value, unsigned char *out) {
    static const char version[] = "brain.Event:2";
    unsigned char data[AN_EVENT_BYTES];
    writer d = {data}, w = {out};
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    put_key(&d, WALL_TIME, EIGHT_BYTES);
    put_u64(&d, bits, sizeof bits);
    if (tag) {
        put_key(&d, STEP, VARINT);
        put_varint(&d, (uint64_t)step);
        put_summary(&d, tag, value);
    } else {
        put_key(&d, FILE_VERSION, BYTES);
        put_varint(&d, sizeof version - 1);
        put_bytes(&d, version, sizeof version - 1);
    }
    const size_t length = (size_t)(d.at - data);
    put_u64(&w, length, sizeof(uint64_t));
    put_u64(&w, masked_crc(out, sizeof(uint64_t)), CRC);
    put_bytes(&w, data, length);
    put_u64(&w, masked_crc(data, length), CRC);
    return (size_t)(w.at - out);
}

/* ---- the file ---- */

static an_status append(an_events *e, const unsigned char *bytes, size_t length) {
    while (length > 0) {
        const ssize_t written = write(e->file, bytes, length);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return AN_ERROR(e->ctx, AN_ERR_FILE, "%s: cannot be written: %s", e->path, strerror(errno));
        bytes += written;
        length -= (size_t)written;
    }
    return AN_OK;
}

an_status an_events_create(an_events **events, an_context *ctx, const char *folder, double seconds) {
    an_status status;
    an_events *e = NULL;
    char host[256] = "", message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    unsigned char record[AN_EVENT_BYTES];
    *events = NULL;
    AN_TRY(an_alloc(ctx, (void **)&e, 1, sizeof *e));
    e->ctx = ctx;
    e->file = -1;
    if (gethostname(host, sizeof host - 1) != 0 || strchr(host, '/')) strcpy(host, "localhost");
    const int length = snprintf(e->path, sizeof e->path, "%s/events.out.tfevents.%.0f.%s", folder, seconds, host);
    AN_CHECK(ctx, length > 0 && (size_t)length < sizeof e->path, AN_ERR_ARGUMENT,
             "the path of the run folder is too long");
    AN_TRY(an_note_raise(ctx, an_file_open(&e->file, e->path, O_WRONLY | O_CREAT | O_APPEND, note), note));
    AN_TRY(append(e, record, an_event_encode(seconds, 0, NULL, 0, record)));
    *events = e;
    return AN_OK;
fail:
    an_events_destroy(&e);
    return status;
}

an_status an_events_scalar(an_events *events, double seconds, int64_t step, const char *tag, double value) {
    unsigned char record[AN_EVENT_BYTES];
    return append(events, record, an_event_encode(seconds, step, tag, value, record));
}

void an_events_destroy(an_events **events) {
    an_events *e = events ? *events : NULL;
    if (!e) return;
    an_context *ctx = e->ctx;
    if (e->file >= 0) close(e->file);
    an_release(ctx, (void **)events, 1, sizeof *e);
}
