/* A short calibration: every thread runs one loop for a moment, and the best moment counts, since others may use the
 * machine too. The loops for arithmetic stay in registers; the one for memory walks arrays far larger than a core's
 * caches. */
#include "cli/bench/machine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct worker worker;
typedef double (*work_function)(worker *w); /* does a millisecond's work or less, and says how much it was */

struct worker {
    pthread_t thread;
    work_function work;
    double rate; /* work a second */
    float *src, *dst;
    size_t elements, next; /* of its arrays; where the walk goes on */
    float kept;            /* results go here, so that a compiler cannot leave the work out */
};

enum { ROUNDS = 4096, ACCUMULATORS = 12, MOMENTS = 5 }; /* 12 hide the latency of two units that take 4 cycles */
static const double moment = 0.02;                      /* seconds */

/* ---- arithmetic ---- x·factor + addend goes to 1, so no number grows or becomes denormal */

static const float factor = 0.5f, addend = 0.5f;

/* Kernels of the lowest level multiply and add, for the compiler to vectorise. */
static double arithmetic_base(worker *w) {
    enum { LANES = 4 };
    float x[ACCUMULATORS * LANES] = {0};
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < ACCUMULATORS * LANES; i++) x[i] = x[i] * factor + addend;
    for (int i = 0; i < ACCUMULATORS * LANES; i++) w->kept += x[i];
    return 2.0 * ROUNDS * ACCUMULATORS * LANES;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static double arithmetic_avx2(worker *w) {
    enum { LANES = 8 };
    __m256 x[ACCUMULATORS], sum = _mm256_setzero_ps();
    const __m256 a = _mm256_set1_ps(factor), b = _mm256_set1_ps(addend);
    for (int i = 0; i < ACCUMULATORS; i++) x[i] = sum;
    for (int round = 0; round < ROUNDS; round++)
#pragma GCC unroll 12
        for (int i = 0; i < ACCUMULATORS; i++) x[i] = _mm256_fmadd_ps(x[i], a, b);
    for (int i = 0; i < ACCUMULATORS; i++) sum = _mm256_add_ps(sum, x[i]);
    w->kept += _mm256_cvtss_f32(sum);
    return 2.0 * ROUNDS * ACCUMULATORS * LANES;
}

__attribute__((target("avx512f"))) static double arithmetic_avx512(worker *w) {
    enum { LANES = 16 };
    __m512 x[ACCUMULATORS], sum = _mm512_setzero_ps();
    const __m512 a = _mm512_set1_ps(factor), b = _mm512_set1_ps(addend);
    for (int i = 0; i < ACCUMULATORS; i++) x[i] = sum;
    for (int round = 0; round < ROUNDS; round++)
#pragma GCC unroll 12
        for (int i = 0; i < ACCUMULATORS; i++) x[i] = _mm512_fmadd_ps(x[i], a, b);
    for (int i = 0; i < ACCUMULATORS; i++) sum = _mm512_add_ps(sum, x[i]);
    w->kept += _mm512_cvtss_f32(sum);
    return 2.0 * ROUNDS * ACCUMULATORS * LANES;
}

/* Eight tiles of 16 rows of 64 bytes. A constant: compilers do not see that all of it is read. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tiles = {.palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

/* Four sums, two and two operands, as a product's inner loop has them. A context of this level has asked the system for
 * tiles. */
__attribute__((target("amx-tile,amx-bf16"))) static double arithmetic_amx(worker *w) {
    enum { ROWS = 16, COLUMNS = 16, DEPTH = 32, SUMS = 4 };
    (void)w;
    _tile_loadconfig(&tiles);
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (int round = 0; round < ROUNDS; round++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
    return 2.0 * ROUNDS * SUMS * ROWS * COLUMNS * DEPTH;
}
#endif

/* ---- memory ---- */

enum { STRETCH = 1 << 16 }; /* elements: 50 microseconds' worth */

/* Reads two arrays and writes one, as most kernels that wait for memory do. */
static double memory_update(worker *w) {
    float *dst = w->dst + w->next;
    const float *src = w->src + w->next;
    for (size_t i = 0; i < STRETCH; i++) dst[i] = dst[i] * factor + src[i];
    w->next = (w->next + STRETCH) % w->elements;
    return 3.0 * STRETCH * sizeof(float);
}

/* ---- measuring ---- */

static void *run_worker(void *user) {
    worker *w = user;
    const double begin = an_clock_seconds();
    double amount = 0, elapsed;
    do {
        amount += w->work(w);
        elapsed = an_clock_seconds() - begin;
    } while (elapsed < moment);
    w->rate = amount / elapsed;
    return NULL;
}

/* What all threads do together in a second, in their best moment. */
static an_status measure(worker *workers, int threads, work_function work, double *rate) {
    *rate = 0;
    for (int repeat = 0; repeat < MOMENTS; repeat++) {
        double sum = 0;
        int started = 0;
        for (; started < threads; started++) {
            workers[started].work = work;
            if (pthread_create(&workers[started].thread, NULL, run_worker, &workers[started]) != 0) break;
        }
        for (int i = 0; i < started; i++) {
            pthread_join(workers[i].thread, NULL);
            sum += workers[i].rate;
        }
        if (started < threads) return AN_ERR_MEMORY;
        if (sum > *rate) *rate = sum;
    }
    return AN_OK;
}

static an_status measure_arithmetic(cli_machine *machine, worker *workers, int threads, an_isa isa) {
    work_function vectors = arithmetic_base;
#if defined(__x86_64__)
    if (isa == AN_ISA_AVX2) vectors = arithmetic_avx2;
    if (isa >= AN_ISA_AVX512) vectors = arithmetic_avx512;
#else
    (void)isa; /* there is one level */
#endif
    an_status status = measure(workers, threads, vectors, &machine->f32);
    machine->f64 = machine->f32 / 2; /* half as many fit in a register */
    machine->bf16 = machine->f32;    /* below tiles, kernels widen it */
#if defined(__x86_64__)
    if (status == AN_OK && isa >= AN_ISA_AMX) status = measure(workers, threads, arithmetic_amx, &machine->bf16);
#endif
    return status;
}

static an_status measure_memory(cli_machine *machine, worker *workers, int threads) {
    enum { TOUCH = 0x3c }; /* 0.01 in every element; zeros would be left to the system, to make at the first use */
    const size_t all = (size_t)1 << 25; /* elements of each of the two arrays: 128 MiB */
    const size_t part = all / (size_t)threads < STRETCH ? STRETCH : all / (size_t)threads / STRETCH * STRETCH;
    float *src = malloc(part * (size_t)threads * sizeof *src), *dst = malloc(part * (size_t)threads * sizeof *dst);
    an_status status = src && dst ? AN_OK : AN_ERR_MEMORY;
    if (status == AN_OK) {
        memset(src, TOUCH, part * (size_t)threads * sizeof *src);
        memset(dst, TOUCH, part * (size_t)threads * sizeof *dst);
        for (int i = 0; i < threads; i++) {
            workers[i].src = src + part * (size_t)i;
            workers[i].dst = dst + part * (size_t)i;
            workers[i].elements = part;
        }
        status = measure(workers, threads, memory_update, &machine->bandwidth);
    }
    free(src);
    free(dst);
    return status;
}

an_status cli_machine_measure(cli_machine *machine, int threads, an_isa isa) {
    worker *workers = calloc((size_t)threads, sizeof *workers);
    an_status status = workers ? measure_arithmetic(machine, workers, threads, isa) : AN_ERR_MEMORY;
    if (status == AN_OK) status = measure_memory(machine, workers, threads);
    free(workers);
    return status;
}
