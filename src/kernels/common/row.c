#include "kernels/common/row.h"

#include "base/float16.h"
#include "base/q8_0.h"

#define LOAD(type, convert)                                                        \
    do {                                                                           \
        const type *from = (const type *)tensor->data + offset;                    \
        if (stride == 1)                                                           \
            for (int64_t i = 0; i < n; i++) buffer[i] = convert(from[i]);          \
        else                                                                       \
            for (int64_t i = 0; i < n; i++) buffer[i] = convert(from[i * stride]); \
    } while (0)

#define STORE(type, convert)                                                  \
    do {                                                                      \
        type *to = (type *)tensor->data + offset;                             \
        if (stride == 1)                                                      \
            for (int64_t i = 0; i < n; i++) to[i] = convert(row[i]);          \
        else                                                                  \
            for (int64_t i = 0; i < n; i++) to[i * stride] = convert(row[i]); \
    } while (0)

#define BF16_OF_F64(x) an_f32_to_bf16((float)(x))
#define F16_OF_F64(x) an_f32_to_f16((float)(x))

/* Along a row, block after block; across, element by element. */
#define LOAD_Q8_0(REAL, suffix)                                                                                   \
    static void load_q8_0_##suffix(const void *blocks, int64_t offset, int64_t stride, int64_t n, REAL *buffer) { \
        if (stride != 1) {                                                                                        \
            for (int64_t i = 0; i < n; i++) buffer[i] = (REAL)an_q8_0_value(blocks, offset + i * stride);         \
            return;                                                                                               \
        }                                                                                                         \
        for (int64_t i = 0; i < n;) {                                                                             \
            const unsigned char *block = an_q8_0_block(blocks, offset + i);                                       \
            const float scale = an_q8_0_scale(block);                                                             \
            const int64_t first = (offset + i) % AN_Q8_0_ELEMENTS, left = AN_Q8_0_ELEMENTS - first;               \
            const int64_t end = n - i < left ? n : i + left;                                                      \
            const unsigned char *from = block + AN_Q8_0_SCALE_BYTES + first - i;                                  \
            for (; i < end; i++) buffer[i] = (REAL)(scale * (float)(int8_t)from[i]);                              \
        }                                                                                                         \
    }
LOAD_Q8_0(float, f32)
LOAD_Q8_0(double, f64)

#define ROWS(REAL, suffix, own_dtype, to_bf16, to_f16)                                                                \
    const REAL *an_row_load_##suffix(const an_tensor *tensor, int64_t offset, int64_t stride, int64_t n,              \
                                     REAL *buffer) {                                                                  \
        if (tensor->dtype == own_dtype && (stride == 1 || n == 1)) return (const REAL *)tensor->data + offset;        \
        switch (tensor->dtype) {                                                                                      \
        case AN_DTYPE_F32: LOAD(float, (REAL)); break;                                                                \
        case AN_DTYPE_F64: LOAD(double, (REAL)); break;                                                               \
        case AN_DTYPE_BF16: LOAD(uint16_t, (REAL)an_bf16_to_f32); break;                                              \
        case AN_DTYPE_F16: LOAD(uint16_t, (REAL)an_f16_to_f32); break;                                                \
        case AN_DTYPE_I32: LOAD(int32_t, (REAL)); break;                                                              \
        case AN_DTYPE_I64: LOAD(int64_t, (REAL)); break;                                                              \
        case AN_DTYPE_U8: LOAD(uint8_t, (REAL)); break;                                                               \
        case AN_DTYPE_Q8_0: load_q8_0_##suffix(tensor->data, offset, stride, n, buffer); break;                       \
        case AN_DTYPE_NONE:                                                                                           \
        case AN_DTYPE_LIMIT: break;                                                                                   \
        }                                                                                                             \
        return buffer;                                                                                                \
    }                                                                                                                 \
    REAL *an_row_target_##suffix(const an_tensor *tensor, int64_t offset, int64_t stride, REAL *buffer) {             \
        return tensor->dtype == own_dtype && stride == 1 ? (REAL *)tensor->data + offset : buffer;                    \
    }                                                                                                                 \
    void an_row_store_##suffix(const an_tensor *tensor, int64_t offset, int64_t stride, int64_t n, const REAL *row) { \
        if (tensor->dtype == own_dtype && row == (const REAL *)tensor->data + offset) return; /* computed in place */ \
        switch (tensor->dtype) {                                                                                      \
        case AN_DTYPE_F32: STORE(float, (float)); break;                                                              \
        case AN_DTYPE_F64: STORE(double, (double)); break;                                                            \
        case AN_DTYPE_BF16: STORE(uint16_t, to_bf16); break;                                                          \
        case AN_DTYPE_F16: STORE(uint16_t, to_f16); break;                                                            \
        case AN_DTYPE_I32: STORE(int32_t, (int32_t)); break;                                                          \
        case AN_DTYPE_I64: STORE(int64_t, (int64_t)); break;                                                          \
        case AN_DTYPE_U8: STORE(uint8_t, (uint8_t)); break;                                                           \
        case AN_DTYPE_Q8_0: /* nothing computes in it */                                                              \
        case AN_DTYPE_NONE:                                                                                           \
        case AN_DTYPE_LIMIT: break;                                                                                   \
        }                                                                                                             \
    }

ROWS(float, f32, AN_DTYPE_F32, an_f32_to_bf16, an_f32_to_f16)
ROWS(double, f64, AN_DTYPE_F64, BF16_OF_F64, F16_OF_F64)

int64_t an_load_index(const an_tensor *tensor, int64_t offset) {
    switch (tensor->dtype) {
    case AN_DTYPE_I32: return ((const int32_t *)tensor->data)[offset];
    case AN_DTYPE_U8: return ((const uint8_t *)tensor->data)[offset];
    default: return ((const int64_t *)tensor->data)[offset];
    }
}

bool an_call_is_f64(const an_call *call) {
    for (int i = 0; i < call->src_count; i++)
        if (call->src[i].dtype == AN_DTYPE_F64) return true;
    for (int i = 0; i < call->dst_count; i++)
        if (call->dst[i].dtype == AN_DTYPE_F64) return true;
    return false;
}

int64_t an_tensor_elements(const an_tensor *tensor) {
    int64_t n = 1;
    for (int i = 0; i < tensor->ndims; i++) n *= tensor->dims[i];
    return n;
}

int64_t an_row_offset(const an_tensor *tensor, int axis, int64_t row) {
    const int outermost = axis == 0 ? 1 : 0; /* what is left of a row's number there is its place: nothing to divide */
    int64_t offset = 0;
    for (int i = tensor->ndims - 1; i > outermost; i--) {
        if (i == axis) continue;
        offset += row % tensor->dims[i] * tensor->strides[i];
        row /= tensor->dims[i];
    }
    return outermost < tensor->ndims ? offset + row * tensor->strides[outermost] : offset;
}

bool an_tensor_is_dense(const an_tensor *tensor) {
    int64_t stride = 1;
    for (int i = tensor->ndims - 1; i >= 0; i--) {
        if (tensor->dims[i] > 1 && tensor->strides[i] != stride) return false;
        stride *= tensor->dims[i];
    }
    return true;
}
