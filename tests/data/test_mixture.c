/* Mixtures: shares hold from the start to any place, nothing is skipped or repeated, and any sample is
 * found without the others. */
#include "data/support.h"

enum { MOST_SOURCES = 11 };

/* Sources whose samples are (source, number). */
typedef struct {
    an_dataset *datasets[MOST_SOURCES];
    int numbers[MOST_SOURCES];
    int count;
} sources;

static an_status read_pair(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                           size_t message_capacity) {
    (void)message, (void)message_capacity;
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *)fields[0])[2 * i] = *(const int *)user;
        ((int64_t *)fields[0])[2 * i + 1] = indices[i];
    }
    return AN_OK;
}

static void locate_pair(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    snprintf(place, place_capacity, "source %d: %d %d %d", *(int *)user, field, (int)index, (int)element);
}

static void make_sources(an_context *ctx, sources *s, int count, const int64_t *counts) {
    an_field field;
    an_field_init(&field, sizeof field);
    field.name = "pair";
    field.dtype = AN_DTYPE_I64;
    field.ndims = 1;
    field.dims[0] = 2;
    s->count = count;
    for (int i = 0; i < count; i++) {
        an_dataset_record record;
        an_dataset_record_init(&record, sizeof record);
        s->numbers[i] = i;
        record.count = counts[i];
        record.field_count = 1;
        record.fields = &field;
        record.read = read_pair;
        record.locate = locate_pair;
        record.user = &s->numbers[i];
        OK(ctx, an_dataset_create(&s->datasets[i], ctx, &record));
    }
}

static void free_sources(sources *s) {
    for (int i = 0; i < s->count; i++) an_dataset_destroy(&s->datasets[i]);
}

static an_mixture_source mixture_of(const sources *s, const double *weights, int64_t count) {
    an_mixture_source source;
    an_mixture_source_init(&source, sizeof source);
    source.source_count = s->count;
    source.sources = s->datasets;
    source.weights = weights;
    source.count = count;
    return source;
}

static void check_shares(an_context *ctx, int count, const double *weights, int64_t length) {
    sources s;
    an_dataset *d = NULL;
    int64_t counts[MOST_SOURCES], seen[MOST_SOURCES] = {0};
    double sum = 0, depth = 0;
    for (int i = 0; i < count; i++) {
        counts[i] = INT64_C(1) << 50;
        sum += weights ? weights[i] : 1;
    }
    for (int n = 1; n < count; n *= 2) depth++;
    make_sources(ctx, &s, count, counts);
    const an_mixture_source source = mixture_of(&s, weights, length);
    OK(ctx, an_dataset_create_mixture(&d, ctx, &source));
    for (int64_t i = 0; i < length; i++) {
        int64_t pair[2];
        OK(ctx, an_dataset_read(d, 1, &i, (void *const[]){pair}));
        assert_int_equal(pair[1], seen[pair[0]]); /* the next of its source */
        seen[pair[0]]++;
        for (int k = 0; k < count; k++) {
            const double share = (double)(i + 1) * (weights ? weights[k] : 1) / sum;
            if (fabs((double)seen[k] - share) > depth + 1e-6)
                fail_msg("%d sources: after %d samples source %d has %d, not %g", count, (int)i + 1, k, (int)seen[k],
                         share);
        }
    }
    an_dataset_destroy(&d);
    free_sources(&s);
}

static void test_shares(void **state) {
    static const double weights[][MOST_SOURCES] = {{1},
                                                   {1, 1},
                                                   {3, 1},
                                                   {0.7, 0.3},
                                                   {1, 1000},
                                                   {0.5, 0.3, 0.2},
                                                   {1, 1, 1, 1, 1},
                                                   {9, 1, 1, 1, 2},
                                                   {1e-6, 2e-6, 7e-6},
                                                   {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
    an_context *ctx = new_context();
    (void)state;
    for (size_t c = 0; c < sizeof weights / sizeof *weights; c++) {
        int count = 0;
        while (count < MOST_SOURCES && weights[c][count] > 0) count++;
        check_shares(ctx, count, weights[c], 3000);
    }
    check_shares(ctx, 7, NULL, 700);
    end_context(&ctx);
}

/* Without a count it ends just before a source would be out of samples; with one, sources start anew. */
static void test_count(void **state) {
    static const int64_t counts[3] = {100, 7, 1000};
    static const double weights[3] = {5, 1, 4};
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    sources s;
    int64_t pair[2], seen[3] = {0}, count;
    (void)state;
    make_sources(ctx, &s, 3, counts);
    an_mixture_source source = mixture_of(&s, weights, 0);
    OK(ctx, an_dataset_create_mixture(&d, ctx, &source));
    count = an_dataset_count(d);
    for (int64_t i = 0; i < count; i++) {
        OK(ctx, an_dataset_read(d, 1, &i, (void *const[]){pair}));
        assert_int_equal(pair[1], seen[pair[0]]++);
    }
    for (int k = 0; k < 3; k++) assert_true(seen[k] <= counts[k]);
    assert_int_equal(seen[1], counts[1]); /* it is used up, and the next sample would have been its */
    an_dataset_destroy(&d);
    source.count = count + 1;
    OK(ctx, an_dataset_create_mixture(&d, ctx, &source));
    OK(ctx, an_dataset_read(d, 1, &count, (void *const[]){pair}));
    assert_int_equal(pair[0], 1);
    assert_int_equal(pair[1], 0);
    an_dataset_destroy(&d);
    source.count = 1000;
    OK(ctx, an_dataset_create_mixture(&d, ctx, &source));
    memset(seen, 0, sizeof seen);
    for (int64_t i = 0; i < 1000; i++) {
        OK(ctx, an_dataset_read(d, 1, &i, (void *const[]){pair}));
        assert_int_equal(pair[1], seen[pair[0]]++ % counts[pair[0]]);
    }
    an_dataset_destroy(&d);
    /* Far out, where every product is large. */
    source.count = INT64_C(1) << 62;
    OK(ctx, an_dataset_create_mixture(&d, ctx, &source));
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){source.count - 1}, (void *const[]){pair}));
    assert_in_range(pair[0], 0, 2);
    an_dataset_destroy(&d);
    free_sources(&s);
    end_context(&ctx);
}

