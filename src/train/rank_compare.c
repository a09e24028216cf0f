#include "train/rank_compare.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "anneal/ranks.h"
#include "base/context.h"
#include "base/isa.h"
#include "base/status.h"
#include "base/system/binary.h"
#include "base/system/limits.h"
#include "base/text/text.h"
#include "comm/comm.h"
#include "pass/shard.h"
#include "train/kernel_fingerprint.h"

/* ---- what must be the same ---- */

enum { TEXT = 48 };
typedef enum {
    VERSION,
    BINARY,
    ISA,
    KERNELS,
    FORCED,
    PRECISION,
    DATA,
    PARAMETERS,
    MODEL,
    GLOBAL,
    MICRO,
    EVALUATION_MICRO,
    LEAVES,
    SEED,
    STEPS,
    RATE,
    SHARD,
    PIECES,
    DETAILS,
    AVERAGE,
    ROWS
} row;

/* The sentence with the values of two ranks, in this order: rank, value, rank, value. */
/* NOLINTBEGIN(bugprone-suspicious-missing-comma): some have two lines */
static const char *const sentences[ROWS] = {
    [VERSION] = "rank %d has anneal %s, but rank %d has %s: install the same version on all hosts",
    [BINARY] =
        "rank %d has a build of anneal with the hash %s, but rank %d has %s: install the same build on all hosts",
    [ISA] = "rank %d has the instruction set %s, but rank %d has %s: set run.isa to one that all hosts have",
    [KERNELS] = "rank %d has kernels with the fingerprint %s, but rank %d has %s, so they would not compute the same "
                "bits: use the same processors and libraries on all hosts, or a lower run.isa",
    [FORCED] = "rank %d was told to use the kernels '%s', but rank %d '%s': give all ranks the same",
    [PRECISION] = "rank %d computes in %s, but rank %d in %s: set train.precision",
    [DATA] =
        "rank %d has data with the hash %s, but rank %d has %s: the number of samples differs, or the first, middle "
        "or last sample does. Give all hosts the same files",
    [PARAMETERS] = "rank %d has a model of %s parameters, but rank %d has %s: all ranks must build the same model",
    [MODEL] = "rank %d has a model with the hash %s, but rank %d has %s: all ranks must build the same graph",
    [GLOBAL] = "rank %d has %s samples in a step, but rank %d has %s: all ranks must have the same batch.global",
    [MICRO] = "rank %d has micro-batches of %s samples, but rank %d has %s: all ranks must have the same batch.micro",
    [EVALUATION_MICRO] =
        "rank %d evaluates %s samples at a time, but rank %d evaluates %s: all ranks must have the same eval.micro",
    [LEAVES] = "rank %d has %s leaves, but rank %d has %s: all ranks must have the same batch.leaves",
    [SEED] = "rank %d has the seed %s, but rank %d has %s: all ranks must have the same run.seed",
    [STEPS] = "rank %d has a run of %s steps, but rank %d of %s: all ranks must have the same run.steps or run.epochs",
    [RATE] = "rank %d has the learning rate %s, but rank %d has %s: all ranks must have the same optimizer.lr",
    [SHARD] = "rank %d has the sharding %s, but rank %d has %s: all ranks must have the same ranks.shard",
    [PIECES] =
        "rank %d divides the model into pieces with the hash %s, but rank %d into others with %s: all ranks must "
        "have the same ranks.unit and train.recompute, and with a budget for that the same number of threads",
    [DETAILS] =
        "rank %d keeps the details %s of evaluations, but rank %d %s: all ranks must have the same eval.metrics "
        "and options",
    [AVERAGE] = "rank %d keeps a moving average of the weights with decay %s, but rank %d with %s: all ranks must have "
                "the same train.ema",
};
/* NOLINTEND(bugprone-suspicious-missing-comma) */

/* Moved as bytes, between processes of one binary; if it is another, that is found out. */
typedef struct {
    int32_t status, rank; /* of the first rank that these are of, or of the error */
    char values[ROWS][TEXT];
    char message[AN_MESSAGE_BYTES];
} record;

