#include "train/evaluation/scores.h"

#include "comm/comm.h"
#include "train/trainer.h"

void an_scores_clear(an_scores *scores) {
    scores->positive = scores->negative = 0;
    scores->undefined = false;
}

void an_scores_add(an_scores *scores, bool is_positive, double score) {
    an_scores *s = scores;
    if (s->positive + s->negative == s->room) return;
    s->undefined = s->undefined || score != score;
    if (is_positive)
        s->values[s->positive++] = score;
    else
        s->values[s->room - ++s->negative] = score;
}

static double *negatives(const an_scores *s) {
    return s->values + s->room - s->negative;
}

/* ---- ranks ---- */

enum { POSITIVE, NEGATIVE, UNDEFINED, HEADS };

static an_status send_to_first(const an_scores *s, an_context *ctx, an_comm *comm) {
    static const char what[] = "rank 0, which sorts the scores of the evaluation";
    const int64_t head[HEADS] = {[POSITIVE] = s->positive, [NEGATIVE] = s->negative, [UNDEFINED] = s->undefined};
    const size_t positive = (size_t)s->positive * sizeof(double), negative = (size_t)s->negative * sizeof(double);
    AN_TRY_RETURN(an_comm_send_all(ctx, comm, head, sizeof head, 0, AN_TAG_EVALUATION, what));
    AN_TRY_RETURN(an_comm_send_all(ctx, comm, s->values, positive, 0, AN_TAG_EVALUATION, what));
    return an_comm_send_all(ctx, comm, negatives(s), negative, 0, AN_TAG_EVALUATION, what);
}

static an_status receive_from(an_scores *s, an_context *ctx, an_comm *comm, int rank) {
    static const char what[] = "the scores of another rank's evaluation";
    int64_t head[HEADS] = {0};
    AN_TRY_RETURN(an_comm_receive_all(ctx, comm, head, sizeof head, rank, AN_TAG_EVALUATION, what));
    const int64_t rest = s->room - s->positive - s->negative;
    if (head[POSITIVE] < 0 || head[NEGATIVE] < 0 || head[POSITIVE] > rest || head[NEGATIVE] > rest - head[POSITIVE])
        return AN_ERROR(ctx, AN_ERR_STATE, "rank %d has more scores than its part of the evaluation", rank);
    AN_TRY_RETURN(an_comm_receive_all(ctx, comm, s->values + s->positive, (size_t)head[POSITIVE] * sizeof(double), rank,
                                      AN_TAG_EVALUATION, what));
    s->positive += head[POSITIVE];
    s->negative += head[NEGATIVE];
    s->undefined = s->undefined || head[UNDEFINED];
    return an_comm_receive_all(ctx, comm, negatives(s), (size_t)head[NEGATIVE] * sizeof(double), rank,
                               AN_TAG_EVALUATION, what);
}

an_status an_scores_gather(an_scores *scores, an_trainer *t) {
    an_context *ctx = t->ctx;
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    if (t->rank > 0) return send_to_first(scores, ctx, comm);
    for (int rank = 1; rank < t->ranks; rank++) AN_TRY_RETURN(receive_from(scores, ctx, comm, rank));
    return AN_OK;
}

/* ---- order ---- */

/* A heap whose root is the lowest: the sort needs no memory, and no input makes it slow. */
static void sift(double *values, int64_t at, int64_t count) {
    const double value = values[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && values[child + 1] < values[child]) child++;
        if (!(values[child] < value)) break;
        values[at] = values[child];
    }
    values[at] = value;
}

static void sort(double *values, int64_t count) {
    for (int64_t at = count / 2 - 1; at >= 0; at--) sift(values, at, count);
    for (int64_t end = count - 1; end > 0; end--) {
        const double lowest = values[0];
        values[0] = values[end];
        values[end] = lowest;
        sift(values, 0, end);
    }
}

void an_scores_sort(an_scores *scores) {
    sort(scores->values, scores->positive);
    sort(negatives(scores), scores->negative);
}

/* ---- the curve ---- */

/* Walks down both lists: before step i, so many of each class have a score of at least `threshold`. */
typedef struct {
    int64_t positive, negative;
    double threshold;
} position;

/* To the next lower score that there is; false: there is none. */
static bool step(const an_scores *s, position *p) {
    const double *high = s->values, *low = negatives(s);
    const bool has_positive = p->positive < s->positive, has_negative = p->negative < s->negative;
    if (!has_positive && !has_negative) return false;
    p->threshold =
        !has_negative || (has_positive && high[p->positive] > low[p->negative]) ? high[p->positive] : low[p->negative];
    while (p->positive < s->positive && high[p->positive] == p->threshold) p->positive++;
    while (p->negative < s->negative && low[p->negative] == p->threshold) p->negative++;
    return true;
}

double an_scores_area(const an_scores *scores) {
    const an_scores *s = scores;
    position p = {0}, before = p;
    unsigned __int128 twice = 0; /* pairs in the right order count 2, and equal ones 1: exact */
    if (s->undefined || s->positive == 0 || s->negative == 0) return __builtin_nan("");
    for (; step(s, &p); before = p)
        twice += (unsigned __int128)(p.negative - before.negative) * (uint64_t)(p.positive + before.positive);
    return (double)twice / ((double)s->positive * (double)s->negative * 2);
}

static an_roc_point point_of(const an_scores *s, const position *p) {
    return (an_roc_point){.false_rate = (double)p->negative / (double)s->negative,
                          .true_rate = (double)p->positive / (double)s->positive,
                          .threshold = p->threshold};
}

/* The first point, the last, and of the others those that are the first to have gone another part of the way; so
 * there are at most so many parts. */
int64_t an_scores_curve(const an_scores *scores, int64_t capacity, an_roc_point *points) {
    const an_scores *s = scores;
    position p = {.threshold = __builtin_inf()};
    int64_t count = 0, parts = capacity - 1, gone = 0;
    const int64_t all = s->positive + s->negative;
    points[count++] = point_of(s, &p);
    while (step(s, &p)) {
        const int64_t way = (int64_t)((__int128)(p.positive + p.negative) * parts / all);
        if (way == gone) continue;
        gone = way;
        points[count++] = point_of(s, &p);
    }
    return count;
}
