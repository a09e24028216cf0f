/* What ranks say about themselves, as bytes from anybody. */
#include "launch/rank_state.h"

#include <arpa/inet.h>

#include "support/support.h"

enum { RANKS = 4 };

static void messages_are_checked(void **state) {
    (void)state;
    an_rank_message m = {.kind = AN_RANK_STATE};
    m.state.rank = 3;
    assert_true(an_rank_message_check(&m, RANKS));
    m.state.rank = 4;
    assert_false(an_rank_message_check(&m, RANKS));
    m.state.rank = -1;
    assert_false(an_rank_message_check(&m, RANKS));
    m.state.rank = 0;
    m.state.waits = 2;
    assert_false(an_rank_message_check(&m, RANKS));
    m.state.waits = 1;
    m.state.step = -1;
    assert_false(an_rank_message_check(&m, RANKS));
    m.state.step = 0;
    m.kind = AN_RANK_HERE;
    m.code = AN_RANK_JOINED;
    assert_true(an_rank_message_check(&m, RANKS));
    m.code = AN_RANK_STAGES;
    assert_false(an_rank_message_check(&m, RANKS));
    m.code = -1;
    assert_false(an_rank_message_check(&m, RANKS));
    m.code = AN_RANK_LOADED;
    m.state.rank = RANKS;
    assert_false(an_rank_message_check(&m, RANKS));
    m.kind = AN_RANK_MESSAGES;
    assert_false(an_rank_message_check(&m, RANKS));
}

/* They are printed to a terminal. */
static void texts_are_cleaned(void **state) {
    (void)state;
    an_rank_message m = {.kind = AN_RANK_STATE};
    memset(m.state.host, 'h', sizeof m.state.host);
    snprintf(m.state.place, sizeof m.state.place, "a\x1b[2Jb\x7f\xc3\xa4");
    assert_true(an_rank_message_check(&m, RANKS));
    assert_int_equal(strlen(m.state.host), sizeof m.state.host - 1);
    assert_string_equal(m.state.place, "a?[2Jb?\xc3\xa4");
    m.kind = AN_RANK_STALL;
    memset(m.text, '\n', sizeof m.text);
    assert_true(an_rank_message_check(&m, RANKS));
    assert_int_equal(strlen(m.text), sizeof m.text - 1);
    assert_int_equal(m.text[0], '?');
}

static void addresses_of_supervisors(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        "127.0.0.1",
        "127.0.0.1:40123",
        "127.0.0.1:40123:",
        "127.0.0.1:40123:00112233445566778899aabbccddeef",   /* a digit is missing */
        "127.0.0.1:40123:00112233445566778899aabbccddeeff0", /* … or one too many */
        "127.0.0.1:40123:00112233445566778899aabbccddeefg",
        "127.0.0.1:0:00112233445566778899aabbccddeeff",
        "127.0.0.1:65536:00112233445566778899aabbccddeeff",
        "127.0.0.1: 40123:00112233445566778899aabbccddeeff",
        "localhost:40123:00112233445566778899aabbccddeeff",
        "127.0.0.1.1.1.1.1.1.1.1:40123:00112233445566778899aabbccddeeff",
        ":40123:00112233445566778899aabbccddeeff",
    };
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(40123), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const an_siphash_key key = {{0x0011223344556677, 0x8899aabbccddeeff}};
    struct sockaddr_in read;
    an_siphash_key read_key;
    char text[AN_RANK_SUPERVISOR_TEXT];
    an_rank_supervisor_write(&address, &key, text);
    assert_string_equal(text, "127.0.0.1:40123:00112233445566778899aabbccddeeff");
    assert_true(an_rank_supervisor_read(text, &read, &read_key));
    assert_memory_equal(&read, &address, sizeof read);
    assert_memory_equal(&read_key, &key, sizeof key);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (an_rank_supervisor_read(wrong[i], &read, &read_key)) fail_msg("'%s' is taken for an address", wrong[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_checked),
        cmocka_unit_test(texts_are_cleaned),
        cmocka_unit_test(addresses_of_supervisors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
