/* Changes come in one order: flip, crop, shift, rotate, contrast, brightness, erase. Each draws its own numbers,
 * so that one of them does not change when another is switched on. Pixels are moved, or computed from f32
 * numbers in a fixed order. */
#include "data/augment.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/philox.h"
#include "data/structs.h"

/* ---- options ---- */

/* Flat samples of images are images too, if their source says so. */
static an_status find_sizes(an_augment *a, an_context *ctx, const an_dataset *d) {
    const an_field *inputs = &d->fields[0];
    const int64_t *sizes = inputs->ndims == 3 ? inputs->dims : d->image;
    if (inputs->dtype != AN_DTYPE_F32 || sizes[0] == 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "only images can be augmented, and the inputs of the data are not [channels, height, width] in "
                        "f32");
    a->channels = sizes[0];
    a->height = sizes[1];
    a->width = sizes[2];
    return AN_OK;
}

static an_status check_share(an_context *ctx, double share, const char *name) {
    if (share >= 0 && share <= 1) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "augment: %s is %g; it must be between 0 and 1", name, share);
}

static an_status check(an_context *ctx, const an_augment *a) {
    an_status status;
    const an_augment_options *o = &a->options;
    const int64_t minimum = a->height < a->width ? a->height : a->width;
    AN_CHECK(ctx, (unsigned)o->flip <= AN_FLIP_VERTICAL, AN_ERR_ARGUMENT,
             "augment: flip is %d, which is not a value of an_flip", (int)o->flip);
    AN_CHECK(ctx, o->shift >= 0 && o->shift < minimum, AN_ERR_ARGUMENT,
             "augment: shift is %" PRId64 " pixels, but images have %" PRId64 " × %" PRId64, o->shift, a->height,
             a->width);
    AN_CHECK(ctx, o->crop >= 0 && o->crop < minimum, AN_ERR_ARGUMENT,
             "augment: crop is %" PRId64 " pixels, but images have %" PRId64 " × %" PRId64, o->crop, a->height,
             a->width);
    AN_CHECK(ctx, o->rotate >= 0 && o->rotate <= 180, AN_ERR_ARGUMENT,
             "augment: rotate is %g degrees; it must be between 0 and 180", o->rotate);
    AN_TRY(check_share(ctx, o->brightness, "brightness"));
    AN_TRY(check_share(ctx, o->contrast, "contrast"));
    AN_TRY(check_share(ctx, o->erase, "erase"));
    return AN_OK;
fail:
    return status;
}

static bool asks_for_images(const an_augment_options *o) {
    return o->flip != AN_FLIP_OFF || o->shift != 0 || o->crop != 0 || o->rotate != 0 || o->brightness != 0 ||
           o->contrast != 0 || o->erase != 0;
}

/* Numbers can be blended. A class can too, by its loss; a sequence of tokens cannot. */
static an_status check_mixup(an_context *ctx, const an_dataset *d, double alpha) {
    const double minimum = 0.001, maximum = 1000; /* beyond them a share is always 0 or 1, or always a half */
    if (!(alpha == 0 || (alpha >= minimum && alpha <= maximum)))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "augment: mixup is %g; it must be 0, or between %g and %g", alpha,
                        minimum, maximum);
    for (int f = 0; alpha > 0 && f < d->record.field_count; f++) {
        const an_field *field = &d->fields[f];
        if (an_dtype_is_float(field->dtype) || (field->target && field->ndims == 0)) continue;
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "augment: mixup needs samples of numbers with numbers or one class as targets, but '%s' of the "
                        "data is %s",
                        field->name, field->ndims == 0 ? "a whole number" : "a list of whole numbers, such as tokens");
    }
    if (alpha > 0 && d->streams)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "augment: mixup takes other samples of the training data, and a stream has none");
    return AN_OK;
}

