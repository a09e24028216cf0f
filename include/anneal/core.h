/* What every other header builds on: status codes, the context, arrays, and how structs grow.
 *
 * Errors. Every function that can fail returns an an_status and leaves a message: an_last_error(NULL) returns the last
 * one of the calling thread, and an_last_error(ctx) the last one of a context. NULL for a handle, or for any other
 * pointer that a call needs, is AN_ERR_ARGUMENT. A function that returns no status then does nothing and returns 0,
 * false, NULL or "".
 *
 * The host program. The library never prints, exits or aborts. It changes nothing in its host: no signal handlers, no
 * locale, no rounding mode, no OpenMP settings. A context, and everything made from it, is used by one thread at a
 * time. Two contexts are independent.
 *
 * Fork. Threads do not survive fork. In the child, calls that need the threads of a context return AN_ERR_STATE:
 * destroy the context there and create another one. The parent is not affected.
 *
 * Signals belong to the host. Under a limit on file sizes (ulimit -f), the system kills a process that writes past the
 * limit, with SIGXFSZ. If the host ignores SIGXFSZ, the call returns AN_ERR_FILE instead.
 */
#ifndef ANNEAL_CORE_H
#define ANNEAL_CORE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define AN_API __attribute__((visibility("default")))
#define AN_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define AN_API
#define AN_PRINTF(text, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* ---- how structs grow ----
 *
 * A public struct begins with its size and is filled by its own function, which writes every byte:
 *
 *     an_context_options options;
 *     an_context_options_init(&options, sizeof options);
 *     options.threads = 8;
 *
 * So 0 means 0. Where 0 cannot be a sensible value (threads, steps), 0 means automatic, and the comment says what
 * that is. Where a default is derived from other options, init writes AN_AUTO.
 *
 * Later releases only append members. An older program works with a newer library: the library uses its own defaults
 * for members that the program does not have. A newer program works with an older library, unless it sets a member
 * that the library does not have; the call is then refused with AN_ERR_ARGUMENT.
 *
 * Structs that a call fills are initialized in the same way. A call writes at most as many bytes as the caller's
 * struct has. The elements of an array of structs all have the size of the first. A few small structs never grow;
 * they have no size and say so. */

/* Automatic, for members of type double. */
#define AN_AUTO ((double)NAN)
AN_API double an_auto(void);          /* the same, for languages without macros */
AN_API bool an_is_auto(double value); /* whether a member is AN_AUTO */

/* ---- status, types and arrays ---- */

typedef enum an_status {
#define AN_STATUS(name, value, text) AN_##name = value,
#include "anneal/status.def"
#undef AN_STATUS
    AN_STATUS_LIMIT = 0x7fffffff
} an_status;

typedef enum an_dtype {
    AN_DTYPE_NONE = 0,
    AN_DTYPE_F32 = 1,
    AN_DTYPE_F64 = 2,
    AN_DTYPE_BF16 = 3,
    AN_DTYPE_F16 = 4,
    AN_DTYPE_I32 = 5,
    AN_DTYPE_I64 = 6,
    AN_DTYPE_U8 = 7,
    AN_DTYPE_Q8_0 = 8, /* of frozen matrices: blocks of 32 elements of 8 bits with a scale in f16, as in GGUF files */
    AN_DTYPE_LIMIT = 0x7fffffff
} an_dtype;

enum { AN_MAX_DIMS = 8 };

/* An array in the caller's memory. Dimensions are in C order; strides are in elements; strides that are all 0 mean
 * dense. This struct never grows: set its members directly. */
typedef struct an_array {
    void *data;
    an_dtype dtype;
    int ndims;
    int64_t dims[AN_MAX_DIMS];
    int64_t strides[AN_MAX_DIMS];
} an_array;

/* ---- context ---- */

typedef struct an_context an_context;
typedef struct an_comm an_comm;           /* the ranks of a run: mpi.h makes one, experimental.h has the record */
typedef struct an_device an_device;       /* experimental.h */
typedef struct an_heartbeat an_heartbeat; /* heartbeat.h */

/* Where a context gets the memory for its bookkeeping and, on the host device, for its tensors. `allocate` returns NULL
 * when it is out of memory. `release` gets the size that was allocated. */
typedef struct an_allocator {
    size_t size;
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void *user;
} an_allocator;
AN_API void an_allocator_init(an_allocator *allocator, size_t size);

/* The instruction set that kernels use. A level gives the same bits on every machine that supports it, whatever else
 * that machine can do. Different levels may give different bits (docs/bits.md). The environment variable ANNEAL_MAX_ISA
 * (base, avx2, avx512 or amx) limits the level of every context that the process creates: higher levels count as not
 * supported. If it has another value, no context can be created. */
typedef enum an_isa {
    AN_ISA_AUTO = 0,   /* the highest level that the machine supports and ANNEAL_MAX_ISA allows */
    AN_ISA_BASE = 1,   /* the baseline of the architecture */
    AN_ISA_AVX2 = 2,   /* x86-64-v3 */
    AN_ISA_AVX512 = 3, /* x86-64-v4 */
    AN_ISA_AMX = 4,    /* AVX512 with bf16 vectors and tiles */
    AN_ISA_LIMIT = 0x7fffffff
} an_isa;

