/* The order of the steps is that of the usual libraries: penalty, temperature, top_k, top_p, min_p.
 *
 * Candidates are sorted only where a step asks for it, and then only those that can be taken. Sums have a fixed order,
 * so the same logits give the same token on every machine.
 */
#include "predict/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/elementary/elementary.h"
#include "base/philox.h"
#include "base/status.h"

static const uint64_t site = 0x67656e6572617465; /* "generate" */

an_status an_sampling_check(an_context *ctx, const an_sampling_options *o) {
    if (!(o->temperature >= 0 && o->temperature <= 1e6))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "temperature is %g; it must be 0 (the best token) or more",
                        o->temperature);
    if (o->top_k < 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "top_k is %lld; it must be a number of tokens, or 0 for all",
                        (long long)o->top_k);
    if (!(o->top_p > 0 && o->top_p <= 1))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "top_p is %g; it must be above 0 and at most 1 (all tokens)", o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "min_p is %g; it must be from 0 (all tokens) to 1", o->min_p);
    if (!(o->repetition_penalty > 0 && o->repetition_penalty <= 1e6))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "repetition_penalty is %g; it must be above 0; 1 is no penalty",
                        o->repetition_penalty);
    if (o->max_tokens < 0 || o->stop_count < 0 || (o->stop_count > 0 && !o->stop_tokens))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "max_tokens is %lld and stop_count %d; both must be 0 or more, and stop_tokens not NULL",
                        (long long)o->max_tokens, o->stop_count);
    return AN_OK;
}

/* Each token once: `c` remembers which were there. */
static void penalize(float penalty, const int32_t *tokens, int64_t count, float *logits, an_candidate *c) {
    for (int64_t i = 0; i < count; i++) c[tokens[i]].token = 0;
    for (int64_t i = 0; i < count; i++) {
        float *logit = &logits[tokens[i]];
        if (c[tokens[i]].token++ == 0) *logit = *logit > 0 ? *logit / penalty : *logit * penalty;
    }
}

/* Ties go to the lower token; a logit that is no number is never taken before one that is. */
static int32_t best(const float *logits, int64_t vocabulary) {
    int64_t at = 0;
    for (int64_t i = 1; i < vocabulary; i++)
        if (logits[i] > logits[at] || (isnan(logits[at]) && !isnan(logits[i]))) at = i;
    return (int32_t)at;
}

static int by_logit(const void *a, const void *b) {
    const an_candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->token < y->token ? -1 : 1;
}

static bool is_before(const an_candidate *a, const an_candidate *b) {
    return by_logit(a, b) < 0;
}

/* Moves the `most` first candidates to the front, in any order (Hoare 1961, with the median of three). */
static void select_first(an_candidate *c, int64_t count, int64_t maximum) {
    int64_t begin = 0, end = count;
    while (end - begin > 1) {
        const an_candidate a = c[begin], b = c[begin + (end - begin) / 2], d = c[end - 1];
        const an_candidate pivot = is_before(&a, &b) ? (is_before(&b, &d)   ? b
                                                        : is_before(&a, &d) ? d
                                                                            : a)
                                                     : (is_before(&a, &d)   ? a
                                                        : is_before(&b, &d) ? d
                                                                            : b);
        int64_t i = begin, k = end - 1;
        while (i <= k) {
            while (is_before(&c[i], &pivot)) i++;
            while (is_before(&pivot, &c[k])) k--;
            if (i > k) break;
            const an_candidate other = c[i];
            c[i++] = c[k];
            c[k--] = other;
        }
        if (maximum <= k)
            end = k + 1;
        else if (maximum > i)
            begin = i;
        else
            return;
    }
}

static double weigh(an_candidate *c, int64_t count, double highest, double temperature) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double power = ((double)c[i].logit - highest) / temperature;
        c[i].weight = power > -700 ? an_exp_f64(power) : 0; /* what exp takes without underflow */
        sum += c[i].weight;
    }
    return sum;
}

/* The candidates that together have the probability top_p, the most probable first; sorts them. */
static int64_t take_top_p(an_candidate *c, int64_t count, double top_p, double sum) {
    const double minimum = (1 - top_p) * sum / (double)count; /* all below it together have less than 1 - top_p */
    int64_t kept = 0;
    double so_far = 0;
    for (int64_t i = 0; i < count; i++)
        if (c[i].weight >= minimum) c[kept++] = c[i];
    qsort(c, (size_t)kept, sizeof *c, by_logit);
    for (int64_t i = 0; i < kept; i++) {
        so_far += c[i].weight;
        if (so_far >= top_p * sum) return i + 1;
    }
    return kept;
}

int32_t an_sample(const an_sampling_options *o, const int32_t *tokens, int64_t count, int64_t vocabulary, float *logits,
                  an_candidate *c) {
    if (o->repetition_penalty != 1) penalize((float)o->repetition_penalty, tokens, count, logits, c);
    const int32_t first = best(logits, vocabulary);
    if (o->temperature == 0 || !isfinite(logits[first])) return first;
    const double highest = (double)logits[first];
    int64_t n = 0;
    for (int64_t i = 0; i < vocabulary; i++)
        if (logits[i] > -INFINITY) c[n++] = (an_candidate){.logit = logits[i], .token = (int32_t)i};
    if (o->top_k > 0 && o->top_k < n) {
        select_first(c, n, o->top_k);
        n = o->top_k;
        qsort(c, (size_t)n, sizeof *c, by_logit); /* a fixed order for the sums */
    }
    double sum = weigh(c, n, highest, o->temperature), so_far = 0;
    if (o->top_p < 1) n = take_top_p(c, n, o->top_p, sum);
    if (o->min_p > 0) { /* the highest weight is 1 */
        int64_t kept = 0;
        for (int64_t i = 0; i < n; i++)
            if (c[i].weight >= o->min_p) c[kept++] = c[i];
        n = kept;
    }
    sum = 0;
    for (int64_t i = 0; i < n; i++) sum += c[i].weight;
    const an_philox_key key = {.seed = o->seed, .sample = (uint64_t)o->sequence, .site = site};
    const double drawn = an_random_uniform_f64(key, (uint64_t)count) * sum;
    for (int64_t i = 0; i < n; i++) {
        so_far += c[i].weight;
        if (so_far > drawn) return c[i].token;
    }
    return first; /* rounding: the sum is what was added up, so this is not reached */
}
