/* anneal: train neural networks from C.
 *
 * This header has what every program needs: status, context, arrays. Models are built with graph.h, compiled and
 * run with plan.h; models.h has ready-made ones; experimental.h is for own ops, kernels and passes.
 *
 * Every function that can fail returns an an_status and leaves a message on the context (an_last_error). The library
 * never prints, exits or aborts, and changes nothing of its host: no signal handlers, no locale, no rounding mode, no
 * OpenMP settings. A context and what hangs off it is used by one thread at a time; two contexts never touch.
 *
 * NULL for a handle, or for any other pointer that a call needs, is AN_ERR_ARGUMENT. The message is on the context of the call; if the
 * context or its handle is what is NULL, an_last_error(NULL) has it. A function that returns no status does nothing then, and returns
 * 0, false, NULL, "" or another value that stands for nothing.
 *
 * Threads do not survive fork. In the child, calls that need threads of a context return AN_ERR_STATE: destroy the context there
 * and create another one. The parent does not notice.
 *
 * Signals are the host's. Under a limit on the size of files (ulimit -f) the system ends a process that writes past it, with
 * SIGXFSZ. A host that ignores SIGXFSZ gets AN_ERR_FILE from the call instead.
 */
#ifndef ANNEAL_ANNEAL_H
#define ANNEAL_ANNEAL_H

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

/* Public structs begin with their size, so that a newer library can serve an older program:
 *     an_context_options options = AN_INIT(options);
 * sets it and zeroes the rest; zero is the default of every member. */
#ifdef __cplusplus
template <class T> inline T an_init_struct() {
    T t{};
    t.size = sizeof(T);
    return t;
}
#define AN_INIT(x) an_init_struct<decltype(x)>()
extern "C" {
#else
#define AN_INIT(x) \
    { .size = sizeof(x) }
#endif

typedef enum an_status {
#define AN_STATUS(name, value, text) AN_##name = value,
#include "anneal/status.def"
#undef AN_STATUS
} an_status;

typedef enum an_dtype {
    AN_DTYPE_NONE = 0,
    AN_DTYPE_F32 = 1,
    AN_DTYPE_F64 = 2,
    AN_DTYPE_BF16 = 3,
    AN_DTYPE_F16 = 4,
    AN_DTYPE_I32 = 5,
    AN_DTYPE_I64 = 6,
    AN_DTYPE_U8 = 7
} an_dtype;

enum { AN_MAX_DIMS = 8 };

typedef struct an_context an_context;

/* Where a context takes the memory of its bookkeeping and, on the host device, of its tensors.
 * `allocate` returns NULL when there is none; `release` gets the size that was asked for. */
typedef struct an_allocator {
    size_t size;
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory, size_t bytes);
    void *user;
} an_allocator;

typedef struct an_device an_device;       /* experimental.h; NULL is the host */
typedef struct an_heartbeat an_heartbeat; /* heartbeat.h */

/* Which instructions kernels use. A level gives the same bits on every machine that has it, whatever else that machine
 * could do; another level may give others. */
typedef enum an_isa {
    AN_ISA_AUTO = 0,   /* the highest that the machine has */
    AN_ISA_BASE = 1,   /* what every machine of its architecture has */
    AN_ISA_AVX2 = 2,   /* x86-64-v3 */
    AN_ISA_AVX512 = 3, /* x86-64-v4 */
    AN_ISA_AMX = 4     /* and bf16 in vectors and tiles */
} an_isa;

typedef enum an_log_level { AN_LOG_WARNING = 1, AN_LOG_INFO = 2, AN_LOG_DEBUG = 3 } an_log_level;

typedef struct an_context_options {
    size_t size;
    int threads;                   /* 0: OMP_NUM_THREADS, else the processors of the affinity mask */
    const an_allocator *allocator; /* NULL: malloc; copied */
    const an_device *device;       /* NULL: the host; must outlive the context */
    void (*log)(void *user, an_log_level level, const char *text); /* NULL: silence */
    void *log_user;
    an_isa isa;              /* AN_ISA_AUTO: the machine's; one that the machine does not have is refused */
    an_heartbeat *heartbeat; /* that threads of the context write to; must outlive it; NULL: none */
    /* This process trains by itself, although mpirun or srun started several: each has a model and a run folder of its own.
     * Without it, a trainer is refused in such a process, because ranks are not supported yet. */
    bool alone;
} an_context_options;

/* An array of the caller's: dims in C order, strides in elements; strides all zero mean dense. */
typedef struct an_array {
    size_t size;
    void *data;
    an_dtype dtype;
    int ndims;
    int64_t dims[AN_MAX_DIMS];
    int64_t strides[AN_MAX_DIMS];
} an_array;

/* Not collective. `options` may be NULL. */
AN_API an_status an_context_create(an_context **context, const an_context_options *options);

/* Destroy what hangs off the context first. Sets the pointer to NULL; a NULL pointer is fine. Not collective. */
AN_API void an_context_destroy(an_context **context);

/* The message of the last error on this context, valid until the next call on it. NULL stands for calls that had no context yet (of the
 * calling thread). Never NULL. Not collective. */
AN_API const char *an_last_error(const an_context *context);

/* The functions that the last error passed through, innermost first, one a line: "in an_plan_create (plan.c:120)". Same lifetime and NULL
 * rule as an_last_error. Not collective. */
AN_API const char *an_last_error_trail(const an_context *context);

/* The number of threads that kernels of this context may use. Not collective. */
AN_API int an_context_threads(const an_context *context);

/* Seconds that a thread of this context without work spins before it sleeps: a fraction of a millisecond. 0 if there are more
 * threads than processors, or if OMP_WAIT_POLICY was "passive" when the context was created; INFINITY if it was "active".
 * Threads that have work never wait for one that the system has not scheduled. Not collective. */
AN_API double an_context_spin(const an_context *context);

/* The level of instructions that kernels of this context use; never AN_ISA_AUTO. Not collective. */
AN_API an_isa an_context_isa(const an_context *context);
AN_API const char *an_isa_name(an_isa isa); /* "avx512" */

/* Bytes that the context holds now, bookkeeping and tensors. Not collective. */
AN_API size_t an_context_bytes(const an_context *context);

AN_API const char *an_status_name(an_status status); /* "AN_ERR_SHAPE" */
AN_API const char *an_status_text(an_status status); /* "shapes do not fit" */
AN_API const char *an_dtype_name(an_dtype dtype);    /* "f32" */
AN_API size_t an_dtype_size(an_dtype dtype);         /* bytes of an element; 0 for AN_DTYPE_NONE */
AN_API const char *an_version(void);                 /* "0.2.0" */
AN_API const char *an_onednn_version(void);          /* "3.2.0"; "" without oneDNN */

#ifdef __cplusplus
}
#endif
#endif
