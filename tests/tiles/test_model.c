/* The model of tiles: bit for bit what a processor with AMX was recorded to do, and what this one does if it has AMX;
 * and it stops kernels that the processor would stop.
 *
 *     test_tiles_model [PROBLEMS]     how many random problems the model and the processor both get
 *
 * NaNs are compared too, bit for bit. Kernels promise less: which of two NaNs a sum gives depends on the order of
 * factors, and they exchange factors where that is faster.
 */
#include "support/support.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/isa.h"
#include "kernels/common/tiles.h"
#include "tiles/model.h"
#include "tiles/problem.h"

static long problems = 2000;

static void compare(const problem *before, const problem *after, const char *where, long number) {
    problem got = *before;
    problem_run_on_model(&got);
    for (int i = 0; i < got.sums_bytes; i += 4) {
        uint32_t expected, bits, old;
        memcpy(&expected, after->sums + i, sizeof expected);
        memcpy(&bits, got.sums + i, sizeof bits);
        memcpy(&old, before->sums + i, sizeof old);
        if (bits != expected)
            fail_msg("%s, problem %ld (instruction %d, %d × %d × %d), word %d: %08x, not %08x; it was %08x", where,
                     number, before->head.instruction, before->head.rows, before->head.depth, before->head.columns,
                     i / 4, bits, expected, old);
    }
}

static void test_recorded(void **state) {
    (void)state;
    problem before, after;
    char head[sizeof PROBLEM_FILE_HEAD] = "";
    int seen[PROBLEM_INSTRUCTIONS] = {0};
    FILE *file = fopen(ANNEAL_SOURCE_DIR "/tests/tiles/recorded.bin", "rb");
    assert_non_null(file);
    assert_non_null(fgets(head, sizeof head, file));
    assert_string_equal(head, PROBLEM_FILE_HEAD);
    for (long i = 0; problem_read(file, &before, &after); i++) {
        seen[before.head.instruction]++;
        compare(&before, &after, "recorded.bin", i);
    }
    assert_int_not_equal(feof(file), 0);
    assert_int_equal(fclose(file), 0);
    for (int i = 0; i < PROBLEM_INSTRUCTIONS; i++) assert_true(seen[i] >= 10);
}

static void test_processor(void **state) {
    (void)state;
    if (an_isa_highest() != AN_ISA_AMX) skip();
    uint64_t random = 1;
    for (long i = 0; i < problems; i++) {
        problem before, after;
        problem_draw(&before, (problem_instruction)(i % PROBLEM_INSTRUCTIONS), &random);
        after = before;
        problem_run_on_processor(&after);
        compare(&before, &after, "this processor", i);
    }
}

/* Loading leaves nothing of what was in a tile before. */
static void test_smaller_load(void **state) {
    (void)state;
    static const an_tile_sizes whole = {.palette = 1, .row_bytes = {64}, .rows = {16}};
    static const an_tile_sizes part = {.palette = 1, .row_bytes = {12}, .rows = {3}};
    unsigned char ones[1024], got[1024];
    memset(ones, 1, sizeof ones);
    memset(got, 7, sizeof got);
    tile_model_configure(&whole);
    tile_model_load(0, ones, 64);
    tile_model_release();
    tile_model_configure(&part);
    tile_model_load(0, ones, 64);
    tile_model_store(0, got, 64);
    for (int i = 0; i < 1024; i++) assert_int_equal(got[i], i / 64 < 3 && i % 64 < 12 ? 1 : 7);
    tile_model_release();
    tile_model_configure(&whole);
    tile_model_store(0, got, 64);
    for (int i = 0; i < 1024; i++) assert_int_equal(got[i], 0); /* tiles begin with zeros */
    tile_model_release();
}

/* ---- what the processor would stop ---- */

static const an_tile_sizes all = {
    .palette = 1, .row_bytes = {64, 64, 64, 64, 32, 64, 64, 8}, .rows = {16, 16, 16, 16, 16, 8, 8, 16}};
static unsigned char memory[1024];

static void no_configuration(void) {
    tile_model_zero(0);
}
static void after_release(void) {
    tile_model_configure(&all);
    tile_model_release();
    tile_model_load(0, memory, 64);
}
static void twice(void) {
    tile_model_configure(&all);
    tile_model_configure(&all);
}
static void no_palette(void) {
    const an_tile_sizes sizes = {.row_bytes = {64}, .rows = {16}};
    tile_model_configure(&sizes);
}
static void many_rows(void) {
    const an_tile_sizes sizes = {.palette = 1, .row_bytes = {64}, .rows = {17}};
    tile_model_configure(&sizes);
}
static void long_rows(void) {
    const an_tile_sizes sizes = {.palette = 1, .row_bytes = {68}, .rows = {16}};
    tile_model_configure(&sizes);
}
static void empty_tile(void) {
    const an_tile_sizes sizes = {.palette = 1, .row_bytes = {64}, .rows = {16}};
    tile_model_configure(&sizes);
    tile_model_store(1, memory, 64);
}
static void ninth_tile(void) {
    tile_model_configure(&all);
    tile_model_zero(8);
}
static void same_tile(void) {
    tile_model_configure(&all);
    tile_model_multiply_bf16(0, 0, 1);
}
static void other_depth(void) {
    tile_model_configure(&all);
    tile_model_multiply_bf16(0, 4, 1); /* 8 words times 16 rows */
}
static void other_rows(void) {
    tile_model_configure(&all);
    tile_model_multiply_int8(5, 0, 1); /* 8 rows of sums, 16 rows of a */
}
static void other_columns(void) {
    tile_model_configure(&all);
    tile_model_multiply_int8(7, 0, 1); /* 2 columns of sums, 16 of b */
}

/* Runs it in a process of its own, which must end by abort() after it has said why. */
static void refuses(void (*misuse)(void), const char *why) {
    int ends[2], status = 0;
    char said[256] = "";
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL); /* cmocka's would carry on */
        misuse();
        _exit(0);
    }
    close(ends[1]);
    const ssize_t bytes = read(ends[0], said, sizeof said - 1);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(bytes > 0);
    assert_non_null(strstr(said, why));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_misuse(void **state) {
    (void)state;
    refuses(no_configuration, "before tiles are configured");
    refuses(after_release, "before tiles are configured");
    refuses(twice, "again before they are released");
    refuses(no_palette, "palette");
    refuses(many_rows, "more than 16 rows");
    refuses(long_rows, "more than 64 bytes");
    refuses(empty_tile, "not configured");
    refuses(ninth_tile, "no tile of this number");
    refuses(same_tile, "used twice");
    refuses(other_depth, "depth");
    refuses(other_rows, "rows of the left side");
    refuses(other_columns, "columns of the right side");
}

int main(int count, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_processor),
        cmocka_unit_test(test_smaller_load),
        cmocka_unit_test(test_misuse),
    };
    if (count > 1) problems = strtol(arguments[1], NULL, 10);
#ifdef NEEDS_AVX512
    if (an_isa_highest() < AN_ISA_AVX512) return 77;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