static void write_hash(char text[TEXT], const uint64_t hash[2]) {
    snprintf(text, TEXT, "%016llx%016llx", (unsigned long long)hash[1], (unsigned long long)hash[0]);
}

static void write_number(char text[TEXT], int64_t number) {
    snprintf(text, TEXT, "%lld", (long long)number);
}

/* What is computed: ops, attributes and shapes, in the text form. */
static an_status hash_model(const an_graph *graph, uint64_t hash[2]) {
    an_context *ctx = graph->ctx;
    char *text = NULL;
    AN_TRY_RETURN(an_graph_print(graph, &text));
    const XXH128_hash_t made = XXH3_128bits(text, strlen(text));
    an_string_release(ctx, &text);
    hash[0] = made.low64;
    hash[1] = made.high64;
    return AN_OK;
}

/* What ranks gather and scatter, in its order. Recompute decides which weights backward reads, and the scratch of
 * threads what a budget allows. */
static uint64_t hash_pieces(const an_trainer *t) {
    uint64_t hash = 0;
    for (int i = 0; i < t->division.shards->unit_count; i++) {
        const an_page_range *pages = &t->division.shards->units[i].pages;
        hash = an_hash((const int64_t[]){pages->begin, pages->end}, 2 * sizeof(int64_t), hash);
    }
    for (int form = 0; form < AN_FORMS; form++) {
        const an_shard_plan *s = t->plan->forms[form] ? t->plan->forms[form]->shard : NULL;
        for (int i = 0; s && i < s->region_count; i++)
            for (int kind = 0; kind < AN_WEIGHT_KINDS; kind++) {
                const an_region_root *root = &s->regions[i].roots[kind];
                hash =
                    an_hash((const int64_t[]){form, s->regions[i].unit, kind, root->pages}, 4 * sizeof(int64_t), hash);
                for (int k = 0; k < root->run_count; k++)
                    hash = an_hash((const int64_t[]){root->runs[k].pages.begin, root->runs[k].pages.end},
                                   2 * sizeof(int64_t), hash);
            }
    }
    return hash;
}

static an_status describe(record *r, an_trainer *t) {
    an_context *ctx = t->ctx;
    uint64_t hash[2];
    const an_shard shard = t->plan ? t->division.pieces.sharding : t->division.asked;
    snprintf(r->values[VERSION], TEXT, "%s", an_version());
    snprintf(r->values[SHARD], TEXT, "%s%s%s", shard == AN_SHARD_AUTO ? "auto" : an_shard_name(shard),
             t->division.pieces.round_passes > 1 ? ", accumulates" : "", t->planned ? ", to be planned only" : "");
    if (!t->plan) return AN_OK;
    snprintf(r->values[ISA], TEXT, "%s", an_isa_name(ctx->isa));
    snprintf(r->values[PRECISION], TEXT, "%s", an_dtype_name(t->precision));
    an_binary_hash(hash);
    write_hash(r->values[BINARY], hash);
    AN_TRY_RETURN(an_kernel_fingerprint(ctx, hash));
    write_hash(r->values[KERNELS], hash);
    snprintf(r->values[FORCED], TEXT, "%.*s", TEXT - 1, t->record.kernels ? t->record.kernels : "");
    AN_TRY_RETURN(an_fingerprint_make(t));
    write_hash(r->values[DATA], t->record.fingerprint);
    write_number(r->values[PARAMETERS], an_graph_parameter_elements(t->graph));
    AN_TRY_RETURN(hash_model(t->graph, hash));
    write_hash(r->values[MODEL], hash);
    write_number(r->values[GLOBAL], t->samples.batches.global);
    write_number(r->values[MICRO], t->samples.batches.micro);
    write_number(r->values[EVALUATION_MICRO], t->evaluator.data ? an_evaluation_micro(t) : 0);
    write_number(r->values[LEAVES], t->samples.batches.leaves);
    write_number(r->values[SEED], (int64_t)t->seed);
    write_number(r->values[STEPS], t->steps);
    snprintf(r->values[DETAILS], TEXT, "%u", t->evaluator.asked_details);
    if (t->division.shards) snprintf(r->values[PIECES], TEXT, "%016llx", (unsigned long long)hash_pieces(t));
    if (t->stepper) snprintf(r->values[RATE], TEXT, "%.9g", t->stepper->options.rate);
    if (t->stepper) snprintf(r->values[AVERAGE], TEXT, "%.17g", t->stepper->options.ema_decay);
    return AN_OK;
}