an_status an_augment_make(an_augment *a, an_context *ctx, const an_dataset *dataset, const an_augment_options *given) {
    *a = (an_augment){.channels = 0};
    if (!given) return AN_OK;
    AN_TRY_RETURN(an_augment_options_read(ctx, &a->options, given));
    AN_TRY_RETURN(check_mixup(ctx, dataset, a->options.mixup));
    if (!asks_for_images(&a->options)) return AN_OK;
    AN_TRY_RETURN(find_sizes(a, ctx, dataset));
    return check(ctx, a);
}

/* ---- random numbers ---- */

/* Apart from every other use of them: "augments" in ASCII. */
static const uint64_t site = 0x6175676d656e7473;

/* Which number each change draws. New ones are added at the end. */
enum {
    FLIP,
    SHIFT_X,
    SHIFT_Y,
    CROP_X,
    CROP_Y,
    ROTATE,
    BRIGHTNESS,
    CONTRAST,
    ERASE_AREA,
    ERASE_SHAPE,
    ERASE_X,
    ERASE_Y,
    DRAWS,
    BLOCK = 4
};

static void draw(uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t words[DRAWS]) {
    const an_philox_stream stream =
        an_philox_fold((an_philox_key){.seed = seed, .step = epoch, .sample = sample, .site = site});
    for (int i = 0; i < DRAWS; i += BLOCK) an_philox_block(stream, (uint64_t)(i / BLOCK), words + i);
}

/* 0 … count - 1 */
static int64_t below(uint32_t word, int64_t count) {
    return (int64_t)(((uint64_t)word * (uint64_t)count) >> 32);
}

/* -most … most */
static int64_t around(uint32_t word, int64_t maximum) {
    return below(word, 2 * maximum + 1) - maximum;
}

static float around_f32(uint32_t word, double maximum) {
    return (2 * an_uniform_of_word_f32(word) - 1) * (float)maximum;
}

/* ---- changes of places ---- */

static void flip(const an_augment *a, float *image) {
    const bool is_horizontal = a->options.flip == AN_FLIP_HORIZONTAL;
    const int64_t lines = a->channels * (is_horizontal ? a->height : 1), inner = is_horizontal ? 1 : a->width,
                  count = is_horizontal ? a->width : a->height;
    for (int64_t line = 0; line < lines; line++, image += count * inner)
        for (int64_t i = 0; i < count / 2; i++)
            for (int64_t k = 0; k < inner; k++) {
                float *one = &image[i * inner + k], *other = &image[(count - 1 - i) * inner + k];
                const float kept = *one;
                *one = *other;
                *other = kept;
            }
}

/* The place in an axis that continues as in a mirror; the pixels at the ends are not there twice. */
static int64_t mirrored(int64_t at, int64_t count) {
    if (at < 0) return -at;
    return at < count ? at : 2 * (count - 1) - at;
}

/* Moves an image; what was outside of it is 0, or its mirror image. */
static void move(const an_augment *a, int64_t x_by, int64_t y_by, bool mirrors, float *image, float *scratch) {
    const int64_t h = a->height, w = a->width;
    memcpy(scratch, image, an_augment_bytes(a));
    for (int64_t c = 0; c < a->channels; c++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++) {
                const int64_t from_x = mirrors ? mirrored(x - x_by, w) : x - x_by,
                              from_y = mirrors ? mirrored(y - y_by, h) : y - y_by;
                const bool inside = from_x >= 0 && from_x < w && from_y >= 0 && from_y < h;
                image[(c * h + y) * w + x] = inside ? scratch[(c * h + from_y) * w + from_x] : 0;
            }
}

static float pixel(const an_augment *a, const float *channel, int64_t x, int64_t y) {
    return x >= 0 && x < a->width && y >= 0 && y < a->height ? channel[y * a->width + x] : 0;
}

static int64_t floor_of(float number) {
    const int64_t whole = (int64_t)number;
    return whole - ((float)whole > number);
}

