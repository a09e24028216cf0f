#include "launch/rank_state.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of UTF-8 stay. */
static void clean(char *text, size_t capacity) {
    enum { DELETE = 127 };
    text[capacity - 1] = 0;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == DELETE) *text = '?';
}

bool an_rank_message_check(an_rank_message *message, int32_t ranks) {
    an_rank_state *s = &message->state;
    if (message->kind >= AN_RANK_MESSAGES) return false;
    if (message->kind != AN_RANK_STATE && message->kind != AN_RANK_EXIT && message->kind != AN_RANK_HERE) {
        clean(message->text, sizeof message->text);
        return true;
    }
    if (message->kind == AN_RANK_HERE && (message->code < 0 || message->code >= AN_RANK_STAGES)) return false;
    clean(s->host, sizeof s->host);
    clean(s->place, sizeof s->place);
    clean(s->kind, sizeof s->kind);
    clean(s->waits_for, sizeof s->waits_for);
    return s->rank >= 0 && s->rank < ranks && s->waits <= 1 && s->left <= 1 && s->step >= 0;
}

/* ---- the address of a supervisor ---- */

void an_rank_supervisor_write(const struct sockaddr_in *address, const an_siphash_key *key,
                              char text[AN_RANK_SUPERVISOR_TEXT]) {
    char name[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &address->sin_addr, name, sizeof name);
    snprintf(text, AN_RANK_SUPERVISOR_TEXT, "%s:%u:%016" PRIx64 "%016" PRIx64, name, ntohs(address->sin_port),
             key->words[0], key->words[1]);
}

/* Sixteen hexadecimal digits, and nothing else. */
static bool read_word(const char *text, uint64_t *word) {
    enum { DIGITS = 16, BASE = 16 };
    char digits[DIGITS + 1];
    if (strspn(text, "0123456789abcdef") < DIGITS) return false;
    snprintf(digits, sizeof digits, "%.*s", DIGITS, text);
    *word = strtoull(digits, NULL, BASE);
    return true;
}

bool an_rank_supervisor_read(const char *text, struct sockaddr_in *address, an_siphash_key *key) {
    enum { DIGITS = 16, BASE = 10, MOST_PORT = 65535 };
    char name[INET_ADDRSTRLEN];
    const size_t length = strcspn(text, ":");
    if (length >= sizeof name || text[length] != ':') return false;
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    char *end;
    const char *digits = text + length + 1;
    const long port = strtol(digits, &end, BASE);
    if (*digits < '0' || *digits > '9' || *end != ':' || port < 1 || port > MOST_PORT) return false;
    end++;
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, name, &address->sin_addr) == 1 && strlen(end) == 2 * (size_t)DIGITS &&
           read_word(end, &key->words[0]) && read_word(end + DIGITS, &key->words[1]);
}
