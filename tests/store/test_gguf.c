/* GGUF files: every type that is read, against the gguf package for Python (tests/golden/make-gguf); and files that
 * are damaged, or are of a kind that is not read. */
#include "base/context.h"
#include "data/support.h"
#include "formats/gguf.h"

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/gguf/"
enum { MOST = 8192, SMALL_CONSTANT = 4096 };

static const char path[] = "f.gguf";

static int64_t find(an_context *ctx, const an_weights *w, const char *name, an_safetensor *tensor) {
    for (int64_t i = 0; i < w->count; i++) {
        OK(ctx, w->get(w, i, tensor));
        if (!strcmp(tensor->name, name)) return i;
    }
    fail_msg("there is no tensor '%s'", name);
    return -1;
}

/* ---- what is read ---- */

static void test_types(void **state) {
    static unsigned char wanted[MOST], got[MOST];
    an_context *ctx = new_context();
    an_weights ours, theirs;
    (void)state;
    OK(ctx, an_weights_open_files(&ours, ctx, GOLDEN "types.gguf"));
    OK(ctx, an_weights_open_files(&theirs, ctx, GOLDEN "types.safetensors"));
    assert_int_equal(ours.count, 10);
    assert_int_equal(theirs.count, ours.count);
    for (int64_t i = 0; i < theirs.count; i++) {
        an_safetensor a, b;
        OK(ctx, theirs.get(&theirs, i, &a));
        const int64_t index = find(ctx, &ours, a.name, &b);
        assert_int_equal(a.type->dtype, b.type->dtype);
        assert_int_equal(a.type->size, b.type->size);
        assert_int_equal(a.ndims, b.ndims);
        assert_memory_equal(a.dims, b.dims, (size_t)a.ndims * sizeof *a.dims);
        assert_int_equal(a.bytes, b.bytes);
        const int64_t size = (int64_t)a.type->size, elements = a.bytes / size;
        OK(ctx, theirs.read(&theirs, i, &a, 0, elements, wanted));
        OK(ctx, ours.read(&ours, index, &b, 0, elements, got));
        assert_memory_equal(got, wanted, (size_t)a.bytes);
        /* from any element on, also within blocks and across them */
        for (int64_t first = 0; first < elements; first += 7)
            for (int64_t count = 1; count <= elements - first; count += 1 + count / 2) {
                memset(got, 0xee, sizeof got);
                OK(ctx, ours.read(&ours, index, &b, first, count, got));
                assert_memory_equal(got, wanted + first * size, (size_t)(count * size));
                assert_int_equal(got[count * size], 0xee);
            }
    }
    an_weights_close(&theirs);
    an_weights_close(&ours);
    an_context_destroy(&ctx);
}

/* ---- what is refused ---- */

static void check_refused(an_context *ctx, size_t bytes, an_status expected, const char *words) {
    an_weights w;
    const size_t held = an_context_bytes(ctx);
    ctx->peak_bytes = ctx->bytes;
    FAILS(ctx, an_weights_open_gguf(&w, ctx, path), expected, words);
    if (strncmp(an_last_error(ctx), path, strlen(path)) != 0) fail_msg("no file: %s", an_last_error(ctx));
    assert_int_equal(an_context_bytes(ctx), held);
    if (ctx->peak_bytes - held > 6 * bytes + SMALL_CONSTANT)
        fail_msg("%zu bytes for a file of %zu: %s", ctx->peak_bytes - held, bytes, an_last_error(ctx));
}

/* Every shorter file is refused; a flip of any bit is refused, or gives a file that can be read. */
static void test_truncations_and_flips(void **state) {
    static unsigned char bytes[MOST], changed[MOST], read[4 * MOST];
    an_context *ctx = new_context();
    (void)state;
    const size_t size = read_file(GOLDEN "types.gguf", bytes, sizeof bytes);
    for (size_t length = 0; length < size; length++) {
        write_file(path, bytes, length);
        an_weights w;
        /* the last tensor is followed by padding, without which nothing is lost */
        if (length + 32 > size && an_weights_open_gguf(&w, ctx, path) == AN_OK)
            an_weights_close(&w);
        else
            check_refused(ctx, length, AN_ERR_DAMAGED, "");
    }
    int readable = 0;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        an_weights w;
        memcpy(changed, bytes, size);
        changed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_file(path, changed, size);
        const size_t held = an_context_bytes(ctx);
        ctx->peak_bytes = ctx->bytes;
        if (an_weights_open_gguf(&w, ctx, path) == AN_OK) {
            readable++;
            for (int64_t i = 0; i < w.count; i++) {
                an_safetensor t;
                OK(ctx, w.get(&w, i, &t));
                assert_true(t.bytes <= (int64_t)sizeof read);
                OK(ctx, w.read(&w, i, &t, 0, t.bytes / (int64_t)t.type->size, read));
            }
            an_weights_close(&w);
        } else if (strncmp(an_last_error(ctx), path, strlen(path)) != 0) {
            fail_msg("no file: %s", an_last_error(ctx));
        }
        assert_int_equal(an_context_bytes(ctx), held);
        assert_true(ctx->peak_bytes - held <= 6 * size + SMALL_CONSTANT);
    }
    assert_true(readable > 0 && readable < (int)(8 * size));
    an_context_destroy(&ctx);
}

typedef struct {
    unsigned char bytes[1024];
    size_t size;
} made;

