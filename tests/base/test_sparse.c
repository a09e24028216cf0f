/* Memory of which only some runs are there: what is there is zeros and can be written, what is not cannot be
 * touched, and every byte is planned. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/system/sparse.h"
#include "support/mappings.h"

enum { MOST_RUNS = 8 };

static const struct {
    int64_t pages, page_bytes;
    int run_count;
    an_page_range runs[MOST_RUNS];
} grids[] = {
    {10, 4096, 2, {{1, 3}, {7, 8}}},
    {10, 4096, 1, {{0, 10}}},
    {10, 4096, 0, {{0, 0}}},
    {9, 4096, 5, {{0, 0}, {0, 2}, {2, 2}, {2, 3}, {8, 9}}}, /* empty ones, and neighbours */
    {12, 2048, 4, {{0, 1}, {1, 2}, {4, 5}, {7, 8}}},        /* two share a page of the system; others have one alone */
    {13, 2048, 3, {{1, 3}, {4, 6}, {12, 13}}}, /* meet only when they are rounded; the last page is half of one */
    {6, 8192, 2, {{1, 2}, {4, 6}}},
    {1000, 100, 3, {{3, 4}, {41, 500}, {999, 1000}}},
    {1, 1, 1, {{0, 1}}},
};

static an_sparse grid(size_t i) {
    return (an_sparse){.pages = grids[i].pages,
                       .page_bytes = grids[i].page_bytes,
                       .runs = grids[i].runs,
                       .run_count = grids[i].run_count};
}

/* Whether a page of the system has a byte of a run. */
static bool is_needed(const an_sparse *s, int64_t page, int64_t size) {
    for (int i = 0; i < s->run_count; i++)
        for (int64_t b = s->runs[i].begin * s->page_bytes; b < s->runs[i].end * s->page_bytes; b++)
            if (b / size == page) return true;
    return false;
}

static void test_what_is_there(void **state) {
    (void)state;
    const int64_t size = sysconf(_SC_PAGESIZE);
    ledger l = {0};
    an_context *ctx = NULL;
    assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        const an_sparse s = grid(i);
        const size_t before = an_context_bytes(ctx);
        const int64_t mapped = mappings.held;
        void *memory = NULL;
        mappings.calls = 0;
        OK(ctx, an_sparse_alloc(ctx, &memory, &s));
        assert_non_null(memory);
        int64_t bytes = 0;
        long extents = 0; /* neighbours are one */
        bool last = false;
        for (int64_t page = 0; page * size < s.pages * s.page_bytes; page++) {
            const bool needed = is_needed(&s, page, size);
            if (is_mapped((char *)memory + page * size) != needed)
                fail_msg("grid %zu: page %lld of the system is %sthere", i, (long long)page, needed ? "not " : "");
            bytes += needed ? size : 0;
            extents += needed && !last;
            last = needed;
        }
        assert_int_equal(mappings.calls, 1 + extents);
        assert_int_equal(an_sparse_bytes(&s), bytes);
        assert_int_equal(an_context_bytes(ctx) - before, bytes);
        for (int run = 0; run < s.run_count; run++)
            for (int64_t b = s.runs[run].begin * s.page_bytes; b < s.runs[run].end * s.page_bytes; b++) {
                assert_int_equal(((char *)memory)[b], 0);
                ((char *)memory)[b] = 1;
            }
        an_sparse_release(ctx, &memory, &s);
        assert_null(memory);
        assert_int_equal(an_context_bytes(ctx), before);
        assert_int_equal(mappings.held, mapped);
        an_sparse_release(ctx, &memory, &s); /* NULL: nothing */
        assert_int_equal(an_context_bytes(ctx), before);
    }
    an_context_destroy(&ctx);
    assert_int_equal(l.held, 0);
}

/* A child that touches a page does not come back. */
static bool survives(volatile char *byte, bool writes) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        signal(SIGSEGV, SIG_DFL); /* cmocka has a handler, and sanitizers have */
        if (writes)
            *byte = 1;
        else
            (void)*byte;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_a_stray_access_is_a_fault(void **state) {
    (void)state;
    an_context *ctx = NULL;
    void *memory = NULL;
    const int64_t size = sysconf(_SC_PAGESIZE);
    an_sparse s = grid(0);
    s.page_bytes = size;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_sparse_alloc(ctx, &memory, &s));
    for (int writes = 0; writes < 2; writes++) {
        assert_true(survives((char *)memory + size, writes));
        assert_true(survives((char *)memory + 3 * size - 1, writes));
        assert_false(survives((char *)memory + size - 1, writes));
        assert_false(survives((char *)memory + 5 * size, writes));
    }
    an_sparse_release(ctx, &memory, &s);
    an_context_destroy(&ctx);
}

static void test_every_mapping_fails(void **state) {
    (void)state;
    an_context *ctx = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    const size_t before = an_context_bytes(ctx);
    const int64_t mapped = mappings.held;
    an_sparse s = grid(0);
    s.page_bytes = sysconf(_SC_PAGESIZE);
    char words[32];
    snprintf(words, sizeof words, "%lld", (long long)an_sparse_bytes(&s));
    long failed = 0;
    for (bool made = false; !made; failed++) {
        void *memory = NULL;
        mappings = (mapping_ledger){.held = mapped, .fail_at = failed + 1};
        const an_status status = an_sparse_alloc(ctx, &memory, &s);
        made = status == AN_OK;
        mappings.fail_at = 0;
        if (made) {
            an_sparse_release(ctx, &memory, &s);
        } else {
            assert_int_equal(status, AN_ERR_MEMORY);
            assert_non_null(strstr(an_last_error(ctx), "out of memory"));
            assert_non_null(strstr(an_last_error(ctx), words));
        }
        assert_null(memory);
        assert_int_equal(an_context_bytes(ctx), before);
        assert_int_equal(mappings.held, mapped);
    }
    assert_int_equal(failed - 1, 3); /* the addresses, and two runs */
    an_context_destroy(&ctx);
}

static void test_no_grid_and_one_too_large(void **state) {
    (void)state;
    an_context *ctx = NULL;
    void *memory = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    const size_t before = an_context_bytes(ctx);
    const an_sparse none = {.page_bytes = 4096}, large = {.pages = INT64_MAX / 4096, .page_bytes = 4096},
                    larger = {.pages = INT64_MAX / 2, .page_bytes = 4096};
    OK(ctx, an_sparse_alloc(ctx, &memory, &none));
    assert_null(memory);
    FAILS(ctx, an_sparse_alloc(ctx, &memory, &large), AN_ERR_OVERFLOW, "do not fit");
    FAILS(ctx, an_sparse_alloc(ctx, &memory, &larger), AN_ERR_OVERFLOW, "do not fit");
    assert_null(memory);
    assert_int_equal(an_context_bytes(ctx), before);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_there),
        cmocka_unit_test(test_a_stray_access_is_a_fault),
        cmocka_unit_test(test_every_mapping_fails),
        cmocka_unit_test(test_no_grid_and_one_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
