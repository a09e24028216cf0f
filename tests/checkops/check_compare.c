/* Comparing an output with its oracle.
 *
 * An element is right if |got - want| <= tolerance · max(|want|, rms), rms being the root mean square of the output:
 * sums that cancel are judged by the size of what they cancel from. An output of few elements may cancel as a whole, so
 * its usual size over other inputs counts too; and where it always cancels (the logarithm of a softmax over one
 * element), the inputs' root mean square. bf16 and f16 outputs may be one ulp away from the oracle rounded
 * to f32 and then to the output's type, or lie where the same rule for f32 and that rounding would put them. A kernel
 * on AMX that rounds in between has a tolerance of its family.
 */
#include "base/float16.h"
#include "checkops/checkops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static long double tolerance(const check_run *run, an_dtype dtype) {
    long double factor = run->c.tolerance_factor > 0 ? run->c.tolerance_factor : 1;
    return factor * (dtype == AN_DTYPE_F64 ? 1e-12L : 1e-5L);
}

static long double size_of(const check_run *run, int output) {
    const check_operand *dst = &run->dst[output];
    long double size = fmaxl(check_root_mean_square(&dst->array), dst->usual), inputs = 0;
    for (int i = 0; i < run->src_count; i++)
        if (run->src[i].array.data && an_dtype_is_float(run->src[i].tensor.dtype))
            inputs = fmaxl(inputs, check_root_mean_square(&run->src[i].array));
    return size < tolerance(run, dst->tensor.dtype) * inputs ? inputs : size;
}

/* Half-width floats in order as integers: neighbours differ by one. */
static int ordinal(an_dtype dtype, long double value) {
    uint16_t bits = dtype == AN_DTYPE_BF16 ? an_f32_to_bf16((float)value) : an_f32_to_f16((float)value);
    return bits & 0x8000 ? -(bits & 0x7fff) : bits;
}

static bool is_right(const check_run *run, an_dtype dtype, long double got, long double want, long double rms) {
    long double rounded = check_rounded(dtype, want);
    if (isnan(got) || isnan(rounded)) return isnan(got) && isnan(rounded);
    if (got == rounded) return true;
    if (run->family->exact || !an_dtype_is_float(dtype) || isinf(got) || isinf(rounded)) return false;
    bool is_amx = dtype == AN_DTYPE_BF16 && !strcmp(run->kernel->name, "amx");
    long double error = fmaxl(tolerance(run, dtype), is_amx ? run->family->amx_error : 0) * fmaxl(fabsl(want), rms);
    if (dtype == AN_DTYPE_F32 || dtype == AN_DTYPE_F64) return fabsl(got - want) <= error;
    int at = ordinal(dtype, got), right = ordinal(dtype, want);
    return (at >= right - 1 && at <= right + 1) ||
           (at >= ordinal(dtype, want - error) && at <= ordinal(dtype, want + error));
}

const char *check_compare(const check_run *run, int output) {
    static char message[512];
    const check_operand *dst = &run->dst[output];
    an_dtype dtype = dst->tensor.dtype;
    long double rms = size_of(run, output);
    int64_t wrong = 0, first = 0;
    for (int64_t i = 0; i < dst->array.count; i++) {
        if (is_right(run, dtype, check_load(dtype, check_element(&dst->tensor, i)), dst->array.data[i], rms)) continue;
        if (!wrong++) first = i;
    }
    if (!wrong) return NULL;
    long double got = check_load(dtype, check_element(&dst->tensor, first)), want = dst->array.data[first];
    snprintf(message, sizeof message,
             "output %d: %lld of %lld elements are wrong, the first is element %lld: %.9Lg, expected %.9Lg (relative "
             "error %.3Lg, rms %.3Lg)",
             output, (long long)wrong, (long long)dst->array.count, (long long)first, got, want,
             fabsl(got - want) / fmaxl(fabsl(want), rms), rms);
    return message;
}