static void add_number(made *m, int bytes, uint64_t number) {
    for (int i = 0; i < bytes; i++, number >>= 8) m->bytes[m->size++] = (unsigned char)number;
}

static void add_string(made *m, const char *text) {
    add_number(m, 8, strlen(text));
    memcpy(m->bytes + m->size, text, strlen(text));
    m->size += strlen(text);
}

static void add_head(made *m, uint64_t version, uint64_t tensors, uint64_t keys) {
    *m = (made){.bytes = "GGUF", .size = 4};
    add_number(m, 4, version);
    add_number(m, 8, tensors);
    add_number(m, 8, keys);
}

static void add_tensor(made *m, const char *name, uint64_t type, uint64_t columns, uint64_t offset) {
    add_string(m, name);
    add_number(m, 4, 1);
    add_number(m, 8, columns);
    add_number(m, 4, type);
    add_number(m, 8, offset);
}

static void refuse(an_context *ctx, made *m, size_t data, an_status expected, const char *words) {
    m->size += data; /* which is zeros */
    write_file(path, m->bytes, m->size);
    check_refused(ctx, m->size, expected, words);
}

static void test_refusals(void **state) {
    enum { F32 = 0, Q4_0 = 2, Q2_K = 10 };
    an_context *ctx = new_context();
    made m;
    (void)state;
    add_head(&m, 1, 0, 0);
    refuse(ctx, &m, 0, AN_ERR_UNSUPPORTED, "version 1 of GGUF");
    add_head(&m, 0x03000000, 0, 0);
    refuse(ctx, &m, 0, AN_ERR_UNSUPPORTED, "big endian");
    add_head(&m, 3, UINT64_MAX, 0);
    refuse(ctx, &m, 100, AN_ERR_DAMAGED, "do not fit into the file");
    add_head(&m, 3, 0, 1ull << 62);
    refuse(ctx, &m, 100, AN_ERR_DAMAGED, "do not fit into the file");
    add_head(&m, 3, 1, 0);
    add_tensor(&m, "a", Q2_K, 256, 0);
    refuse(ctx, &m, 256, AN_ERR_UNSUPPORTED, "Q2_K, which is not supported");
    add_head(&m, 3, 1, 0);
    add_tensor(&m, "a", 77, 256, 0);
    refuse(ctx, &m, 256, AN_ERR_DAMAGED, "unknown type 77");
    add_head(&m, 3, 1, 0);
    add_tensor(&m, "a", Q4_0, 33, 0);
    refuse(ctx, &m, 256, AN_ERR_DAMAGED, "cannot be in blocks of 32 (Q4_0)");
    add_head(&m, 3, 1, 0);
    add_tensor(&m, "a", F32, 0, 0);
    refuse(ctx, &m, 256, AN_ERR_DAMAGED, "dimension of 0");
    add_head(&m, 3, 1, 0);
    add_tensor(&m, "", F32, 1, 0);
    refuse(ctx, &m, 256, AN_ERR_DAMAGED, "no name");
    add_head(&m, 3, 1, 0);
    add_tensor(&m, "\xff", F32, 1, 0);
    refuse(ctx, &m, 256, AN_ERR_DAMAGED, "not valid UTF-8");
    add_head(&m, 3, 1, 0);
    add_tensor(&m, "a", F32, 8, 32);
    refuse(ctx, &m, 256, AN_ERR_DAMAGED, "begins at byte 32 of the data, but byte 0 is expected");
    add_head(&m, 3, 2, 0);
    add_tensor(&m, "a", F32, 16, 0);
    add_tensor(&m, "b", F32, 8, 32);
    refuse(ctx, &m, 256, AN_ERR_DAMAGED, "'b' begins at byte 32 of the data, but byte 64 is expected");
    add_head(&m, 3, 2, 0);
    add_tensor(&m, "a", F32, 8, 0);
    add_tensor(&m, "a", F32, 8, 32);
    refuse(ctx, &m, 256, AN_ERR_DAMAGED, "'a' appears twice");
    add_head(&m, 3, 1, 0);
    add_tensor(&m, "a", F32, 1 << 20, 0);
    refuse(ctx, &m, 256, AN_ERR_DAMAGED, "does not fit into the file");
    add_head(&m, 3, 0, 1);
    add_string(&m, "general.alignment");
    add_number(&m, 4, 4);
    add_number(&m, 4, 48);
    refuse(ctx, &m, 0, AN_ERR_DAMAGED, "general.alignment is 48");
    add_head(&m, 3, 0, 1);
    add_string(&m, "k");
    add_number(&m, 4, 9);
    add_number(&m, 4, 9);
    add_number(&m, 8, 1);
    refuse(ctx, &m, 64, AN_ERR_UNSUPPORTED, "arrays of arrays");
    add_head(&m, 3, 0, 1);
    add_string(&m, "k");
    add_number(&m, 4, 9);
    add_number(&m, 4, 8);
    add_number(&m, 8, UINT64_MAX);
    refuse(ctx, &m, 64, AN_ERR_DAMAGED, "a string needs 8 bytes");
    add_head(&m, 3, 0, 1);
    add_string(&m, "k");
    add_number(&m, 4, 13);
    refuse(ctx, &m, 64, AN_ERR_DAMAGED, "unknown type 13");
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_truncations_and_flips),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
