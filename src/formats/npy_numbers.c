#include "formats/npy_numbers.h"

#include <string.h>

#include "anneal/data.h"
#include "base/float16.h"

/* ---- types ---- */

static uint64_t lower_first(const unsigned char *b, size_t width) {
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | b[i];
    return value;
}

static double number_f16(const unsigned char *b) {
    return (double)an_f16_to_f32((uint16_t)lower_first(b, 2));
}
static double number_f32(const unsigned char *b) {
    const uint32_t bits = (uint32_t)lower_first(b, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}
static double number_f64(const unsigned char *b) {
    const uint64_t bits = lower_first(b, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static double number_i8(const unsigned char *b) {
    return (int8_t)b[0];
}
static double number_i16(const unsigned char *b) {
    return (int16_t)lower_first(b, 2);
}
static double number_i32(const unsigned char *b) {
    return (int32_t)lower_first(b, 4);
}
static double number_i64(const unsigned char *b) {
    return (double)(int64_t)lower_first(b, 8);
}
static double number_u8(const unsigned char *b) {
    return b[0];
}
static double number_u16(const unsigned char *b) {
    return (double)lower_first(b, 2);
}
static double number_u32(const unsigned char *b) {
    return (double)lower_first(b, 4);
}
static double number_u64(const unsigned char *b) {
    return (double)lower_first(b, 8);
}

static const an_npy_type types[] = {
    {"f2", 2, false, number_f16}, {"f4", 4, false, number_f32}, {"f8", 8, false, number_f64},
    {"i1", 1, true, number_i8},   {"i2", 2, true, number_i16},  {"i4", 4, true, number_i32},
    {"i8", 8, true, number_i64},  {"u1", 1, true, number_u8},   {"u2", 2, true, number_u16},
    {"u4", 4, true, number_u32},  {"u8", 8, true, number_u64},  {"b1", 1, true, number_u8}};

const an_npy_type *an_npy_type_find(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, name)) return &types[i];
    return NULL;
}

/* ---- what samples get ---- */

static bool is_class(double value) {
    return value == AN_TARGET_IGNORED || (value >= 0 && value < INT32_MAX);
}

size_t an_npy_convert(const an_npy_type *type, an_dtype dtype, float divisor, const unsigned char *from, size_t count,
                      void *to, const char **what) {
    double (*const number)(const unsigned char *) = type->number;
    const size_t width = type->width;
    *what = dtype == AN_DTYPE_I32   ? "a class: classes are 0, 1, 2, …"
            : dtype == AN_DTYPE_F64 ? "a finite number"
                                    : "a finite f32 number";
    for (size_t i = 0; i < count; i++) {
        const double value = number(from + i * width);
        if (dtype == AN_DTYPE_I32) {
            if (!is_class(value)) return i;
            ((int32_t *)to)[i] = (int32_t)value;
        } else if (dtype == AN_DTYPE_F64) {
            if (!(value >= -0x1.fffffffffffffp1023 && value <= 0x1.fffffffffffffp1023)) return i;
            ((double *)to)[i] = value / (double)divisor;
        } else {
            if (!(value > -0x1.ffffffp127 && value < 0x1.ffffffp127))
                return i; /* from there on it rounds to infinity */
            ((float *)to)[i] = (float)value / divisor;
        }
    }
    return count;
}
