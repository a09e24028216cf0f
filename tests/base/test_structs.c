/* Every public struct, in both directions: the table of the library, the headers, and what happens to
 * smaller and larger structs. */
#include <dirent.h>

#include "anneal/details.h"
#include "anneal/models.h"
#include "anneal/predict.h"
#include "anneal/run.h"
#include "base/structs.h"
#include "support/support.h"

/* The rows of all layers. */
#define AN_STRUCT(type, ...) extern const an_struct type##_struct;
#include "support/all_structs.def"
#undef AN_STRUCT
static const an_struct *const structs[] = {
#define AN_STRUCT(type, ...) &type##_struct,
#include "support/all_structs.def"
#undef AN_STRUCT
};

enum { BEYOND = 24, MOST = 1024, STRUCTS = sizeof structs / sizeof *structs };

static an_context *ctx;

/* ---- the table ---- */

/* Init writes every byte, whatever the size is that the program has: what this library knows, and zeros beyond it. */
static void test_init_writes_every_byte(void **state) {
    (void)state;
    for (int i = 0; i < STRUCTS; i++) {
        const an_struct *s = structs[i];
        for (size_t size = sizeof(size_t); size <= s->size + BEYOND; size++) {
            unsigned char memory[MOST], expected[MOST] = {0};
            assert_true(size + BEYOND <= MOST);
            memset(memory, 0xa5, sizeof memory);
            memcpy(expected, s->defaults, s->size < size ? s->size : size);
            memcpy(expected, &size, sizeof size);
            an_struct_init(s, memory, size);
            if (memcmp(memory, expected, size)) fail_msg("%s: not every one of %zu bytes is written", s->name, size);
            for (size_t k = size; k < sizeof memory; k++)
                if (memory[k] != 0xa5) fail_msg("%s: byte %zu is written, of a struct of %zu", s->name, k, size);
        }
        for (size_t size = 0; size < sizeof(size_t); size++) { /* not even a size */
            unsigned char memory[sizeof(size_t)];
            memset(memory, 0xa5, sizeof memory);
            an_struct_init(s, memory, size);
            for (size_t k = 0; k < sizeof memory; k++) assert_int_equal(memory[k], 0xa5);
        }
        an_struct_init(s, NULL, s->size);
    }
}

/* A program of another release has a struct of another size. */
static void test_structs_of_other_releases(void **state) {
    (void)state;
    for (int i = 0; i < STRUCTS; i++) {
        const an_struct *s = structs[i];
        char call[96];
        snprintf(call, sizeof call, "call %s_init first", s->name);
        for (size_t size = 0; size <= s->size + BEYOND; size++) {
            unsigned char given[MOST], own[MOST], expected[MOST];
            an_struct_init(s, given, s->size + BEYOND);
            for (size_t k = sizeof size; k < s->size; k++) given[k] = (unsigned char)(k * 7 + 1);
            memcpy(given, &size, sizeof size);
            memset(own, 0xa5, sizeof own);
            if (size < s->first) {
                FAILS(ctx, an_struct_read(ctx, s, own, given), AN_ERR_ARGUMENT, call);
                FAILS(ctx, an_struct_write(ctx, s, given, own), AN_ERR_ARGUMENT, s->name);
                continue;
            }
            /* read: the caller's bytes over the defaults */
            const size_t known = size < s->size ? size : s->size;
            memcpy(expected, s->defaults, s->size);
            memcpy(expected + sizeof size, given + sizeof size, known - sizeof size);
            OK(ctx, an_struct_read(ctx, s, own, given));
            if (memcmp(own, expected, s->size)) fail_msg("%s: read wrong with %zu bytes", s->name, size);
            assert_int_equal(own[s->size], 0xa5);
            /* write: no more than the caller has, and the size stays */
            unsigned char to[MOST];
            memset(to, 0x5a, sizeof to);
            memcpy(to, &size, sizeof size);
            OK(ctx, an_struct_write(ctx, s, to, own));
            assert_memory_equal(to, &size, sizeof size);
            assert_memory_equal(to + sizeof size, own + sizeof size, known - sizeof size);
            for (size_t k = known; k < sizeof to; k++) assert_int_equal(to[k], 0x5a);
            /* a member that this library does not have */
            for (size_t k = s->size; k < size; k++) {
                given[k] = 1;
                FAILS(ctx, an_struct_read(ctx, s, own, given), AN_ERR_ARGUMENT, "does not have");
                given[k] = 0;
            }
        }
        unsigned char own[MOST];
        OK(ctx, an_struct_read(ctx, s, own, NULL));
        assert_memory_equal(own, s->defaults, s->size);
        FAILS(ctx, an_struct_check(ctx, s, NULL), AN_ERR_ARGUMENT, s->name);
    }
}

