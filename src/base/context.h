/* The context: holds everything that other libraries keep in globals. */
#ifndef AN_BASE_CONTEXT_H
#define AN_BASE_CONTEXT_H

#include <sys/types.h>

#include "anneal/experimental.h"
#include "anneal/heartbeat.h"
#include "base/device.h"
#include "base/options/kind.h"
#include "base/pool.h"

enum { AN_MESSAGE_BYTES = 1024, AN_TRAIL_FRAMES = 16, AN_TRAIL_BYTES = 3072 };

typedef struct an_error {
    uint64_t number; /* among the errors of the process; 0: there was none */
    an_status status;
    int frames;
    struct {
        const char *function, *file;
        int line;
    } trail[AN_TRAIL_FRAMES];
    char message[AN_MESSAGE_BYTES];
    char trail_text[AN_TRAIL_BYTES]; /* composed when it is read */
} an_error;

struct an_op_registry;

/* Kinds of things that a program adds to a context by name (base/added.h). */
typedef enum an_added_kind { AN_ADDED_OPTIMIZER, AN_ADDED_METRIC, AN_ADDED_KINDS } an_added_kind;

/* What moves messages on while kernels compute, in its owner's memory. It is in the list of its context as long as it
 * lives. */
typedef struct an_mover {
    void (*move)(void *user);
    void *user;
    bool is_busy; /* it has messages on their way */
    struct an_mover *next;
} an_mover;

struct an_context {
    an_allocator allocator;
    const an_device *device;
    int threads;
    int most_threads; /* that its block has room for */
    an_pool *pool;    /* lies behind the context, in the same block */
    an_isa isa;
    bool alone;         /* a launcher's other processes do not matter */
    bool shares_memory; /* with ranks of its host, if they want it too */
    size_t bytes;       /* held now */
    size_t peak_bytes;  /* most ever held */
    uint64_t allocations;
    void (*log)(void *user, an_log_level level, const char *text);
    void *log_user;
    an_heartbeat *heartbeat;                       /* NULL: none */
    void (*span)(void *user, const an_span *span); /* NULL: nobody asks what takes how long (base/span.h) */
    void *span_user;
    const struct an_op_registry *ops; /* that graphs may have (ir/registry.h) */
    /* The same, where the program added to them, and who releases it; NULL: nothing was added. */
    struct an_op_registry *own_ops;
    void (*own_ops_release)(an_context *ctx);
    /* The host's kernels for an op, by level of instructions (exec/context.c); NULL: it has none. */
    const an_kernel *(*host_kernels)(const an_context *ctx, const char *op);
    struct an_added *added[AN_ADDED_KINDS];
    /* Kinds that a config can choose from, each list ended by NULL (open/kinds.h). The table of options with theirs,
     * which is made when a config asks for it (config/collect.c), and who releases it. */
    const an_kind *const *kinds[AN_KIND_SORTS];
    struct an_option_memory *options;
    void (*options_release)(an_context *ctx);
    bool adds_later; /* configs are only looked at, before the program adds anything: any name may be one of its own */
    /* What a library that kernels call keeps for this context (kernels/onednn/onednn.c); NULL: nothing. */
    void *engine;
    void (*engine_release)(an_context *ctx);
    /* What the thread that owns the context does between instructions and tasks: messages on their way. */
    an_mover *movers;
    bool is_moving;
    /* The ranks that it trains with; NULL: this process only. What is known about them (comm/mesh.h), and who
     * releases that. */
    an_comm *communicator;
    struct an_mesh *mesh;
    void (*mesh_release)(an_context *ctx);
    uint64_t kernel_fingerprint[2]; /* what kernels compute (train/kernel_fingerprint.h); zeros: not asked for yet */
    pid_t process;                  /* that made it */
    an_error error;
};

/* The context without what layers above base give it: an_context_make (exec/context.c) adds its ops, and
 * an_context_create (context/context.c) kinds. */
an_status an_context_begin(an_context **context, const an_context_options *given);

/* What a context that has not computed yet gets once its ranks know of each other (comm/start.c). `threads` is at most
 * what it began with; `crowded`: the ranks of this host have more threads than processors. */
void an_context_set_threads(an_context *ctx, int threads, bool crowded);

/* Threads do not survive fork. Whether this process is a child of the one that made the context; what a call that waits
 * for threads of the context must return there, and what one that computes must, which needs other threads only if
 * the context has more than one. */
bool an_context_is_forked(const an_context *ctx);
an_status an_context_check_process(an_context *ctx);
an_status an_context_check_threads(an_context *ctx);

/* Moves messages on, if there are any; what that calls does not do it again. Only for the thread that owns the
 * context. */
static inline void an_context_progress(an_context *ctx) {
    if (ctx->is_moving) return;
    ctx->is_moving = true;
    for (const an_mover *m = ctx->movers; m; m = m->next)
        if (m->is_busy) m->move(m->user);
    ctx->is_moving = false;
}

static inline bool an_context_has_progress(const an_context *ctx) {
    const an_mover *m = ctx->movers;
    while (m && !m->is_busy) m = m->next;
    return m && !ctx->is_moving;
}

static inline void an_context_add_mover(an_context *ctx, an_mover *mover) {
    mover->next = ctx->movers;
    ctx->movers = mover;
}

/* Nothing happens if it is not in the list. */
static inline void an_context_remove_mover(an_context *ctx, const an_mover *mover) {
    an_mover **at = &ctx->movers;
    while (*at && *at != mover) at = &(*at)->next;
    if (*at) *at = mover->next;
}

/* Whether memory comes from the system's own allocator: only then do the system's limits hold for it. */
bool an_context_uses_system_memory(const an_context *ctx);

void an_log_write(an_context *ctx, an_log_level level, const char *format, ...) AN_PRINTF(3, 4);

#endif
