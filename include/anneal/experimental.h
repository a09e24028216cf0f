/* A program's own ops, kernels, optimizers, devices and communicators. All of this header is experimental: it may
 * change at any release. docs/howto says how each of them is added. Functions are not collective unless they say so. */
#ifndef ANNEAL_EXPERIMENTAL_H
#define ANNEAL_EXPERIMENTAL_H

#include "anneal/core.h"
#include "anneal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== own ops, kernels and optimizers */

/* ---- kernels ---- docs/howto/add-a-kernel.md */

/* A tensor as a kernel sees it: strides in elements, any of them may be 0 (broadcast). */
typedef struct an_tensor {
    void *data;
    an_dtype dtype;
    int ndims;
    int64_t dims[AN_MAX_DIMS];
    int64_t strides[AN_MAX_DIMS];
} an_tensor;

enum { AN_MAX_INPUTS = 32, AN_MAX_OUTPUTS = 32 };

/* How the samples of a call are cut into leaves, the parts of a step whose sums are added in one fixed tree
 * (docs/bits.md). Leaf i has samples ends[i - 1] to ends[i] - 1; the first one begins at 0. A leaf
 * without samples is absent. */
typedef struct an_leaf_cut {
    int64_t count;       /* leaves, at least 1. For a kernel's `scratch`: the maximum of all calls */
    int64_t samples;     /* of all leaves, at least 1 */
    const int64_t *ends; /* [count], never falling; the last is `samples`. NULL for a kernel's `scratch` */
} an_leaf_cut;

/* The arguments of a kernel. An absent optional input has data NULL, ndims 0 and dtype NONE. */
typedef struct an_call {
    an_context *ctx;
    const void *attributes; /* of the op's own struct */
    int src_count, dst_count;
    const an_tensor *src;
    const an_tensor *dst;
    void *scratch;             /* as many bytes as the kernel's `scratch` said, aligned to 64 */
    an_status failed;          /* for communication ops: an error that this run already has, or AN_OK */
    void *kept;                /* what the kernel's `keep` made of operand 1; NULL if the program keeps nothing */
    const an_leaf_cut *leaves; /* NULL, or only for kernels with `by_leaves`: sums over samples are cut into these */
    const struct an_exchange *exchange; /* for communication ops: the exchange with other ranks; NULL: none */
} an_call;

#define AN_SCRATCH_FAILED SIZE_MAX

typedef struct an_kernel {
    const char *name;
    /* Whether it can do this call (dtypes, strides, sizes); data pointers are not set yet. NULL: always. */
    bool (*applies)(const an_call *call);
    /* Scratch in bytes for this call at these (largest) sizes, or AN_SCRATCH_FAILED with the context's error set. A
     * kernel that keeps something for its runs makes it here. NULL: none. */
    size_t (*scratch)(const an_call *call);
    an_status (*run)(const an_call *call);
    /* Elementwise kernels: n elements of dst from as many of each input, dense and of the compute type, so that a chain
     * of them makes one pass over memory. dst may be one of the rows of src. NULL: not elementwise. */
    void (*row_f32)(int64_t n, const float *const *src, float *dst, const void *attributes);
    void (*row_f64)(int64_t n, const double *const *src, double *dst, const void *attributes);
    /* Bytes that the kernel would keep from run to run where operand 1 is a parameter, aligned to 64; 0: none. `keep`
     * fills call->kept when the weights have changed, and `run` then finds it there. NULL: it keeps nothing. */
    size_t (*kept)(const an_call *call);
    an_status (*keep)(const an_call *call);
    /* Whether it obeys call->leaves: it adds the samples of each leaf as it would in a call with these samples alone,
     * and then the sums of the leaves in the tree of base/tree.h, in the type that it computes in. A kernel without
     * this is run once for each leaf, and the library adds the sums. */
    bool by_leaves;
} an_kernel;

/* Adds a kernel for an op of the context, for the context's device. Plans that are made from now on try it before other
 * kernels; of several, they try the last one that was added first. Such an op is not fused with others. Checkpoints
 * store the kernel's name, and a run resumes only with it. */
AN_API an_status an_context_add_kernel(an_context *ctx, const char *op, const an_kernel *kernel);

/* For kernels: leaves a message with the context and returns `status`. */
AN_API an_status an_kernel_fail(const an_call *call, an_status status, const char *message);

/* ---- own ops ---- docs/howto/add-an-op.md */