static void test_arrays_of_structs(void **state) {
    (void)state;
    for (int i = 0; i < STRUCTS; i++) {
        const an_struct *s = structs[i];
        for (size_t stride = s->first; stride <= s->size + BEYOND; stride += 8) {
            unsigned char array[3 * MOST], own[MOST];
            for (size_t k = 0; k < 3; k++) {
                an_struct_init(s, array + k * stride, stride);
                array[k * stride + sizeof stride] = (unsigned char)(k + 1);
            }
            for (int64_t k = 0; k < 3; k++) {
                OK(ctx, an_struct_read_at(ctx, s, own, array, k));
                assert_int_equal(own[sizeof stride], k + 1);
            }
            const size_t other = stride + 8;
            memcpy(array + 2 * stride, &other, sizeof other);
            FAILS(ctx, an_struct_read_at(ctx, s, own, array, 2), AN_ERR_ARGUMENT, "element 2 of an array of");
        }
    }
}

/* ---- the headers ---- */

static void read_headers(char *text, size_t capacity) {
    DIR *folder = opendir(ANNEAL_SOURCE_DIR "/include/anneal");
    size_t used = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        const size_t length = strlen(entry->d_name);
        if (length < 2 || strcmp(entry->d_name + length - 2, ".h") != 0 || !strcmp(entry->d_name, "experimental.h"))
            continue;
        snprintf(path, sizeof path, "%s/include/anneal/%s", ANNEAL_SOURCE_DIR, entry->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        used += fread(text + used, 1, capacity - 1 - used, file);
        fclose(file);
    }
    closedir(folder);
    assert_true(used > 10000 && used < capacity - 1);
    text[used] = 0;
}

/* Each struct that begins with its size is in the table, has its init function, and each enum has a last value. */
static void test_headers_and_table_agree(void **state) {
    static char text[1 << 20];
    int seen = 0, enums = 0;
    (void)state;
    read_headers(text, sizeof text);
    for (const char *at = strstr(text, "\ntypedef struct an_"); at; at = strstr(at + 1, "\ntypedef struct an_")) {
        char name[64], init[192];
        const char *begin = at + strlen("\ntypedef struct "), *body = begin + strcspn(begin, " {;");
        if (strncmp(body, " {\n    size_t size;", strlen(" {\n    size_t size;")) != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)(body - begin), begin);
        int found = 0;
        for (int i = 0; i < STRUCTS; i++) found += !strcmp(structs[i]->name, name);
        if (found != 1) fail_msg("%s is %d times in the tables src/*/structs.def", name, found);
        snprintf(init, sizeof init, "\nAN_API void %s_init(%s *", name, name);
        if (!strstr(text, init)) fail_msg("%s_init is not in a header", name);
        seen++;
    }
    assert_int_equal(seen, STRUCTS);
    for (const char *at = strstr(text, "\ntypedef enum an_"); at; at = strstr(at + 1, "\ntypedef enum an_")) {
        const char *end = strstr(at, "\n}"), *last = strstr(at, "_LIMIT = 0x7fffffff\n");
        if (!last || last > end) fail_msg("an enum does not end with 0x7fffffff: %.60s", at);
        enums++;
    }
    assert_true(enums > 20);
}

/* ---- what tests write down ---- */

/* Bytes, as the structs have no padding: AN_AUTO is a NaN, which equals nothing. */
static void same_bytes(const char *name, const void *written, const void *made, size_t size) {
    if (memcmp(written, made, size)) fail_msg("DEFAULTS(%s) of tests/support/structs.h are others", name);
}

#define SAME(type)                                       \
    do {                                                 \
        type written = {DEFAULTS(type)}, made;           \
        type##_init(&made, sizeof made);                 \
        same_bytes(#type, &written, &made, sizeof made); \
    } while (0)

static void test_defaults_of_tests(void **state) {
    (void)state;
    SAME(an_group_rule);
    SAME(an_group_options);
    SAME(an_optimizer_options);
    SAME(an_update);
    SAME(an_schedule_options);
    SAME(an_scaler);
    SAME(an_stepper_options);
    SAME(an_trainer_options);
    SAME(an_params_options);
    SAME(an_plan_options);
    SAME(an_run_options);
    SAME(an_cross_entropy_options);
    SAME(an_convolution_options);
    SAME(an_pool_options);
    SAME(an_rotary_options);
    SAME(an_attention_options);
    SAME(an_idx_source);
    SAME(an_images_source);
    SAME(an_csv_source);
    SAME(an_npy_source);
    SAME(an_hdf5_source);
    SAME(an_jsonl_source);
    SAME(an_text_source);
    SAME(an_chat_source);
    SAME(an_sentence_source);
    SAME(an_token_source);
    SAME(an_megatron_source);
    SAME(an_array_source);
    SAME(an_layer);
    SAME(an_llama_options);
    SAME(an_bert_options);
    SAME(an_length_options);
    SAME(an_predictor_options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_writes_every_byte), cmocka_unit_test(test_structs_of_other_releases),
        cmocka_unit_test(test_arrays_of_structs),      cmocka_unit_test(test_headers_and_table_agree),
        cmocka_unit_test(test_defaults_of_tests),
    };
    if (an_context_create(&ctx, NULL) != AN_OK) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    an_context_destroy(&ctx);
    return failed;
}
