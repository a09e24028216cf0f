/* A scattering before and after its steps: what it takes, to the byte, and how it is made. */
#include <string.h>

#include "anneal/plan.h"
#include "base/float16.h"
#include "base/memory.h"
#include "comm/scatter_inside.h"

_Static_assert(AN_PAGE * sizeof(float) % AN_ADD_STRIP == 0, "pages are added in whole strips");

/* ---- sizes ---- */

static int64_t leaf_count(const an_scatter_options *o) {
    return o->leaves.end - o->leaves.begin;
}

int64_t an_scatter_rounds(const an_scatter_options *options, int ranks) {
    return an_divide_up(leaf_count(options), ranks);
}

int64_t an_scatter_leaf(const an_scatter_options *options, int rank, int ranks, int64_t round) {
    const int64_t index = round * ranks + rank;
    return index < leaf_count(options) ? options->leaves.begin + index : -1;
}

static int levels_of(const an_scatter_peers *p) {
    an_tree_node nodes[AN_FOREST_MOST];
    int maximum = 1;
    for (int64_t round = 1; round <= p->rounds; round++)
        maximum = (int)an_larger(maximum, an_scatter_waiting(p, round, nodes));
    return maximum;
}

/* Fills in what follows from the options alone, and what is moved. */
static void describe(an_scattering *s, const an_scatter_options *o, int rank, int ranks) {
    an_scatter_peers *p = &s->peers;
    p->rank = rank;
    p->ranks = ranks;
    p->leaves = o->leaves;
    p->rounds = an_scatter_rounds(o, ranks);
    p->dtype = o->dtype;
    p->is_bf16 = o->is_bf16;
    p->page_bytes = AN_PAGE * an_dtype_size(o->dtype);
    p->sent_bytes = o->is_bf16 ? AN_PAGE * an_dtype_size(AN_DTYPE_BF16) : p->page_bytes;
    p->slice_pages =
        an_larger(1, an_bucket_most_bytes(o->bucket_bytes, ranks) / ((int64_t)p->sent_bytes * (int64_t)ranks));
    p->level_count = levels_of(p);
    p->units = o->units;
    p->pipeline.unit_count = o->unit_count;
    p->pipeline.in_flight = o->in_flight ? o->in_flight : AN_BUCKETS_IN_FLIGHT;
    s->stack = (an_sparse){.pages = o->pages, .page_bytes = (int64_t)p->page_bytes, .run_count = o->unit_count};
    for (int i = 0; i < o->unit_count; i++) {
        s->longest_slice = an_larger(s->longest_slice, an_scatter_longest_slice(p, i));
        an_scatter_measure(p, i, &s->cost);
    }
}

/* The tables: where each begins, and its size. */
typedef struct table {
    void **memory;
    size_t count, element;
} table;
enum { TABLES = 14 };

static void list_tables(an_scattering *s, table tables[TABLES]) {
    an_scatter_peers *p = &s->peers;
    const size_t units = (size_t)p->pipeline.unit_count, slots = (size_t)p->pipeline.in_flight;
    const size_t others = (size_t)p->ranks - 1;
    const size_t levels = (size_t)p->level_count, operands = levels + (size_t)p->ranks;
    const size_t slice = (size_t)s->longest_slice * p->sent_bytes;
    const table list[TABLES] = {
        {(void **)&s->units, units, sizeof *s->units},
        {(void **)&p->levels, levels, sizeof *p->levels},
        {(void **)&p->absent, slice, 1},
        {(void **)&p->src, operands, sizeof *p->src},
        {(void **)&p->addends, operands, sizeof *p->addends},
        {(void **)&p->joins, operands + 1, sizeof *p->joins},
        {(void **)&p->dst, levels, sizeof *p->dst},
        {(void **)&p->states, units, sizeof *p->states},
        {(void **)&p->pipeline.units, units, sizeof *p->pipeline.units},
        {(void **)&s->buckets, slots, sizeof *s->buckets},
        {(void **)&s->requests, slots * 2 * others, sizeof *s->requests},
        {(void **)&s->incoming, slots * others, slice},
        {(void **)&s->outgoing, p->is_bf16 ? slots * others : 0, slice},
        {(void **)&s->pieces, units, sizeof *s->pieces},
    };
    memcpy(tables, list, sizeof list);
}

static size_t table_bytes(an_scattering *s) {
    table tables[TABLES];
    size_t bytes = 0;
    list_tables(s, tables);
    for (int i = 0; i < TABLES; i++) bytes += tables[i].count * tables[i].element;
    return bytes;
}

/* Of one buffer of the stack, without a list of all pieces: each piece counts as it does beside the one before it. */
static size_t stack_bytes(const an_scattering *s) {
    const an_scatter_peers *p = &s->peers;
    an_page_range runs[2] = {{0, 0}, {0, 0}};
    an_sparse two = s->stack;
    int64_t bytes = 0;
    two.runs = runs;
    for (int i = 0; i < p->pipeline.unit_count; i++) {
        runs[1] = an_piece(&p->units[i].pages, p->units[i].turn, p->rank, p->ranks);
        if (runs[1].begin == runs[1].end) continue;
        two.run_count = 2;
        bytes += an_sparse_bytes(&two);
        two.run_count = 1;
        bytes -= an_sparse_bytes(&two);
        runs[0] = runs[1];
    }
    return (size_t)bytes;
}

