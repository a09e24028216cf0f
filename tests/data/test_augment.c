/* Augmentation: every change is what it says, for each sample and epoch another one, and the same
 * whenever it is asked for. */
#include <math.h>

#include "base/philox.h"
#include "data/augment.h"
#include "data/support.h"

enum { C = 2, H = 6, W = 9, N = C * H * W, TRIALS = 2000 };

static float original[N], image[N], scratch[N];
static an_augment augment;

static void begin(an_augment_options options) {
    options.size = sizeof options;
    augment = (an_augment){.options = options, .channels = C, .height = H, .width = W};
    for (int i = 0; i < N; i++) original[i] = (float)(1 + i % 97) / 128;
}

static void change(uint64_t epoch, uint64_t sample) {
    memcpy(image, original, sizeof image);
    an_augment_image(&augment, 7, epoch, sample, image, scratch);
}

static float at(const float *of, int c, int y, int x) {
    return of[(c * H + y) * W + x];
}

static void test_flip(void **state) {
    (void)state;
    for (int kind = AN_FLIP_HORIZONTAL; kind <= AN_FLIP_VERTICAL; kind++) {
        int flipped = 0;
        begin((an_augment_options){.flip = (an_flip)kind});
        for (uint64_t s = 0; s < TRIALS; s++) {
            change(0, s);
            bool is = false;
            for (int i = 0; i < N; i++) is = is || image[i] != original[i];
            flipped += is;
            for (int c = 0; c < C; c++)
                for (int y = 0; y < H; y++)
                    for (int x = 0; x < W; x++)
                        assert_true(at(image, c, y, x) == at(original, c,
                                                             is && kind == AN_FLIP_VERTICAL ? H - 1 - y : y,
                                                             is && kind == AN_FLIP_HORIZONTAL ? W - 1 - x : x));
        }
        assert_in_range(flipped, TRIALS / 2 - 150, TRIALS / 2 + 150);
    }
}

/* Every shift of up to MOST pixels happens, and nothing else. */
static void check_moves(bool mirrors) {
    enum { MOST = 3, SIDE = 2 * MOST + 1 };
    int seen[SIDE * SIDE] = {0};
    begin(mirrors ? (an_augment_options){.crop = MOST} : (an_augment_options){.shift = MOST});
    for (uint64_t s = 0; s < TRIALS; s++) {
        int found = -1;
        change(3, s);
        for (int m = 0; m < SIDE * SIDE && found < 0; m++) {
            bool same = true;
            for (int c = 0; c < C; c++)
                for (int y = 0; y < H; y++)
                    for (int x = 0; x < W; x++) {
                        int fx = x - (m % SIDE - MOST), fy = y - (m / SIDE - MOST);
                        const bool inside = fx >= 0 && fx < W && fy >= 0 && fy < H;
                        if (mirrors) {
                            fx = fx < 0 ? -fx : fx >= W ? 2 * (W - 1) - fx : fx;
                            fy = fy < 0 ? -fy : fy >= H ? 2 * (H - 1) - fy : fy;
                        }
                        same = same && at(image, c, y, x) == (inside || mirrors ? at(original, c, fy, fx) : 0);
                    }
            if (same) found = m;
        }
        assert_true(found >= 0);
        seen[found]++;
    }
    for (int m = 0; m < SIDE * SIDE; m++) assert_in_range(seen[m], 10, 90); /* 41 on average */
}

static void test_moves(void **state) {
    (void)state;
    check_moves(false);
    check_moves(true);
}

static double pixel(int c, int y, int x) {
    return x >= 0 && x < W && y >= 0 && y < H ? (double)at(original, c, y, x) : 0;
}

/* By the angle that is drawn, computed in f64. */
static void test_rotate(void **state) {
    double minimum = 0, maximum = 0;
    (void)state;
    begin((an_augment_options){.rotate = 40});
    for (uint64_t s = 0; s < 200; s++) {
        const float u =
            an_random_uniform_f32((an_philox_key){.seed = 7, .step = 1, .sample = s, .site = 0x6175676d656e7473}, 5);
        const double angle = (2 * (double)u - 1) * 40 * 3.14159265358979323846 / 180, sine = sin(angle),
                     cosine = cos(angle);
        minimum = fmin(minimum, angle);
        maximum = fmax(maximum, angle);
        change(1, s);
        for (int c = 0; c < C; c++)
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++) {
                    const double ox = x - (W - 1) / 2.0, oy = y - (H - 1) / 2.0;
                    const double fx = cosine * ox + sine * oy + (W - 1) / 2.0,
                                 fy = cosine * oy - sine * ox + (H - 1) / 2.0;
                    const int left = (int)floor(fx), top = (int)floor(fy);
                    const double p = fx - left, q = fy - top;
                    const double want = (1 - q) * ((1 - p) * pixel(c, top, left) + p * pixel(c, top, left + 1)) +
                                        q * ((1 - p) * pixel(c, top + 1, left) + p * pixel(c, top + 1, left + 1));
                    assert_true(fabs(want - (double)at(image, c, y, x)) < 1e-5);
                }
    }
    assert_true(minimum < -0.6 && maximum > 0.6);
}

