/* One source in two parts without a common sample: views of it, which read through to it.
 *
 * Which samples are in which part depends on the number of samples, the share and the seed alone (and on classes or
 * groups, where these decide), so it is the same in every run. Memory: O(1) for shuffle and time, which compute a
 * sample's number; 8 bytes a sample for stratify and group, which keep a list. */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "base/text/text.h"
#include "data/permutation.h"
#include "data/samples.h"
#include "data/structs.h"

enum { MOST_FIELDS = 64, AT_ONCE = 256 };

/* The order of samples is apart from that of every epoch. */
static const uint64_t no_epoch = UINT64_MAX;

/* What both parts share; the last of them destroys it. */
typedef struct {
    an_context *ctx;
    an_dataset *source;
    bool owns; /* the source */
    int parts; /* that are still there */
    an_split_by by;
    an_permutation order; /* shuffle */
    int64_t count, evaluated;
    int64_t *list; /* stratify and group: samples for training, then those for evaluation, each in ascending order */
} split;

typedef struct {
    split *shared;
    int64_t begin; /* of the part */
} part;

static void release(split *s) {
    an_context *ctx = s->ctx;
    if (--s->parts > 0) return;
    if (s->owns) an_dataset_destroy(&s->source);
    an_release(ctx, (void **)&s->list, (size_t)s->count, sizeof *s->list);
    an_release(ctx, (void **)&s, 1, sizeof *s);
}

/* ---- reading ---- */

/* The number of a part's sample in the source. */
static int64_t number_of(const part *p, int64_t index) {
    const split *s = p->shared;
    const int64_t place = p->begin + index;
    if (s->by == AN_SPLIT_SHUFFLE) return an_permutation_at(&s->order, place);
    return s->list ? s->list[place] : place;
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const part *p = user;
    const an_dataset *source = p->shared->source;
    int64_t numbers[AT_ONCE];
    void *at[MOST_FIELDS];
    for (int64_t begin = 0; begin < n; begin += AT_ONCE) {
        const int64_t some = n - begin < AT_ONCE ? n - begin : AT_ONCE;
        for (int64_t i = 0; i < some; i++) numbers[i] = number_of(p, indices[begin + i]);
        for (int f = 0; f < source->record.field_count; f++)
            at[f] = (char *)fields[f] + (size_t)begin * source->bytes[f];
        const an_status status = an_dataset_fetch(source, some, numbers, at, (an_note){message, message_capacity});
        if (status != AN_OK) return status;
    }
    return AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const part *p = user;
    an_dataset_place(p->shared->source, field, number_of(p, index), element, (an_note){place, place_capacity});
}

static int32_t class_at(const void *user, int64_t index) {
    const part *p = user;
    const an_dataset *source = p->shared->source;
    return source->class_at(source->record.user, number_of(p, index));
}

static void close_part(void *user) {
    part *p = user;
    an_context *ctx = p->shared->ctx;
    release(p->shared);
    an_release(ctx, (void **)&p, 1, sizeof *p);
}

/* ---- which samples ---- */

/* Of so many samples; both parts get one where there are two. */
static int64_t share_of(double share, int64_t count) {
    const int64_t some = (int64_t)(share * (double)count + 0.5);
    return some < 1 ? 1 : some > count - 1 ? count - 1 : some;
}

/* Makes the list of samples that are marked as evaluated, and counts these. */
static an_status make_list(split *s, const bool *marks) {
    an_context *ctx = s->ctx;
    int64_t at = 0;
    s->evaluated = 0;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&s->list, (size_t)s->count, sizeof *s->list));
    for (int evaluated = 0; evaluated < 2; evaluated++)
        for (int64_t i = 0; i < s->count; i++)
            if (marks[i] == (evaluated == 1)) {
                s->list[at++] = i;
                s->evaluated += evaluated;
            }
    return AN_OK;
}

static bool has_classes(const an_dataset *source) {
    int f = 0;
    while (f < source->record.field_count && !(source->fields[f].target && source->fields[f].dtype == AN_DTYPE_I32 &&
                                               source->bytes[f] == sizeof(int32_t)))
        f++;
    return f < source->record.field_count;
}

typedef struct {
    int32_t *classes, largest;
} seen_classes;

static void see(void *user, int64_t begin, const int32_t *classes, int64_t count) {
    seen_classes *seen = user;
    memcpy(seen->classes + begin, classes, (size_t)count * sizeof *classes);
    for (int64_t i = 0; i < count; i++)
        if (classes[i] > seen->largest) seen->largest = classes[i];
}

/* In a shuffled order the first samples of each class are evaluated, as many as are its share. A class that has one
 * sample alone is trained on. */
static void mark_classes(const split *s, double share, const int32_t *classes, int64_t *left, int64_t count,
                         bool *marks) {
    for (int64_t i = 0; i < s->count; i++)
        if (classes[i] >= 0) left[classes[i]]++;
    for (int64_t c = 0; c < count; c++) left[c] = left[c] > 1 ? share_of(share, left[c]) : 0;
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t sample = an_permutation_at(&s->order, i);
        const int32_t class = classes[sample];
        marks[sample] = class >= 0 && left[class] > 0;
        if (marks[sample]) left[class]--;
    }
}