typedef enum an_attribute_type {
    AN_ATTRIBUTE_INT,    /* int64_t */
    AN_ATTRIBUTE_BOOL,   /* bool */
    AN_ATTRIBUTE_FLOAT,  /* double */
    AN_ATTRIBUTE_STRING, /* const char *, owned by the graph */
    AN_ATTRIBUTE_DTYPE,  /* an_dtype */
    AN_ATTRIBUTE_DIM,    /* an_dim; kernels read its number */
    AN_ATTRIBUTE_DIMS,   /* an_dim_list; the same */
    AN_ATTRIBUTE_INTS    /* an_int_list */
} an_attribute_type;

typedef struct an_dim_list {
    int count;
    an_dim values[AN_MAX_DIMS];
} an_dim_list;

typedef struct an_int_list {
    int count;
    int64_t values[AN_MAX_DIMS];
} an_int_list;

/* A member of an op's struct of attributes. With name, type and offset, graphs are printed, parsed and copied without
 * knowing the struct. A table ends with name NULL. */
typedef struct an_attribute {
    const char *name;
    an_attribute_type type;
    size_t offset;
    bool noted; /* set by registration or a pass: not part of the model, so only dumps have it. Not for own ops */
} an_attribute;

/* How mixed precision treats an op. */
typedef enum an_autocast {
    /* reads any storage, computes in f32; outputs of low_out are low if every consumer wants low; without low_out it
     * moves elements unchanged */
    AN_AUTOCAST_KEEP,
    AN_AUTOCAST_LOW, /* inputs of low_in are cast; outputs of low_out are low unless a consumer is F32 */
    AN_AUTOCAST_F32  /* f32 in and out */
} an_autocast;

/* Which elements of its inputs an element of an output is computed from. A step has several leaves only if no op mixes
 * samples, and a model generates text only if no op except causal attention mixes tokens. Kernels give an element the
 * same bits whatever else is in the call. */
typedef enum an_reach {
    AN_REACH_ALL,    /* any of them */
    AN_REACH_SAMPLE, /* those of the same sample: the first axis of outputs, and of inputs that have samples */
    AN_REACH_ROW,    /* those of the same row, which is the last axis; rows lie at the same places in an output */
    AN_REACH_ELEMENT /* those at the same place, with the shapes lined up from the right */
} an_reach;

enum { AN_MAX_ATTRIBUTES = 32, AN_MAX_ATTRIBUTE_BYTES = 1024, AN_MAX_OWN_NAME = 47 };

/* A node of an own op, as the functions of its record see it. */
typedef struct an_own_node {
    an_graph *graph;
    void *user; /* the record's */
    const void *attributes;
    int input_count, output_count;
    const an_value *inputs;  /* AN_NONE: absent */
    const an_value *outputs; /* NULL in `infer`: there are none yet */
} an_own_node;

typedef struct an_own_output {
    an_dtype dtype;
    int ndims;
    an_dim dims[AN_MAX_DIMS];
} an_own_output;

/* An op of the program. */
typedef struct an_own_op {
    size_t size;
    const char *name; /* small letters, digits and _, beginning with a letter; at most AN_MAX_OWN_NAME bytes */
    int inputs_min, inputs_max; /* 1 to AN_MAX_INPUTS; those above the minimum may be left out */
    int outputs;                /* 1 to AN_MAX_OUTPUTS */
    size_t attribute_bytes;     /* sizeof the struct of attributes, at most AN_MAX_ATTRIBUTE_BYTES; 0: it has none */
    const an_attribute *attributes; /* NULL: none */
    /* Sets type and shape of every output, from the inputs (an_value_dtype, an_value_ndims, an_value_dim) and
     * the attributes. NULL if they fit together, else a sentence that says what does not. It is called more
     * than once and adds no nodes. */
    const char *(*infer)(const an_own_node *node, an_own_output *outputs);
    /* Adds nodes that compute the gradients, with the builders. diff_dst[i] is 0 where output i has no
     * gradient; `want` is a mask over the inputs; diff_src[i] has the shape of input i, or stays 0 for
     * none. NULL: the op has no gradient. */
    void (*gradient)(const an_own_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src);
    /* For the device of the context, best first, name NULL at the end. The same call gives the same bits each time. */
    const an_kernel *kernels;
    double flops; /* of one element of output 0, for plans; 0: 1 */
    an_autocast autocast;
    uint32_t low_in, low_out; /* masks over inputs, outputs */
    uint32_t dense;    /* mask over inputs that its kernels want row-major and without gaps: others are copied first */
    uint32_t in_place; /* mask over inputs that output 0 may overwrite */
    an_reach reach;
    void *user;
} an_own_op;

