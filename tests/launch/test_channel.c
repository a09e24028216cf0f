/* Messages between processes that share a key: what arrives, and what closes a connection. */
#include "launch/channel.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/support.h"

enum { CLIENT = 3, SERVER = 0, MOST_TURNS = 2000 };
static const an_siphash_key key = {{1, 2}}, other_key = {{1, 3}};

typedef struct {
    int listener;
    struct sockaddr_in address;
    an_channel client, server;
} pair;

static void open_listener(pair *p) {
    memset(p, 0, sizeof *p);
    p->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    p->listener = an_channel_listen(&p->address);
    assert_true(p->listener >= 0);
}

/* Turns both sides until this is true, or a second has gone. */
static void turn(pair *p, bool (*enough)(const pair *p)) {
    for (int i = 0; i < MOST_TURNS && !enough(p); i++) {
        if (p->server.state == AN_CHANNEL_CLOSED && !p->server.note)
            an_channel_accept(&p->server, p->listener, &key, SERVER);
        an_channel_turn(&p->client);
        an_channel_turn(&p->server);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}
static bool client_is_open(const pair *p) {
    return p->client.state == AN_CHANNEL_OPEN;
}
static bool server_is_open(const pair *p) {
    return p->server.state == AN_CHANNEL_OPEN && p->server.in_count == AN_CHANNEL_FRAME;
}
static bool client_has_one(const pair *p) {
    return p->client.in_count == AN_CHANNEL_FRAME;
}
static bool one_is_closed(const pair *p) {
    return p->server.note || p->client.note;
}

static void close_all(pair *p) {
    an_channel_close(&p->client, "the end");
    an_channel_close(&p->server, "the end");
    close(p->listener);
}

static void fill(unsigned char *body, int number) {
    for (int i = 0; i < AN_CHANNEL_BODY; i++) body[i] = (unsigned char)(i * 7 + number);
}

static void messages_arrive_in_order(void **state) {
    (void)state;
    pair p;
    unsigned char sent[AN_CHANNEL_BODY], body[AN_CHANNEL_BODY];
    open_listener(&p);
    an_channel_connect(&p.client, &p.address, &key, CLIENT);
    assert_false(an_channel_send(&p.client, body)); /* nobody has answered yet */
    turn(&p, client_is_open);
    assert_int_equal(p.client.peer, SERVER);
    assert_int_equal(p.server.state, AN_CHANNEL_GREETING); /* the hello may be an old one */
    for (int i = 0; i < AN_CHANNEL_QUEUE; i++) {
        fill(sent, i);
        assert_true(an_channel_send(&p.client, sent));
    }
    assert_false(an_channel_send(&p.client, sent));
    for (int i = 0; i < AN_CHANNEL_QUEUE; i++) {
        turn(&p, server_is_open);
        assert_int_equal(p.server.peer, CLIENT);
        fill(sent, i);
        assert_true(an_channel_receive(&p.server, body));
        assert_memory_equal(sent, body, sizeof body);
        assert_false(an_channel_receive(&p.server, body));
    }
    assert_true(an_channel_send(&p.server, sent));
    turn(&p, client_has_one);
    assert_true(an_channel_receive(&p.client, body));
    close_all(&p);
}

/* Who has another key is not answered, and does not take an answer. */
static void another_key_is_refused(void **state) {
    (void)state;
    pair p;
    open_listener(&p);
    an_channel_connect(&p.client, &p.address, &other_key, CLIENT);
    turn(&p, one_is_closed);
    assert_non_null(p.server.note);
    assert_int_equal(p.server.received, 0);
    close_all(&p);
}

/* ---- hostile bytes ---- The other side is a plain socket. */

static int connect_plainly(pair *p) {
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(file, (const struct sockaddr *)&p->address, sizeof p->address), 0);
    return file;
}