/* Around the centre, bilinear; what was outside is 0. */
static void rotate(const an_augment *a, float angle, float *image, float *scratch) {
    const int64_t h = a->height, w = a->width;
    const float sine = an_sin_f32(angle), cosine = an_cos_f32(angle);
    const float centre_x = (float)(w - 1) / 2, centre_y = (float)(h - 1) / 2;
    memcpy(scratch, image, an_augment_bytes(a));
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const float off_x = (float)x - centre_x, off_y = (float)y - centre_y;
            const float from_x = cosine * off_x + sine * off_y + centre_x,
                        from_y = cosine * off_y - sine * off_x + centre_y;
            const int64_t left = floor_of(from_x), top = floor_of(from_y);
            const float right_part = from_x - (float)left, lower_part = from_y - (float)top;
            for (int64_t c = 0; c < a->channels; c++) {
                const float *channel = scratch + c * h * w;
                const float upper = (1 - right_part) * pixel(a, channel, left, top) +
                                    right_part * pixel(a, channel, left + 1, top),
                            lower = (1 - right_part) * pixel(a, channel, left, top + 1) +
                                    right_part * pixel(a, channel, left + 1, top + 1);
                image[(c * h + y) * w + x] = (1 - lower_part) * upper + lower_part * lower;
            }
        }
}

/* ---- changes of numbers ---- */

/* Away from, or towards, the mean of the image. */
static void change_contrast(const an_augment *a, float factor, float *image) {
    const int64_t count = a->channels * a->height * a->width;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)image[i];
    const float mean = (float)(sum / (double)count);
    for (int64_t i = 0; i < count; i++) image[i] = (image[i] - mean) * factor + mean;
}

static void change_brightness(const an_augment *a, float factor, float *image) {
    const int64_t count = a->channels * a->height * a->width;
    for (int64_t i = 0; i < count; i++) image[i] *= factor;
}

static int64_t side(int64_t whole, float share) {
    const int64_t pixels = (int64_t)((float)whole * share + 0.5f);
    return pixels < whole ? pixels : whole;
}

/* A rectangle of a random share of the image, between half and twice as high as the image's own shape would have it. */
static void erase(const an_augment *a, const uint32_t words[DRAWS], float *image) {
    const float area = an_uniform_of_word_f32(words[ERASE_AREA]) * (float)a->options.erase,
                shape = 0.5f + 1.5f * an_uniform_of_word_f32(words[ERASE_SHAPE]);
    const int64_t h = side(a->height, sqrtf(area * shape)), w = side(a->width, sqrtf(area / shape));
    const int64_t top = below(words[ERASE_Y], a->height - h + 1), left = below(words[ERASE_X], a->width - w + 1);
    for (int64_t c = 0; c < a->channels; c++)
        for (int64_t y = top; y < top + h; y++)
            memset(image + (c * a->height + y) * a->width + left, 0, (size_t)w * sizeof *image);
}

/* ---- all ---- */

void an_augment_image(const an_augment *a, uint64_t seed, uint64_t epoch, uint64_t sample, float *image,
                      float *scratch) {
    const float degree = 0x1.1df46ap-6f; /* π / 180 */
    const an_augment_options *o = &a->options;
    uint32_t words[DRAWS];
    draw(seed, epoch, sample, words);
    if (o->flip != AN_FLIP_OFF && words[FLIP] >> 31) flip(a, image);
    if (o->crop > 0) move(a, around(words[CROP_X], o->crop), around(words[CROP_Y], o->crop), true, image, scratch);
    if (o->shift > 0)
        move(a, around(words[SHIFT_X], o->shift), around(words[SHIFT_Y], o->shift), false, image, scratch);
    if (o->rotate > 0) rotate(a, around_f32(words[ROTATE], o->rotate) * degree, image, scratch);
    if (o->contrast > 0) change_contrast(a, 1 + around_f32(words[CONTRAST], o->contrast), image);
    if (o->brightness > 0) change_brightness(a, 1 + around_f32(words[BRIGHTNESS], o->brightness), image);
    if (o->erase > 0) erase(a, words, image);
}
