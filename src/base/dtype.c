#include "base/dtype.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [AN_DTYPE_NONE] = {"none", 0}, [AN_DTYPE_F32] = {"f32", 4}, [AN_DTYPE_F64] = {"f64", 8},
    [AN_DTYPE_BF16] = {"bf16", 2}, [AN_DTYPE_F16] = {"f16", 2}, [AN_DTYPE_I32] = {"i32", 4},
    [AN_DTYPE_I64] = {"i64", 8},   [AN_DTYPE_U8] = {"u8", 1},
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