static void server_refuses(pair *p, const void *bytes, size_t count) {
    unsigned char body[AN_CHANNEL_BODY];
    const int file = connect_plainly(p);
    assert_int_equal(write(file, bytes, count), (ssize_t)count);
    memset(&p->server, 0, sizeof p->server);
    turn(p, one_is_closed);
    assert_non_null(p->server.note);
    assert_false(an_channel_receive(&p->server, body));
    close(file);
}

/* A connection that a good client made, as bytes: the hello, and the first message. */
static void record(pair *p, unsigned char bytes[2 * AN_CHANNEL_FRAME]) {
    unsigned char body[AN_CHANNEL_BODY] = {1};
    an_channel_connect(&p->client, &p->address, &key, CLIENT);
    memcpy(bytes, p->client.out, AN_CHANNEL_FRAME);
    turn(p, client_is_open);
    assert_true(an_channel_send(&p->client, body));
    memcpy(bytes + AN_CHANNEL_FRAME, p->client.out + p->client.out_at, AN_CHANNEL_FRAME);
    turn(p, server_is_open);
    assert_true(an_channel_receive(&p->server, body));
    an_channel_close(&p->client, "the end");
    an_channel_close(&p->server, "the end");
    p->client.note = NULL;
}

static void made_up_changed_and_old_bytes_are_refused(void **state) {
    (void)state;
    pair p;
    unsigned char good[2 * AN_CHANNEL_FRAME], bad[2 * AN_CHANNEL_FRAME];
    open_listener(&p);
    memset(bad, 0, sizeof bad);
    server_refuses(&p, bad, sizeof bad);
    for (size_t i = 0; i < sizeof bad; i++) bad[i] = (unsigned char)(i * 131 + 7);
    server_refuses(&p, bad, sizeof bad);
    memset(&p.server, 0, sizeof p.server);
    record(&p, good);
    server_refuses(&p, good, sizeof good); /* all of it again: the second message is of another connection */
    for (size_t i = 0; i < AN_CHANNEL_FRAME; i += 41) { /* one bit of the hello */
        memcpy(bad, good, sizeof bad);
        bad[i] ^= 4;
        server_refuses(&p, bad, AN_CHANNEL_FRAME);
    }
    close_all(&p);
}

/* A message of the same connection, twice; and one that the other side itself sent. */
static void repeated_and_reflected_messages_are_refused(void **state) {
    (void)state;
    for (int reflected = 0; reflected < 2; reflected++) {
        pair p;
        unsigned char body[AN_CHANNEL_BODY] = {1};
        open_listener(&p);
        an_channel_connect(&p.client, &p.address, &key, CLIENT);
        turn(&p, client_is_open);
        assert_true(an_channel_send(&p.client, body));
        unsigned char copy[AN_CHANNEL_FRAME];
        memcpy(copy, p.client.out + p.client.out_at, sizeof copy);
        turn(&p, server_is_open);
        assert_true(an_channel_receive(&p.server, body));
        const an_channel *from = reflected ? &p.server : &p.client;
        assert_int_equal(send(from->socket, copy, sizeof copy, 0), sizeof copy);
        turn(&p, one_is_closed);
        assert_non_null(reflected ? p.client.note : p.server.note);
        close_all(&p);
    }
}

/* The second message of a connection whose first one is gone. */
static void a_message_that_is_left_out_is_noticed(void **state) {
    (void)state;
    pair p;
    unsigned char body[AN_CHANNEL_BODY] = {1};
    open_listener(&p);
    an_channel_connect(&p.client, &p.address, &key, CLIENT);
    turn(&p, client_is_open);
    for (int i = 0; i < 2; i++) assert_true(an_channel_send(&p.client, body));
    p.client.out_at += AN_CHANNEL_FRAME;
    turn(&p, one_is_closed);
    assert_non_null(p.server.note);
    assert_false(an_channel_receive(&p.server, body));
    close_all(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_in_order),
        cmocka_unit_test(another_key_is_refused),
        cmocka_unit_test(made_up_changed_and_old_bytes_are_refused),
        cmocka_unit_test(repeated_and_reflected_messages_are_refused),
        cmocka_unit_test(a_message_that_is_left_out_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
