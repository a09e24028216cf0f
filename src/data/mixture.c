/* Mixtures. Sample i belongs to a source by a fixed rule, and its number there is how many earlier ones do: sources are
 * halved again and again, and at each halving the left half gets, of the first n samples, n times its share of the
 * weights, rounded down (the line of Bresenham 1965). Weights are integers, so nothing drifts; any sample is found
 * in O(log sources), without a table. */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "data/dataset.h"
#include "data/structs.h"

__extension__ typedef unsigned __int128 wide;

/* Weights are parts of 2^40: the share of a source is exact to 1e-12. Counts below 2^62 times that fit in 128 bits. */
static const double weight_unit = 0x1p40;
static const int64_t most_samples = INT64_C(1) << 62;
enum { MOST_FIELDS = 64 };

typedef struct {
    an_context *ctx;
    int count;
    an_dataset **sources;
    uint64_t *weights; /* of all sources before this one; count + 1 of them */
    an_arena arena;
    bool owns; /* the sources */
} mixture;

/* How many of the first n samples of sources [low, high) are of [low, middle). */
static int64_t left_of(const mixture *m, int low, int middle, int high, int64_t n) {
    const uint64_t part = m->weights[middle] - m->weights[low], all = m->weights[high] - m->weights[low];
    return (int64_t)((wide)(uint64_t)n * part / all);
}

/* The source of a sample, and its number there. */
static int find(const mixture *m, int64_t sample, int64_t *number) {
    int low = 0, high = m->count;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        const int64_t left = left_of(m, low, middle, high, sample);
        if (left_of(m, low, middle, high, sample + 1) > left) {
            high = middle;
            sample = left;
        } else {
            low = middle;
            sample -= left;
        }
    }
    *number = sample;
    return low;
}

/* How many of the first n samples are of a source. */
static int64_t share(const mixture *m, int source, int64_t n) {
    int low = 0, high = m->count;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        const int64_t left = left_of(m, low, middle, high, n);
        if (source < middle) {
            high = middle;
            n = left;
        } else {
            low = middle;
            n -= left;
        }
    }
    return n;
}

/* The most samples that need no more of a source than it has. */
static int64_t most_of(const mixture *m, int source, int64_t maximum) {
    const int64_t have = an_dataset_count(m->sources[source]);
    int64_t low = 0, high = maximum;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (share(m, source, middle) <= have)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* ---- reading ---- */

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const mixture *m = user;
    void *at[MOST_FIELDS];
    for (int64_t i = 0; i < n; i++) {
        int64_t number;
        const an_dataset *source = m->sources[find(m, indices[i], &number)];
        number %= source->record.count;
        for (int f = 0; f < source->record.field_count; f++) at[f] = (char *)fields[f] + (size_t)i * source->bytes[f];
        const an_status status = an_dataset_fetch(source, 1, &number, at, (an_note){message, message_capacity});
        if (status != AN_OK) return status;
    }
    return AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const mixture *m = user;
    int64_t number;
    const an_dataset *source = m->sources[find(m, index, &number)];
    an_dataset_place(source, field, number % source->record.count, element, (an_note){place, place_capacity});
}

static void close_mixture(void *user) {
    mixture *m = user;
    an_context *ctx = m->ctx;
    for (int i = m->owns ? m->count : 0; i-- > 0;)
        an_dataset_destroy(&m->sources[i]); /* the first has the vocabulary */
    an_arena_destroy(&m->arena);
    an_release(ctx, (void **)&m, 1, sizeof *m);
}

/* ---- making one ---- */

static bool equal_fields(const an_field *a, const an_field *b) {
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->target == b->target && a->ndims == b->ndims &&
           memcmp(a->dims, b->dims, (size_t)a->ndims * sizeof *a->dims) == 0;
}

static bool equal_vocabularies(const an_vocabulary *a, const an_vocabulary *b) {
    if (!a || !b || a->count != b->count || !a->points != !b->points) return a == b;
    return !a->points || memcmp(a->points, b->points, (size_t)a->count * sizeof *a->points) == 0;
}