static void test_limits_and_mistakes(void **state) {
    static const int64_t counts[2] = {10, 10};
    an_context *ctx = new_context();
    an_dataset *d = NULL, *other = NULL;
    sources s;
    int64_t pair[2];
    (void)state;
    make_sources(ctx, &s, 2, counts);
    an_mixture_source source = mixture_of(&s, (double[]){1, 1}, 0);
    OK(ctx, an_dataset_create_mixture(&d, ctx, &source));
    assert_int_equal(an_dataset_count(d), 20);
    OK(ctx, an_dataset_set_limit(d, "pair", 5));
    FAILS(ctx, an_dataset_read(d, 1, (int64_t[]){11}, (void *const[]){pair}), AN_ERR_PARSE,
          ": 0 5 1: the value 5 in field 'pair'");
    an_dataset_destroy(&d);
    static const double wrong[][2] = {{1, 0}, {-1, 1}, {1, NAN}, {INFINITY, 1}};
    for (int i = 0; i < 4; i++) {
        source.weights = wrong[i];
        FAILS(ctx, an_dataset_create_mixture(&d, ctx, &source), AN_ERR_ARGUMENT, "weight");
    }
    source.weights = NULL;
    float x[3] = {0};
    const an_array a = array_of(x, AN_DTYPE_F32, 1, (int64_t[]){3});
    an_array_source arrays;
    an_array_source_init(&arrays, sizeof arrays);
    arrays.array_count = 1;
    arrays.arrays = &a;
    OK(ctx, an_dataset_create_arrays(&other, ctx, &arrays));
    source.sources = (an_dataset *const[]){s.datasets[0], other};
    FAILS(ctx, an_dataset_create_mixture(&d, ctx, &source), AN_ERR_SHAPE, "source 1 of the mixture, 'inputs'");
    source.source_count = 0;
    FAILS(ctx, an_dataset_create_mixture(&d, ctx, &source), AN_ERR_ARGUMENT, "no sources");
    an_dataset_destroy(&other);
    free_sources(&s);
    end_context(&ctx);
}

/* Two texts whose characters have different numbers do not mix. */
static void test_vocabularies(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL, *texts[2] = {NULL, NULL};
    int64_t count;
    an_text_source text;
    an_text_source_init(&text, sizeof text);
    an_mixture_source source;
    an_mixture_source_init(&source, sizeof source);
    (void)state;
    write_text("one.txt", "abcabcabc");
    write_text("two.txt", "cbcbcbc");
    text.tokens = AN_TEXT_CHARACTERS;
    text.context = 2;
    text.path = "one.txt";
    OK(ctx, an_dataset_create_text(&texts[0], ctx, &text));
    text.path = "two.txt";
    OK(ctx, an_dataset_create_text(&texts[1], ctx, &text));
    source.source_count = 2;
    source.sources = texts;
    FAILS(ctx, an_dataset_create_mixture(&d, ctx, &source), AN_ERR_ARGUMENT,
          "of the mixture has a different vocabulary than source 0, so a token would mean different things; use the "
          "vocabulary of source 0");
    an_dataset_destroy(&texts[1]);
    text.vocabulary = texts[0];
    OK(ctx, an_dataset_create_text(&texts[1], ctx, &text));
    OK(ctx, an_dataset_create_mixture(&d, ctx, &source));
    OK(ctx, an_dataset_vocabulary(d, &count));
    assert_int_equal(count, 3);
    OK(ctx, read_all(d));
    an_dataset_destroy(&d);
    for (int i = 1; i >= 0; i--) an_dataset_destroy(&texts[i]);
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_limits_and_mistakes),
        cmocka_unit_test(test_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