/* Adds an op to a context: builders, and .ang files and configs that this context opens, can use it from now on. The
 * record, its tables and names are copied; functions and `user` must outlive the context. The command `anneal` does not
 * have it. */
AN_API an_status an_context_add_op(an_context *ctx, const an_own_op *op);

/* Adds a node of an own op and returns its output 0 (an_value_output gives the others). `attributes` is the op's
 * struct, which is copied; NULL: all zeros. */
AN_API an_value an_own(an_graph *graph, const char *op, int input_count, const an_value *inputs,
                       const void *attributes);

/* ---- optimizers ---- docs/howto/own-optimizer.md */

/* The numbers of one update for one parameter group. */
typedef struct an_optimizer_numbers {
    int64_t update;      /* the number of this update; counts from 1 */
    double rate;         /* present learning rate of the group */
    double weight_decay; /* of the group; 0: none */
    double beta_1;       /* as the options say, or as the schedule moves it */
    double beta_2, epsilon;
    double correction_1, correction_2; /* 1 - beta^update: divides a mean that began as 0 */
} an_optimizer_numbers;

/* An optimizer: how `count` weights follow from their gradients. Everything else (groups, frozen parameters, unscaling,
 * clipping, copies of low precision, checkpoints) is the same for all optimizers.
 *
 * The functions compute each element by itself, so that results do not depend on how parameters are divided among
 * calls. They are called from several threads at once, for different elements, in anneal's floating-point environment.
 * Gradients are already unscaled and clipped. Moments start as 0; those that the record does not have are NULL. A call
 * may include padding after the end of a parameter: its gradients are 0, and its weights and moments are never read. */
typedef struct an_optimizer_record {
    const char *name; /* a lower-case letter, then lower-case letters, digits and underscores; at most 31 */
    /* 1 or more; raise it when the same options give other weights: checkpoints of other versions are refused */
    int version;
    int moments;           /* numbers that are kept for each weight: 0 to 2 */
    double beta_1, beta_2; /* defaults: 0 to below 1 */
    double weight_decay;   /* default: 0 or more */
    void (*update_f32)(void *user, const an_optimizer_numbers *numbers, int64_t count, const float *gradients,
                       float *weights, float *moment_1, float *moment_2);
    void (*update_f64)(void *user, const an_optimizer_numbers *numbers, int64_t count, const double *gradients,
                       double *weights, double *moment_1, double *moment_2);
    void *user;
} an_optimizer_record;

/* Adds an optimizer to a context, which keeps a copy of the record. Select it by `optimizer.type: NAME` in a config
 * that is opened in this context, or by an_optimizer_options.name. */
AN_API an_status an_context_add_optimizer(an_context *ctx, const an_optimizer_record *record);

/* ==== details ==== devices and communicators */

/* ---- devices ---- docs/howto/add-a-device.md */

typedef enum an_copy_direction { AN_COPY_TO_DEVICE, AN_COPY_FROM_DEVICE, AN_COPY_ON_DEVICE } an_copy_direction;

/* A device owns tensor memory. Only kernels dereference it; everything else goes through this record. */
struct an_device {
    size_t size;
    const char *name;
    an_status (*allocate)(const an_device *device, an_context *ctx, void **memory, size_t bytes);
    void (*release)(const an_device *device, an_context *ctx, void **memory, size_t bytes);
    an_status (*copy)(const an_device *device, an_context *ctx, void *dst, const void *src, size_t bytes,
                      an_copy_direction direction);
    an_status (*fill)(const an_device *device, an_context *ctx, void *dst, int byte, size_t bytes);
    an_status (*synchronize)(const an_device *device, an_context *ctx);
    an_status (*launch)(const an_device *device, const an_kernel *kernel, const an_call *call);
    /* Its kernels for an op of the library, best first, name NULL at the end; NULL: it has none, and a plan with the op
     * is refused. Called when plans, optimizers and the like are made, never in a run. Besides ops there are "update"
     * and "square_sums", the end of a step, and "average" and "swap", for runs that keep a moving average of the
     * weights. Those four, "cast" (copies of low precision) and "add" (leaves) also run outside of plans, without
     * scratch. */
    const an_kernel *(*kernels)(const an_device *device, const an_context *ctx, const char *op);
    void *user;
};

/* ---- communicators ---- docs/howto/ranks.md
 *
 * How bytes move between the ranks of a run. There are two implementations of this record for MPI (plugins/mpi); a
 * program may provide its own. The library calls it only from the thread that called the library, and never while
 * another call is in progress. */