static void test_numbers(void **state) {
    double minimum = 9, maximum = -9;
    (void)state;
    begin((an_augment_options){.brightness = 0.25});
    for (uint64_t s = 0; s < TRIALS; s++) {
        change(0, s);
        const double factor = (double)(image[0] / original[0]);
        minimum = fmin(minimum, factor);
        maximum = fmax(maximum, factor);
        for (int i = 0; i < N; i++) assert_true(fabs((double)image[i] - factor * (double)original[i]) < 1e-6);
    }
    assert_true(minimum >= 0.75 && minimum < 0.76 && maximum <= 1.25 && maximum > 1.24);
    begin((an_augment_options){.contrast = 0.5});
    double mean = 0;
    for (int i = 0; i < N; i++) mean += (double)original[i] / N;
    minimum = 9, maximum = -9;
    for (uint64_t s = 0; s < TRIALS; s++) {
        change(0, s);
        const double factor = ((double)image[0] - mean) / ((double)original[0] - mean);
        minimum = fmin(minimum, factor);
        maximum = fmax(maximum, factor);
        for (int i = 0; i < N; i++)
            assert_true(fabs((double)image[i] - mean - factor * ((double)original[i] - mean)) < 1e-5);
    }
    assert_true(minimum >= 0.4999 && minimum < 0.51 && maximum <= 1.5001 && maximum > 1.49);
}

/* What is erased is a rectangle, in all channels, no larger than its share. */
static void test_erase(void **state) {
    int largest = 0;
    (void)state;
    begin((an_augment_options){.erase = 0.5});
    for (uint64_t s = 0; s < TRIALS; s++) {
        int top = H, left = W, bottom = -1, right = -1, zeros = 0;
        change(0, s);
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                assert_true((at(image, 0, y, x) == 0) == (at(image, 1, y, x) == 0));
                if (at(image, 0, y, x) != 0) {
                    assert_true(at(image, 0, y, x) == at(original, 0, y, x));
                    continue;
                }
                zeros++;
                top = y < top ? y : top, bottom = y > bottom ? y : bottom;
                left = x < left ? x : left, right = x > right ? x : right;
            }
        if (zeros > 0) assert_int_equal(zeros, (bottom - top + 1) * (right - left + 1));
        largest = zeros > largest ? zeros : largest;
    }
    assert_in_range(largest, H * W * 4 / 10, H * W * 6 / 10); /* sides are rounded */
}

/* Its bits are those of every machine; another seed, epoch or sample gives others. */
static void test_bits(void **state) {
    static const uint64_t wanted = UINT64_C(0xcdd8ff0402e57779);
    uint64_t hash = UINT64_C(14695981039346656037);
    float first[N];
    (void)state;
    begin((an_augment_options){.flip = AN_FLIP_HORIZONTAL,
                               .shift = 2,
                               .crop = 1,
                               .rotate = 15,
                               .brightness = 0.2,
                               .contrast = 0.3,
                               .erase = 0.2});
    for (uint64_t s = 0; s < 100; s++) {
        change(s / 10, s);
        for (size_t i = 0; i < sizeof image; i++) hash = (hash ^ ((unsigned char *)image)[i]) * UINT64_C(1099511628211);
    }
    if (hash != wanted) fail_msg("the bits have changed: the hash is 0x%016llx", (unsigned long long)hash);
    change(1, 2);
    memcpy(first, image, sizeof first);
    change(2, 1);
    assert_memory_not_equal(first, image, sizeof first);
    change(1, 2);
    assert_memory_equal(first, image, sizeof first);
}

static void test_options(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    static float x[3 * 16];
    an_augment made;
    (void)state;
    const an_array images = array_of(x, AN_DTYPE_F32, 4, (int64_t[]){3, 1, 4, 4}),
                   rows = array_of(x, AN_DTYPE_F32, 2, (int64_t[]){3, 16});
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = 1;
    source.arrays = &images;
    OK(ctx, an_dataset_create_arrays(&d, ctx, &source));
    static const struct {
        an_augment_options options;
        const char *words;
    } cases[] = {{{.shift = 4}, "shift is 4 pixels, but images have 4 × 4"},
                 {{.crop = -1}, "crop is -1 pixels"},
                 {{.rotate = 181}, "rotate is 181 degrees"},
                 {{.brightness = 2}, "brightness is 2"},
                 {{.contrast = -1}, "contrast is -1"},
                 {{.erase = NAN}, "erase is nan"},
                 {{.flip = (an_flip)3}, "flip is 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_augment_options o = cases[i].options;
        o.size = sizeof o;
        FAILS(ctx, an_augment_make(&made, ctx, d, &o), AN_ERR_ARGUMENT, cases[i].words);
    }
    an_augment_options good = {.size = sizeof good, .shift = 3, .crop = 3, .rotate = 180, .erase = 1};
    OK(ctx, an_augment_make(&made, ctx, d, &good));
    assert_true(an_augment_changes_images(&made) && !an_augment_mixes(&made) && made.width == 4);
    OK(ctx, an_augment_make(&made, ctx, d, NULL));
    assert_false(an_augment_changes_images(&made));
    an_dataset_destroy(&d);
    source.arrays = &rows;
    OK(ctx, an_dataset_create_arrays(&d, ctx, &source));
    FAILS(ctx, an_augment_make(&made, ctx, d, &good), AN_ERR_ARGUMENT, "only images can be augmented");
    an_dataset_destroy(&d);
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flip),    cmocka_unit_test(test_moves), cmocka_unit_test(test_rotate),
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_erase), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
