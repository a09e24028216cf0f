/* safetensors files that are damaged, are no files, or change while they are read. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "store/safetensors_support.h"

static const char path[] = "f.safetensors";

static const char good_header[] = "{\"__metadata__\":{\"format\":\"pt\"}," TENSOR("a", "F32", "2,3", "0,24") "," TENSOR(
    "b", "I64", "", "24,32") "," TENSOR("c", "U8", "0", "32,32") "}     ";

/* Every length but the right one is refused; a flip of any bit is refused, or gives a file that can be read. */
static void test_truncations_and_flips(void **state) {
    static unsigned char bytes[1024], changed[1024];
    an_context *ctx = new_context();
    (void)state;
    const size_t size = write_tensors(path, good_header, 32);
    assert_int_equal(read_file(path, bytes, sizeof bytes), size);
    for (size_t length = 0; length < size; length++) {
        write_file(path, bytes, length);
        check_refused(ctx, path, length, AN_ERR_DAMAGED, ": byte ");
    }
    write_file(path, bytes, size + 1);
    check_refused(ctx, path, size + 1, AN_ERR_DAMAGED, "1 more bytes follow");
    int readable = 0;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        an_safetensors *s = NULL;
        memcpy(changed, bytes, size);
        changed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_file(path, changed, size);
        if (an_safetensors_open(&s, ctx, path) == AN_OK) {
            readable++;
            an_safetensor t;
            for (int i = 0; i < an_safetensors_count(s); i++) {
                OK(ctx, an_safetensors_get(s, i, &t));
                OK(ctx, an_safetensors_read(s, &t, 0, (size_t)t.bytes, changed));
            }
        } else if (strncmp(an_last_error(ctx), path, strlen(path)) != 0) {
            fail_msg("no file: %s", an_last_error(ctx));
        }
        an_safetensors_close(&s);
        assert_int_equal(an_context_bytes(ctx), context_bytes);
    }
    assert_true(readable >= 32 * 8 &&
                (size_t)readable < 8 * size / 2); /* data, names and spaces are free to be anything */
    end_context(&ctx);
}

/* ---- what is no file, or does not stay one ---- */

static void test_not_a_file(void **state) {
    an_context *ctx = new_context();
    an_safetensors *s = NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "f.socket"};
    (void)state;
    remove("f.fifo"), remove("f.link"), remove("f.loop"), remove("f.socket"), remove("f.none");
    alarm(60); /* an open that waits for a writer of the pipe would wait for ever */
    assert_int_equal(mkfifo("f.fifo", 0600), 0);
    check_refused(ctx, "f.fifo", 0, AN_ERR_FILE, "is a pipe");
    check_refused(ctx, ".", 0, AN_ERR_FILE, "is a folder");
    check_refused(ctx, "/dev/zero", 0, AN_ERR_FILE, "is a device");
    check_refused(ctx, "/dev/null", 0, AN_ERR_FILE, "is a device");
    check_refused(ctx, "f.none", 0, AN_ERR_FILE, "cannot be opened");
    check_refused(ctx, "f.none/x", 0, AN_ERR_FILE, "cannot be opened");
    assert_int_equal(symlink("f.loop", "f.loop"), 0);
    check_refused(ctx, "f.loop", 0, AN_ERR_FILE, "cannot be opened");
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    check_refused(ctx, "f.socket", 0, AN_ERR_FILE, "cannot be opened");
    close(listener);
    static const char *const targets[] = {"f.none", "/dev/zero", "f.fifo", "."};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        assert_int_equal(symlink(targets[i], "f.link"), 0);
        check_refused(ctx, "f.link", 0, AN_ERR_FILE, "f.link");
        assert_int_equal(remove("f.link"), 0);
    }
    if (access("/proc/version", R_OK) == 0) /* a file by its kind that has no size */
        check_refused(ctx, "/proc/version", 0, AN_ERR_DAMAGED, "the file has only 0 bytes");
    FAILS(ctx, an_safetensors_open(&s, ctx, ""), AN_ERR_ARGUMENT, "no name");
    FAILS(ctx, an_safetensors_open_file(&s, ctx, "a pipe", open("f.fifo", O_RDONLY | O_NONBLOCK)), AN_ERR_FILE,
          "a pipe: is not");
    FAILS(ctx, an_safetensors_open_file(&s, ctx, "a folder", open(".", O_RDONLY)), AN_ERR_FILE, "a folder: is not");
    FAILS(ctx, an_safetensors_open_file(&s, ctx, "nothing", -1), AN_ERR_FILE, "nothing: is not");
    write_tensors(path, good_header, 32);
    assert_int_equal(symlink(path, "f.link"), 0); /* a link to a file is what a user may have */
    OK(ctx, an_safetensors_open(&s, ctx, "f.link"));
    an_safetensors_close(&s);
    alarm(0);
    remove("f.fifo"), remove("f.link"), remove("f.loop"), remove("f.socket");
    end_context(&ctx);
}

