#define _GNU_SOURCE /* gettid; NOLINT(bugprone-reserved-identifier) */
#include "base/heartbeat.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

/* Writers leave the last byte of a text alone, which is zero from the beginning: it ends whatever is seen of it. */
enum { LENGTH = AN_HEARTBEAT_TEXT - 1 };

/* In the order of an_heartbeat_phase. Of one size, so that copying one is a load and a store. */
enum { PHASE_BYTES = 16 };
#define PHASE(name) \
    { name, sizeof(name) - 1 }
static const struct {
    char name[PHASE_BYTES];
    size_t length;
} phases[] = {PHASE("start "), PHASE("load "),       PHASE("forward "),    PHASE("backward "),
              PHASE("step "),  PHASE("evaluation "), PHASE("prediction "), PHASE("save ")};
enum { PHASES = sizeof phases / sizeof *phases };

/* A text under construction in a slot. */
typedef struct {
    char *at, *end;
} writing;

static bool is_slot(int slot) {
    return slot >= 0 && slot < AN_HEARTBEAT_SLOTS;
}

static writing begin(an_heartbeat_slot *slot) {
    return (writing){slot->text, slot->text + LENGTH};
}

static void put(writing *w, const char *text) {
    const size_t length = strnlen(text, (size_t)(w->end - w->at));
    memcpy(w->at, text, length);
    w->at += length;
}

/* Only the slot's own thread counts, so that no instruction of the processor needs to lock. */
static void beat(an_heartbeat_slot *slot) {
    const int64_t beats = __atomic_load_n(&slot->beats, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->beats, (int64_t)((uint64_t)beats + 1), __ATOMIC_RELEASE);
}

static void finish(an_heartbeat_slot *slot, const writing *w) {
    *w->at = 0;
    beat(slot);
}

/* ---- slots ---- */

int an_heartbeat_slot_take(const an_context *ctx) {
    const int64_t thread = gettid();
    for (int i = AN_HEARTBEAT_OWNER + 1; ctx->heartbeat && i < AN_HEARTBEAT_SLOTS; i++) {
        int64_t nobody = 0;
        if (__atomic_compare_exchange_n(&ctx->heartbeat->slots[i].thread, &nobody, thread, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return i;
    }
    return AN_HEARTBEAT_NONE;
}

void an_heartbeat_slot_give(const an_context *ctx, int slot) {
    if (!ctx->heartbeat || !is_slot(slot)) return;
    ctx->heartbeat->slots[slot].text[0] = 0;
    __atomic_store_n(&ctx->heartbeat->slots[slot].thread, 0, __ATOMIC_RELEASE);
}

void an_heartbeat_start(an_heartbeat *heartbeat) {
    __atomic_store_n(&heartbeat->slots[AN_HEARTBEAT_OWNER].thread, (int64_t)gettid(), __ATOMIC_RELEASE);
    an_heartbeat_write_phase(heartbeat, AN_HEARTBEAT_START, "start");
}

/* ---- writing ---- */

void an_heartbeat_write_beat(an_heartbeat *heartbeat, int slot) {
    if (is_slot(slot)) beat(&heartbeat->slots[slot]);
}

void an_heartbeat_write(an_heartbeat *heartbeat, int slot, const char *format, va_list arguments) {
    char text[AN_HEARTBEAT_TEXT];
    if (!is_slot(slot)) return;
    vsnprintf(text, sizeof text, format, arguments);
    writing w = begin(&heartbeat->slots[slot]);
    put(&w, text);
    finish(&heartbeat->slots[slot], &w);
}

void an_heartbeat_write_number(an_heartbeat *heartbeat, int slot, const char *before, int64_t number,
                               const char *after) {
    enum { MOST_DIGITS = 20, BASE = 10 };
    char digits[MOST_DIGITS + 1];
    char *first = digits + MOST_DIGITS;
    if (!is_slot(slot)) return;
    *first = 0;
    for (uint64_t rest = number > 0 ? (uint64_t)number : 0; rest > 0 || !*first; rest /= BASE)
        *--first = (char)('0' + rest % BASE);
    writing w = begin(&heartbeat->slots[slot]);
    put(&w, before);
    put(&w, first);
    put(&w, after);
    finish(&heartbeat->slots[slot], &w);
}

enum { MOST_PATH = 64, MOST_OP = 24, AROUND = 4 }; /* of a node's path and op; "(", ")", a space and the end */
_Static_assert(PHASE_BYTES + MOST_PATH + MOST_OP + AROUND <= AN_HEARTBEAT_TEXT, "a place has room");

/* This is called for every instruction, and a small one takes a microsecond. */
void an_heartbeat_write_place(an_heartbeat *heartbeat, an_heartbeat_phase phase, const char *path, const char *op) {
    an_heartbeat_slot *slot = &heartbeat->slots[AN_HEARTBEAT_OWNER];
    const size_t path_length = strnlen(path, MOST_PATH), op_length = strnlen(op, MOST_OP);
    char *at = slot->text;
    __atomic_store_n(&heartbeat->phase, (uint64_t)phase, __ATOMIC_RELAXED);
    memcpy(at, phases[phase].name, PHASE_BYTES);
    at += phases[phase].length;
    memcpy(at, path, path_length);
    at += path_length;
    *at++ = ' ';
    *at++ = '(';
    memcpy(at, op, op_length);
    at += op_length;
    *at++ = ')';
    *at = 0;
    beat(slot);
}

void an_heartbeat_write_phase(an_heartbeat *heartbeat, an_heartbeat_phase phase, const char *text) {
    an_heartbeat_slot *slot = &heartbeat->slots[AN_HEARTBEAT_OWNER];
    writing w = begin(slot);
    __atomic_store_n(&heartbeat->phase, (uint64_t)phase, __ATOMIC_RELAXED);
    put(&w, text);
    finish(slot, &w);
}

/* ---- reading ---- */

/* Bytes of UTF-8 stay: what is torn of it shows as nonsense, and harms no terminal. */
static void clean(char *text) {
    enum { DELETE = 127 };
    text[LENGTH] = 0;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == DELETE || *text == '"') *text = '?';
}

void an_heartbeat_init(an_heartbeat *heartbeat, size_t size) {
    if (!heartbeat || size < sizeof heartbeat->size) return;
    memset(heartbeat, 0, size);
    heartbeat->size = size;
}

void an_heartbeat_read(const an_heartbeat *heartbeat, an_heartbeat *copy) {
    AN_NEED_OR(, heartbeat, copy);
    uint64_t beats = 0;
    copy->size = sizeof *copy;
    copy->step = __atomic_load_n(&heartbeat->step, __ATOMIC_RELAXED);
    copy->phase = __atomic_load_n(&heartbeat->phase, __ATOMIC_RELAXED);
    if (copy->phase >= PHASES) copy->phase = AN_HEARTBEAT_START;
    for (int i = 0; i < AN_HEARTBEAT_SLOTS; i++) {
        const an_heartbeat_slot *from = &heartbeat->slots[i];
        an_heartbeat_slot *to = &copy->slots[i];
        to->beats = __atomic_load_n(&from->beats, __ATOMIC_ACQUIRE);
        to->thread = __atomic_load_n(&from->thread, __ATOMIC_ACQUIRE);
        memcpy(to->text, from->text, sizeof to->text);
        clean(to->text);
        beats += (uint64_t)to->beats;
    }
    copy->beats = (int64_t)beats;
}
