/* TensorBoard's event files: known records, byte by byte, and a file of them. */
#include <dirent.h>
#include <unistd.h>

#include "run/events.h"
#include "support/support.h"

static void check(const char *expected, double seconds, int64_t step, const char *tag, double value) {
    unsigned char record[AN_EVENT_BYTES];
    char text[2 * AN_EVENT_BYTES + 1];
    const size_t length = an_event_encode(seconds, step, tag, value, record);
    for (size_t i = 0; i < length; i++) snprintf(text + 2 * i, 3, "%02x", record[i]);
    assert_string_equal(text, expected);
}

static void test_known_records(void **state) {
    (void)state;
    check("1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a", 1, 0, NULL, 0);
    check("1a00000000000000129bd82d09000000000000f03f10072a0d0a0b0a046c6f7373150000204087ccc43d", 1, 7, "loss", 2.5);
}

static void test_long_tags_fit(void **state) {
    unsigned char record[AN_EVENT_BYTES];
    char tag[300];
    (void)state;
    memset(tag, 'x', sizeof tag - 1);
    tag[sizeof tag - 1] = 0;
    assert_in_range(an_event_encode(1e9, INT64_MAX, tag, -1, record), 1, sizeof record);
}

/* A length takes a second byte from 128 on, of a tag and of what holds it: each is where the one before it ends. */
static void test_lengths_of_two_bytes(void **state) {
    char tag[200] = "";
    (void)state;
    for (size_t length = 1; length < sizeof tag; length++) {
        unsigned char record[AN_EVENT_BYTES];
        tag[length - 1] = 'x';
        const size_t written = an_event_encode(1, 7, tag, 2.5, record), head = 12, crc = 4;
        const unsigned char *at = record + head + 9 + 2, *const end = record + written - crc; /* time and step */
        for (int level = 0; level < 3; level++) { /* a Summary, its Value, the tag of that */
            size_t count = at[1] & 0x7f;
            assert_int_equal(at[0], level ? 0x0a : 0x2a);
            if (at[1] & 0x80) count |= (size_t)at[2] << 7;
            at += at[1] & 0x80 ? 3 : 2;
            if (level < 2)
                assert_ptr_equal(at + count, end);
            else
                assert_int_equal(count, length < AN_EVENT_TAG ? length : AN_EVENT_TAG);
        }
    }
}

static void test_file_holds_what_was_written(void **state) {
    an_context *ctx = NULL;
    an_events *events = NULL;
    char folder[] = "events-XXXXXX", path[600] = "";
    unsigned char expected[4 * AN_EVENT_BYTES], got[4 * AN_EVENT_BYTES];
    size_t length = an_event_encode(5, 0, NULL, 0, expected);
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_events_create(&events, ctx, folder, 5));
    for (int step = 1; step <= 3; step++) {
        OK(ctx, an_events_scalar(events, 5 + step, step, "loss", 1.0 / step));
        length += an_event_encode(5 + step, step, "loss", 1.0 / step, expected + length);
    }
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        if (!strncmp(entry->d_name, "events.out.tfevents.5.", 22))
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    closedir(entries);
    FILE *file = fopen(path, "rb"); /* before it is closed: others may read along */
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), length);
    assert_memory_equal(got, expected, length);
    fclose(file);
    an_events_destroy(&events);
    assert_int_equal(an_events_create(&events, ctx, "no/such/folder", 5), AN_ERR_FILE);
    assert_non_null(strstr(an_last_error(ctx), "no/such/folder/events.out.tfevents.5."));
    assert_non_null(strstr(an_last_error(ctx), "No such file or directory"));
    an_context_destroy(&ctx);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_records),
        cmocka_unit_test(test_long_tags_fit),
        cmocka_unit_test(test_lengths_of_two_bytes),
        cmocka_unit_test(test_file_holds_what_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