typedef enum an_log_level {
    AN_LOG_WARNING = 1,
    AN_LOG_INFO = 2,
    AN_LOG_DEBUG = 3,
    AN_LOG_LIMIT = 0x7fffffff
} an_log_level;

typedef struct an_context_options {
    size_t size;
    const an_allocator *allocator;                                 /* NULL: malloc; copied */
    const an_device *device;                                       /* NULL: the host; must outlive the context */
    void (*log)(void *user, an_log_level level, const char *text); /* NULL: no log */
    void *log_user;
    an_heartbeat *heartbeat; /* where the context's threads report progress; must outlive it; NULL: none */
    an_comm *communicator;   /* the ranks to train with, for one context; must outlive it; NULL: this process only */
    /* 0: OMP_NUM_THREADS, or else the processors of the affinity mask and cgroup, divided among the ranks of this
     * host */
    int threads;
    an_isa isa; /* a level that the machine does not support is refused */
    /* this process trains alone although mpirun or srun started several: each has its own model and run folder. Without
     * this option, such a process cannot create a trainer in a context that has no other ranks */
    bool alone;
    /* ranks of one host add gradients in shared memory, which is faster than messages; true by default. It is used only
     * if all of them set it */
    bool shares_memory;
    uint8_t reserved[6];
} an_context_options;
AN_API void an_context_options_init(an_context_options *options, size_t size);

/* Creates a context. `options` may be NULL. an_last_error(NULL) has the message of an error. Collective over the
 * communicator of the options, if they have one. */
AN_API an_status an_context_create(an_context **context, const an_context_options *options);

/* Destroys a context and sets the pointer to NULL; a NULL pointer is allowed. Destroy everything that was made from the
 * context first. Not collective. */
AN_API void an_context_destroy(an_context **context);

/* The message of the last error on a context, valid until the next call on it. With NULL: of the last error in the
 * calling thread, whatever failed: a call without a context, a context, or a handle that each thread may have for
 * itself (a predictor, a generator, an encoder). Never returns NULL. Not collective. */
AN_API const char *an_last_error(const an_context *context);

/* Releases a text that a call allocated on this context, and sets the pointer to NULL. Not collective. */
AN_API void an_string_release(an_context *context, char **text);

/* ==== details ==== the rest of the interface */

/* The functions that the last error passed through, innermost first, one per line: "in an_plan_create (plan.c:120)".
 * Lifetime and NULL are as for an_last_error. Not collective. */
AN_API const char *an_last_error_trail(const an_context *context);

/* The number of threads that kernels of this context may use. Not collective. */
AN_API int an_context_threads(const an_context *context);

/* The instruction set that kernels of this context use; never AN_ISA_AUTO. Not collective. */
AN_API an_isa an_context_isa(const an_context *context);
AN_API const char *an_isa_name(an_isa isa); /* "avx512" */

/* Seconds that an idle thread of this context spins before it sleeps: a fraction of a millisecond. 0 if there are more
 * threads than processors, or if OMP_WAIT_POLICY was "passive" when the context was created; INFINITY if it was
 * "active". A thread with work never waits for a thread that the system has not scheduled. Not collective. */
AN_API double an_context_spin(const an_context *context);

/* Bytes that the context holds now: bookkeeping and tensors. Not collective. */
AN_API size_t an_context_bytes(const an_context *context);

AN_API const char *an_status_name(an_status status); /* "AN_ERR_SHAPE" */
AN_API const char *an_status_text(an_status status); /* "shapes do not fit" */
AN_API const char *an_dtype_name(an_dtype dtype);    /* "f32" */
AN_API size_t an_dtype_size(an_dtype dtype);         /* bytes of an element; 0 for AN_DTYPE_NONE and AN_DTYPE_Q8_0 */
AN_API const char *an_version(void);                 /* "0.2.0" */
AN_API const char *an_onednn_version(void);          /* "3.2.0"; "" without oneDNN */
AN_API const char *an_mpi_version(void);             /* of the plugins: "Open MPI 4.1.4, MPICH 4.0.2"; "" without any */

/* ==== experimental ==== may change at any release before 1.0 */

/* One activity of a thread, with its begin and end. Spans of a thread are disjoint or nested. The texts are constants.
 * Later releases append members, and may change the names. */
typedef struct an_span {
    /* "training": the thread that calls the library; "loader", "evaluation loader", "save": threads of the context */
    const char *thread;
    int64_t index;     /* of the thread among those of the same name, from 0 */
    const char *name;  /* "step", "data", "forward and backward", "reduce", "optimizer", "evaluation", "save", … */
    int64_t number;    /* of the step or batch; -1: none */
    double begin, end; /* seconds, as CLOCK_MONOTONIC has them */
} an_span;

/* Sets a function that is called with every span when it ends; an inner span ends before the outer one. Several threads
 * may call it at the same time, and they wait for it. Spans that end with an error are not reported. Set it before
 * anything is made from the context. NULL: none. Not collective. */
AN_API void an_context_set_span(an_context *context, void (*span)(void *user, const an_span *span), void *user);

#ifdef __cplusplus
}
#endif
#endif