/* With a micro-batch for each leaf, each doubling of them costs one process a gradient buffer. */
an_status an_ranks_check_leaves(an_trainer *t) {
    an_context *ctx = t->ctx;
    const int64_t leaves = t->samples.batches.leaves;
    int64_t enough = 1, buffers = 0;
    if (t->ranks <= leaves) return AN_OK;
    for (; enough < t->ranks; enough *= 2) buffers++;
    const int64_t bytes = buffers * an_graph_parameter_elements(t->graph) * (int64_t)sizeof(float);
    return AN_ERROR(
        ctx, AN_ERR_UNSUPPORTED,
        "this run has %lld lea%s, so at most %lld rank%s, but there are %d. Start it with fewer, or start a "
        "new run with batch.leaves=%lld (cost on one process: up to %lld gradient buffer%s, %s)",
        (long long)leaves, leaves == 1 ? "f" : "ves", (long long)leaves, leaves == 1 ? "" : "s", t->ranks,
        (long long)enough, (long long)buffers, buffers == 1 ? "" : "s", an_bytes_in_words(bytes).text);
}

/* ---- comparing ---- */

static void merge(void *user, void *into, const void *from) {
    record *a = into;
    const record *b = from;
    (void)user;
    if (a->status != AN_OK) return;
    if (b->status != AN_OK) {
        *a = *b;
        return;
    }
    for (int i = 0; i < ROWS; i++) {
        if (!strncmp(a->values[i], b->values[i], TEXT)) continue;
        char values[2][TEXT];
        snprintf(values[0], TEXT, "%.*s", TEXT - 1, a->values[i]);
        snprintf(values[1], TEXT, "%.*s", TEXT - 1, b->values[i]);
        a->status = AN_ERR_UNSUPPORTED;
        snprintf(a->message, sizeof a->message, sentences[i], a->rank, values[0], b->rank, values[1]);
        a->rank = 0; /* the sentence says whose it is */
        return;
    }
}

an_status an_ranks_compare(an_trainer *t, an_context *ctx, an_status status) {
    an_status result;
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    record *records = NULL; /* this rank's, and room for another */
    if (comm->ranks == 1) return status;
    /* Without memory for the records this rank cannot say what is wrong: it gives up, which all others see. */
    result = an_alloc(ctx, (void **)&records, 2, sizeof *records);
    if (result != AN_OK) {
        an_comm_abort(ctx, result, an_last_error(ctx));
        return result;
    }
    const an_comm_merger merger = {.bytes = sizeof *records,
                                   .merge = merge,
                                   .received = &records[1],
                                   .what = "start: the other ranks, to compare what they have"};
    if (status == AN_OK) status = describe(records, t);
    records->status = (int32_t)status;
    records->rank = comm->rank;
    if (status != AN_OK) snprintf(records->message, sizeof records->message, "%s", an_last_error(ctx));
    result = an_comm_merge(ctx, comm, &merger, records);
    if (result == AN_OK && records->status != AN_OK) {
        const an_status found = an_status_is_error(records->status) ? (an_status)records->status : AN_ERR_COMMUNICATION;
        records->message[sizeof records->message - 1] = 0;
        result = records->rank == 0 ? AN_ERROR(ctx, found, "%s", records->message)
                                    : AN_ERROR(ctx, found, "rank %d: %s", records->rank, records->message);
    }
    an_release(ctx, (void **)&records, 2, sizeof *records);
    return result;
}