/* A tensor's name never becomes a path: nothing is made or opened by it. */
static void test_names_are_no_paths(void **state) {
    an_context *ctx = new_context();
    an_safetensors *s = NULL;
    struct stat found;
    (void)state;
    write_tensors(path, "{" TENSOR("../f.escaped", "U8", "1", "0,1") "," TENSOR("/tmp/f.escaped", "U8", "1", "1,2") "}",
                  2);
    OK(ctx, an_safetensors_open(&s, ctx, path));
    check_all_bytes(ctx, s);
    an_safetensors_close(&s);
    assert_true(stat("../f.escaped", &found) != 0 && stat("/tmp/f.escaped", &found) != 0);
    end_context(&ctx);
}

static void test_shrinks_after_open(void **state) {
    an_context *ctx = new_context();
    an_safetensors *s = NULL;
    an_safetensor t;
    unsigned char bytes[32];
    (void)state;
    const size_t size = write_tensors(path, good_header, 32);
    for (size_t length = 0; length < size - 8; length++) { /* never so long that all of tensor b is there */
        write_tensors(path, good_header, 32);
        OK(ctx, an_safetensors_open(&s, ctx, path));
        OK(ctx, an_safetensors_get(s, 1, &t));
        OK(ctx, an_safetensors_read(s, &t, 0, 8, bytes));
        assert_int_equal(truncate(path, (off_t)length), 0);
        FAILS(ctx, an_safetensors_read(s, &t, 0, 8, bytes), AN_ERR_FILE, "the file ends here");
        assert_int_equal(strncmp(an_last_error(ctx), path, strlen(path)), 0);
        OK(ctx, an_safetensors_get(s, 0, &t)); /* what was read once is known */
        assert_int_equal(t.dims[1], 3);
        an_safetensors_close(&s);
        refused++;
    }
    end_context(&ctx);
}

static volatile bool stop;

static void *shrink_and_grow(void *unused) {
    (void)unused;
    for (unsigned i = 1; !stop; i = i * 1664525u + 1013904223u) {
        const int file = open(path, O_WRONLY | O_CLOEXEC);
        if (file < 0) continue;
        unsigned char length[8];
        const size_t cut = i >> 16 & 255;
        put_u64(length, strlen(good_header));
        if (ftruncate(file, (off_t)cut) || pwrite(file, length, 8, 0) != 8 ||
            pwrite(file, good_header, strlen(good_header), 8) < 0 ||
            ftruncate(file, 8 + (off_t)strlen(good_header) + 32))
            break;
        close(file);
    }
    return NULL;
}

/* Another thread shortens the file and makes it whole again all the time: what is read is the file's or an error. */
static void test_shrinks_meanwhile(void **state) {
    enum { TIMES = 1000 };
    an_context *ctx = new_context();
    pthread_t thread;
    int opened = 0;
    (void)state;
    write_tensors(path, good_header, 32);
    stop = false;
    assert_int_equal(pthread_create(&thread, NULL, shrink_and_grow, NULL), 0);
    for (int i = 0; i < TIMES; i++) {
        an_safetensors *s = NULL;
        an_safetensor t;
        unsigned char bytes[24];
        const an_status status = an_safetensors_open(&s, ctx, path);
        if (status == AN_OK) {
            opened++;
            OK(ctx, an_safetensors_get(s, 0, &t));
            const an_status read = an_safetensors_read(s, &t, 0, 24, bytes);
            assert_true(read == AN_OK || read == AN_ERR_FILE);
        } else {
            assert_true(status == AN_ERR_FILE || status == AN_ERR_DAMAGED);
            assert_int_equal(strncmp(an_last_error(ctx), path, strlen(path)), 0);
        }
        an_safetensors_close(&s);
    }
    stop = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    print_message("opened %d times of %d\n", opened, TIMES);
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncations_and_flips), cmocka_unit_test(test_not_a_file),
        cmocka_unit_test(test_names_are_no_paths),    cmocka_unit_test(test_shrinks_after_open),
        cmocka_unit_test(test_shrinks_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