static an_status stratify(split *s, double share) {
    enum { MOST_CLASSES = 1 << 20 };
    an_status status;
    an_context *ctx = s->ctx;
    seen_classes seen = {0};
    int64_t *left = NULL;
    bool *marks = NULL;
    AN_CHECK(ctx, has_classes(s->source), AN_ERR_ARGUMENT,
             "a split by stratify needs one class for each sample, and these samples have none; use shuffle");
    AN_TRY(an_alloc(ctx, (void **)&seen.classes, (size_t)s->count, sizeof *seen.classes));
    AN_TRY(an_alloc(ctx, (void **)&marks, (size_t)s->count, sizeof *marks));
    AN_TRY(an_dataset_see_classes(s->source, see, &seen));
    AN_CHECK(ctx, seen.largest < MOST_CLASSES, AN_ERR_ARGUMENT, "the class %d is too large for a split by stratify",
             (int)seen.largest);
    AN_TRY(an_alloc(ctx, (void **)&left, (size_t)seen.largest + 1, sizeof *left));
    mark_classes(s, share, seen.classes, left, (int64_t)seen.largest + 1, marks);
    AN_TRY(make_list(s, marks));
    AN_CHECK(ctx, s->evaluated > 0, AN_ERR_ARGUMENT,
             "a split by stratify needs a class with two samples or more, and there is none; use shuffle");
    status = AN_OK;
fail:
    an_release(ctx, (void **)&left, (size_t)seen.largest + 1, sizeof *left);
    an_release(ctx, (void **)&marks, (size_t)s->count, sizeof *marks);
    an_release(ctx, (void **)&seen.classes, (size_t)s->count, sizeof *seen.classes);
    return status;
}

/* A group is evaluated if its hash falls into the share: where it is does not depend on the other groups. */
static an_status divide_groups(split *s, double share, uint64_t seed) {
    an_status status;
    an_context *ctx = s->ctx;
    const uint64_t *groups = s->source->groups;
    bool *marks = NULL;
    AN_CHECK(ctx, groups, AN_ERR_ARGUMENT,
             "a split by group needs a source that has groups: a table whose column of groups is named");
    AN_TRY(an_alloc(ctx, (void **)&marks, (size_t)s->count, sizeof *marks));
    for (int64_t i = 0; i < s->count; i++) {
        const uint64_t hash = an_hash(&groups[i], sizeof groups[i], seed);
        marks[i] = (double)(hash >> 11) * 0x1p-53 < share;
    }
    AN_TRY(make_list(s, marks));
    AN_CHECK(ctx,
             s->evaluated > 0 &&
                     s->evaluated<s->count, AN_ERR_ARGUMENT,
                                  "all groups fall into the %s part; use another seed or share, or split by shuffle",
                                  s->evaluated> 0
                 ? "evaluation"
                 : "training");
    status = AN_OK;
fail:
    an_release(ctx, (void **)&marks, (size_t)s->count, sizeof *marks);
    return status;
}

static an_status divide(split *s, const an_split_source *source) {
    s->evaluated = share_of(source->evaluation, s->count);
    s->order = an_permutation_make(source->seed, no_epoch, s->count);
    if (s->by == AN_SPLIT_STRATIFY) return stratify(s, source->evaluation);
    return s->by == AN_SPLIT_GROUP ? divide_groups(s, source->evaluation, source->seed) : AN_OK;
}

/* ---- making the parts ---- */

static an_status make_part(an_dataset **dataset, split *s, int64_t begin, int64_t count) {
    an_status status;
    an_context *ctx = s->ctx;
    part *p = NULL;
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    AN_TRY(an_alloc(ctx, (void **)&p, 1, sizeof *p));
    *p = (part){s, begin};
    record.count = count;
    record.field_count = s->source->record.field_count;
    record.fields = s->source->fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_part;
    record.user = p;
    AN_TRY(an_dataset_create(dataset, ctx, &record));
    an_dataset_inherit(*dataset, s->source);
    if (s->source->class_at) (*dataset)->class_at = class_at;
    s->parts++;
    return AN_OK;
fail:
    an_release(ctx, (void **)&p, 1, sizeof *p);
    return status;
}

static an_status check_source(an_context *ctx, const an_split_source *source) {
    an_status status;
    AN_CHECK(ctx, source->source, AN_ERR_ARGUMENT, "there is no dataset to split");
    AN_CHECK(ctx, (unsigned)source->by <= AN_SPLIT_GROUP, AN_ERR_ARGUMENT,
             "by is %d, which is not a value of an_split_by", (int)source->by);
    AN_CHECK(ctx, source->evaluation > 0 && source->evaluation < 1, AN_ERR_ARGUMENT,
             "the share of samples for evaluation is %g; it must be above 0 and below 1", source->evaluation);
    AN_CHECK(ctx, an_dataset_count(source->source) > 1, AN_ERR_ARGUMENT, "one sample cannot be split into two parts");
    AN_CHECK(ctx, an_dataset_field_count(source->source) <= MOST_FIELDS, AN_ERR_UNSUPPORTED,
             "a sample of the data has more than %d fields", MOST_FIELDS);
    return AN_OK;
fail:
    return status;
}

an_status an_dataset_split(an_dataset **training, an_dataset **evaluation, an_context *ctx,
                           const an_split_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, training, evaluation, given);
    an_status status;
    an_split_source source;
    split *s = NULL;
    *training = *evaluation = NULL;
    AN_TRY(an_split_source_read(ctx, &source, given));
    AN_TRY(check_source(ctx, &source));
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    *s = (split){
        .ctx = ctx, .source = source.source, .parts = 1, .by = source.by, .count = an_dataset_count(source.source)};
    AN_TRY(divide(s, &source));
    const bool first = s->by == AN_SPLIT_SHUFFLE; /* of the order */
    AN_TRY(make_part(training, s, first ? s->evaluated : 0, s->count - s->evaluated));
    AN_TRY(make_part(evaluation, s, first ? 0 : s->count - s->evaluated, s->evaluated));
    (*training)->notice = source.source->notice; /* once */
    s->owns = source.owns;
    release(s);
    return AN_OK;
fail:
    an_dataset_destroy(evaluation);
    an_dataset_destroy(training);
    if (s) release(s);
    return status;
}