/* Adds the memory to what is moved. */
static void measure_memory(an_scattering *s) {
    s->cost.bytes = sizeof *s + table_bytes(s);
    s->cost.stack_bytes = (size_t)(s->peers.level_count - 1) * stack_bytes(s);
}

an_scatter_cost an_scatter_predict(const an_scatter_options *options, int rank, int ranks) {
    an_scattering s = {.longest_slice = 0};
    describe(&s, options, rank, ranks);
    measure_memory(&s);
    return s.cost;
}

/* ---- making one ---- */

/* -0.0, as it travels. */
static void fill_absent(an_scattering *s) {
    const an_scatter_peers *p = &s->peers;
    const size_t element = p->sent_bytes / AN_PAGE, bytes = (size_t)s->longest_slice * p->sent_bytes;
    const uint16_t low = an_f32_to_bf16(-0.0F);
    const float single = -0.0F;
    const double wide = -0.0;
    const void *zero = p->is_bf16 ? (const void *)&low : p->dtype == AN_DTYPE_F64 ? (const void *)&wide : &single;
    for (size_t at = 0; at < bytes; at += element) memcpy(p->absent + at, zero, element);
}

static void fill_tables(an_scattering *s) {
    an_scatter_peers *p = &s->peers;
    const size_t others = (size_t)p->ranks - 1, slot_bytes = others * (size_t)s->longest_slice * p->sent_bytes;
    for (int i = 0; i < p->pipeline.unit_count; i++) {
        s->units[i] = p->units[i];
        s->pieces[i] = an_piece(&p->units[i].pages, p->units[i].turn, p->rank, p->ranks);
        p->pipeline.units[i] = (an_pipeline_unit){.name = p->units[i].name, .parcels = an_scatter_buckets(p, i)};
    }
    p->units = s->units;
    s->stack.runs = s->pieces;
    an_pipeline_begin(&p->pipeline, s->buckets, s->requests, 2 * (p->ranks - 1));
    for (int i = 0; i < p->pipeline.in_flight && others > 0; i++) { /* else there are no messages */
        an_scatter_bucket *b = &s->buckets[i];
        b->incoming = s->incoming + (size_t)i * slot_bytes;
        if (s->outgoing) b->outgoing = s->outgoing + (size_t)i * slot_bytes;
    }
    fill_absent(s);
}

an_status an_scattering_create(an_scattering **scattering, an_context *ctx, an_comm *comm,
                               const an_scatter_options *options) {
    an_status status;
    an_scattering *s = NULL;
    table tables[TABLES];
    AN_TRY_RETURN(an_scatter_check(ctx, comm, options));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->peers.pipeline = (an_pipeline){.ctx = ctx, .comm = comm, .kind = &an_scatter_kind, .owner = &s->peers};
    describe(s, options, comm->rank, comm->ranks);
    measure_memory(s);
    list_tables(s, tables);
    for (int i = 0; i < TABLES; i++) AN_TRY(an_alloc(ctx, tables[i].memory, tables[i].count, tables[i].element));
    fill_tables(s);
    for (int i = 1; i < s->peers.level_count; i++) AN_TRY(an_sparse_alloc(ctx, &s->peers.levels[i], &s->stack));
    *scattering = s;
    return AN_OK;
fail:
    an_scattering_destroy(&s);
    return status;
}

void an_scattering_destroy(an_scattering **scattering) {
    an_scattering *s = *scattering;
    table tables[TABLES];
    if (!s) return;
    an_context *ctx = s->peers.pipeline.ctx;
    an_pipeline_end(&s->peers.pipeline);
    for (int i = 1; s->peers.levels && i < s->peers.level_count; i++)
        an_sparse_release(ctx, &s->peers.levels[i], &s->stack);
    list_tables(s, tables);
    for (int i = 0; i < TABLES; i++) an_release(ctx, tables[i].memory, tables[i].count, tables[i].element);
    an_release(ctx, (void **)scattering, 1, sizeof *s);
}

an_scatter_cost an_scattering_count(const an_scattering *scattering) {
    const an_pipeline *p = &scattering->peers.pipeline;
    return (an_scatter_cost){scattering->cost.bytes, scattering->cost.stack_bytes, p->sent, p->received, p->messages};
}

int an_scattering_nodes(const an_scattering *scattering) {
    an_tree_node nodes[AN_FOREST_MOST];
    return an_scatter_waiting(&scattering->peers, scattering->peers.rounds, nodes);
}

void *an_scattering_node(const an_scattering *scattering, int index) {
    return scattering->peers.levels[index];
}
