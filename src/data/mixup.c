#include "data/mixup.h"

#include <math.h>

#include "base/philox.h"

/* ---- random numbers ---- */

/* Apart from every other use of them: "mixup" in ASCII. */
static const uint64_t site = 0x6d69787570;

/* Blocks of the stream. A gamma number takes block 0 of its own, and two for each attempt. */
enum { PARTNER = 0, GAMMA_OWN = 1, GAMMA_OTHER = 1 << 16, ATTEMPTS = 64 };

/* In (0, 1): its logarithm is finite. */
static double uniform(const uint32_t words[2]) {
    return an_uniform_of_words_f64(words[0], words[1]) + 0x1p-54;
}

/* The logarithm of a number of the distribution Gamma(alpha): that of Gamma(alpha + 1), found by the method of
 * Marsaglia and Tsang (2000), plus log(u) / alpha. Logarithms, because with a small alpha both of two such numbers may
 * be below the least f64, and their ratio is needed. An attempt fails in less than 5 of 100 cases; if all do, in
 * less than 1 of 10^80, the mode is taken. */
static double log_gamma_number(an_philox_stream stream, uint64_t first, double alpha) {
    const double d = alpha + 2.0 / 3, c = 1 / sqrt(9 * d);
    uint32_t words[4];
    double log_cube = 0;
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        an_philox_block(stream, first + 1 + 2 * attempt, words);
        const double x = an_normals_of_words_f64(words).cosine, root = 1 + c * x;
        if (root <= 0) continue;
        an_philox_block(stream, first + 2 + 2 * attempt, words);
        const double log_root = 3 * an_log_f64(root), cube = root * root * root;
        if (an_log_f64(uniform(words)) >= x * x / 2 + d - d * cube + d * log_root) continue;
        log_cube = log_root;
        break;
    }
    an_philox_block(stream, first, words);
    return an_log_f64(d) + log_cube + an_log_f64(uniform(words)) / alpha;
}

an_mix an_mix_draw(double alpha, uint64_t seed, uint64_t epoch, int64_t sample, int64_t count) {
    const an_philox_stream stream =
        an_philox_fold((an_philox_key){.seed = seed, .step = epoch, .sample = (uint64_t)sample, .site = site});
    uint32_t words[4];
    if (count < 2) return (an_mix){sample, AN_MIX_WHOLE};
    an_philox_block(stream, PARTNER, words);
    const uint64_t word = (uint64_t)words[0] << 32 | words[1];
    const int64_t apart = 1 + (int64_t)(word % (uint64_t)(count - 1)); /* never the sample itself */
    const double difference = log_gamma_number(stream, GAMMA_OTHER, alpha) - log_gamma_number(stream, GAMMA_OWN, alpha);
    const double share = 1 / (1 + an_exp_f64(difference)); /* a / (a + b), also where a or b is no f64 */
    return (an_mix){(sample + apart) % count, (int64_t)(share * AN_MIX_WHOLE + 0.5)};
}

/* ---- blending ---- */

#define BLEND(type, own, other)                                                                           \
    do {                                                                                                  \
        type *const to = (own);                                                                           \
        const type *const from = (other);                                                                 \
        const type part = (type)share / AN_MIX_WHOLE, rest = (type)(AN_MIX_WHOLE - share) / AN_MIX_WHOLE; \
        for (int64_t i = 0; i < count; i++) to[i] = part * to[i] + rest * from[i];                        \
    } while (0)

void an_mix_blend(an_dtype dtype, int64_t count, int64_t share, void *own, const void *other) {
    if (dtype == AN_DTYPE_F32) BLEND(float, own, other);
    if (dtype == AN_DTYPE_F64) BLEND(double, own, other);
}