static an_status check_source(an_context *ctx, const an_mixture_source *source, int i) {
    an_status status;
    const an_dataset *first = source->sources[0], *d = source->sources[i];
    AN_CHECK(ctx, first && d, AN_ERR_ARGUMENT, "source %d of the mixture is missing", d ? 0 : i);
    AN_CHECK(ctx, !source->weights || (source->weights[i] > 0 && source->weights[i] <= 0x1p500), AN_ERR_ARGUMENT,
             "the weight of source %d of the mixture is %g, but weights must be greater than 0", i, source->weights[i]);
    AN_CHECK(ctx, d->record.field_count == first->record.field_count && d->record.field_count <= MOST_FIELDS,
             AN_ERR_SHAPE,
             "source %d of the mixture has %d fields, but source 0 has %d; the numbers must be equal and at most %d", i,
             d->record.field_count, first->record.field_count, MOST_FIELDS);
    for (int f = 0; f < d->record.field_count; f++)
        AN_CHECK(
            ctx, equal_fields(&d->fields[f], &first->fields[f]), AN_ERR_SHAPE,
            "field %d of source %d of the mixture, '%s', differs in name, type or shape from that of source 0, '%s'", f,
            i, d->fields[f].name, first->fields[f].name);
    AN_CHECK(ctx, equal_vocabularies(d->vocabulary, first->vocabulary), AN_ERR_ARGUMENT,
             "source %d of the mixture has a different vocabulary than source 0, so a token would mean different "
             "things; use the vocabulary of source 0",
             i);
    AN_CHECK(ctx, !d->encoding || !first->encoding || an_encoding_agrees(d->encoding, first->encoding), AN_ERR_ARGUMENT,
             "source %d of the mixture has other categories, classes or fills than source 0, so a number would mean "
             "different things; read it with the encoding of source 0",
             i);
    return AN_OK;
fail:
    return status;
}

static void make_weights(mixture *m, const double *weights) {
    double sum = 0;
    for (int i = 0; i < m->count; i++) sum += weights ? weights[i] : 1;
    for (int i = 0; i < m->count; i++) {
        const double parts = (weights ? weights[i] : 1) / sum * weight_unit + 0.5;
        m->weights[i + 1] = m->weights[i] + (parts < 1 ? 1 : (uint64_t)parts);
    }
}

static an_status keep_sources(mixture *m, const an_mixture_source *source, an_field **fields) {
    const an_dataset *first = source->sources[0];
    const size_t count = (size_t)m->count, field_count = (size_t)first->record.field_count;
    AN_TRY_RETURN(an_arena_alloc(&m->arena, (void **)&m->sources, count, sizeof(an_dataset *)));
    AN_TRY_RETURN(an_arena_alloc(&m->arena, (void **)&m->weights, count + 1, sizeof *m->weights));
    AN_TRY_RETURN(an_arena_alloc(&m->arena, (void **)fields, field_count, sizeof **fields));
    memcpy(m->sources, source->sources, count * sizeof(an_dataset *));
    memcpy(*fields, first->fields, field_count * sizeof **fields);
    for (int i = 1; i < m->count; i++)
        for (size_t f = 0; f < field_count; f++) { /* the largest limit; none if a source has none */
            const int64_t limit = m->sources[i]->fields[f].limit;
            int64_t *all = &(*fields)[f].limit;
            if (limit == 0 || (*all != 0 && limit > *all)) *all = limit;
        }
    make_weights(m, source->weights);
    return AN_OK;
}

an_status an_dataset_create_mixture(an_dataset **dataset, an_context *ctx, const an_mixture_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_mixture_source own;
    const an_mixture_source *const source = &own;
    an_status status;
    mixture *m = NULL;
    an_field *fields = NULL;
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    *dataset = NULL;
    AN_TRY(an_mixture_source_read(ctx, &own, given));
    AN_CHECK(ctx, source->source_count > 0 && source->sources, AN_ERR_ARGUMENT, "the mixture has no sources");
    AN_CHECK(ctx, source->count >= 0 && source->count <= most_samples, AN_ERR_ARGUMENT,
             "the mixture has count %" PRId64 ", which is out of range", source->count);
    for (int i = 0; i < source->source_count; i++) AN_TRY(check_source(ctx, source, i));
    AN_TRY(an_alloc(ctx, (void **)&m, 1, sizeof *m));
    m->ctx = ctx;
    m->count = source->source_count;
    an_arena_init(&m->arena, ctx);
    AN_TRY(keep_sources(m, source, &fields));
    record.count = source->count;
    if (record.count == 0) {
        record.count = most_samples;
        for (int i = 0; i < m->count; i++) record.count = most_of(m, i, record.count);
    }
    record.field_count = source->sources[0]->record.field_count;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_mixture;
    record.user = m;
    AN_TRY(an_dataset_create(dataset, ctx, &record));
    an_dataset_inherit(*dataset, source->sources[0]);
    m->owns = source->owns;
    return AN_OK;
fail:
    if (m) close_mixture(m);
    return status;
}