enum {
    AN_COMM_ANY = -1,        /* receive from any rank */
    AN_COMM_MAX_TAG = 32767, /* tags are 0 to this */
    AN_COMM_NOTE = 256
};
#define AN_COMM_MAX_BYTES ((size_t)1 << 30) /* of one message: longer ones are sent in pieces */

/* A message in flight. Only the communicator knows the contents; all zeros: no message. */
typedef struct an_comm_request {
    uint64_t words[4];
} an_comm_request;

/* Memory that several ranks of one host share. Only the communicator knows the contents of `words`. */
typedef struct an_comm_window {
    void **parts; /* by rank: where the bytes of each rank begin here; owned by the communicator until `unshare` */
    uint64_t words[4];
} an_comm_window;

struct an_comm {
    size_t size;      /* sizeof(an_comm) */
    const char *name; /* of the library: "Open MPI 4.1.4" */
    int rank, ranks;
    void *data;              /* the implementation's own */
    char note[AN_COMM_NOTE]; /* after a failed call: why it failed */
    bool broken; /* set by the library when a rank has given up: messages without a receiver may be in flight */
    /* Start a message and return at once. The bytes must stay valid until `test` says that it is done. Messages with
     * the same sender, receiver and tag arrive in the order in which they were sent. A message that is longer than its
     * receiver's buffer is an error of the receiver. */
    an_status (*send)(an_comm *comm, const void *bytes, size_t count, int to, int tag, an_comm_request *request);
    an_status (*receive)(an_comm *comm, void *bytes, size_t count, int from, int tag, an_comm_request *request);
    /* Whether a message was sent or received; if so, or after an error, the request is all zeros. Also makes progress
     * on other messages. */
    an_status (*test)(an_comm *comm, an_comm_request *request, bool *done);
    /* Cancels a message and returns at once. Afterwards the bytes are the caller's again. */
    void (*cancel)(an_comm *comm, an_comm_request *request);
    /* Split the communicator. Ranks with the same color form a new one, ordered by rank; a negative color is in none
     * and gets NULL. `split_hosts`: ranks that share memory form one. Collective; called only at the start, as they may
     * block. */
    an_status (*split)(an_comm *comm, int color, an_comm **part);
    an_status (*split_hosts)(an_comm *comm, an_comm **part);
    /* Shares `bytes` of memory of this rank with all ranks of the communicator. NULL: not supported. Collective; called
     * only at the start and the end. */
    an_status (*share)(an_comm *comm, size_t bytes, an_comm_window *window);
    void (*unshare)(an_comm *comm, an_comm_window *window);
    /* Releases what belongs to this rank and never waits for another. Sets the pointer to NULL. */
    void (*destroy)(an_comm **comm);
};

#define AN_COMM_PLUGIN "an_comm_plugin_record"
enum { AN_COMM_PLUGIN_VERSION = 1 };
/* The record that a plugin for an MPI library exports under the name AN_COMM_PLUGIN (plugins/mpi). Its functions leave
 * a message in `note` on an error. */
typedef struct an_comm_plugin {
    size_t size;
    int version;
    /* Duplicates the communicator that has this Fortran handle. MPI must be initialized. Collective; may block. */
    an_status (*create)(an_comm **comm, int handle, char note[AN_COMM_NOTE]);
    /* For a program that uses MPI only here: initializes MPI, and duplicates the communicator of all processes.
     * Collective; may block. */
    an_status (*start)(an_comm **comm, char note[AN_COMM_NOTE]);
    /* Finalizes MPI if `start` initialized it. Collective; may block forever if another rank is gone. */
    an_status (*finish)(char note[AN_COMM_NOTE]);
} an_comm_plugin;

/* Starts MPI by the plugin for this library, "openmpi" or "mpich", with all processes that the launcher started. For
 * programs that do not use MPI themselves, such as the command `anneal`; others call an_context_create_mpi (mpi.h).
 * Collective. */
AN_API an_status an_comm_start(an_comm **comm, const char *mpi);
/* Releases the communicator, after its context, and ends MPI. MPI_Finalize waits for all ranks: a program that must not
 * hang calls this beside a thread that ends it. Collective. */
AN_API an_status an_comm_finish(an_comm **comm, const char *mpi);

#ifdef __cplusplus
}
#endif

#ifndef AN_NO_PLACES
#define an_own(graph, ...) an_own(AN_AT(graph), __VA_ARGS__)
#endif
#endif
