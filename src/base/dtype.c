#include "base/dtype.h"

#include "base/q8_0.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [AN_DTYPE_NONE] = {"none", 0}, [AN_DTYPE_F32] = {"f32", 4}, [AN_DTYPE_F64] = {"f64", 8},
    [AN_DTYPE_BF16] = {"bf16", 2}, [AN_DTYPE_F16] = {"f16", 2}, [AN_DTYPE_I32] = {"i32", 4},
    [AN_DTYPE_I64] = {"i64", 8},   [AN_DTYPE_U8] = {"u8", 1},   [AN_DTYPE_Q8_0] = {"q8_0", 0},
};

const char *an_dtype_name(an_dtype dtype) {
    return (unsigned)dtype < sizeof dtypes / sizeof dtypes[0] ? dtypes[dtype].name : "unknown";
}

size_t an_dtype_size(an_dtype dtype) {
    return (unsigned)dtype < sizeof dtypes / sizeof dtypes[0] ? dtypes[dtype].size : 0;
}

bool an_dtype_is_float(an_dtype dtype) {
    return dtype == AN_DTYPE_F32 || dtype == AN_DTYPE_F64 || dtype == AN_DTYPE_BF16 || dtype == AN_DTYPE_F16;
}

bool an_dtype_is_index(an_dtype dtype) {
    return dtype == AN_DTYPE_I32 || dtype == AN_DTYPE_I64;
}

int64_t an_dtype_bytes(an_dtype dtype, int64_t elements) {
    if (dtype == AN_DTYPE_Q8_0) return elements / AN_Q8_0_ELEMENTS * AN_Q8_0_BYTES;
    return elements * (int64_t)an_dtype_size(dtype);
}
