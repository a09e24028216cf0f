/* How many samples an evaluation has, which rank evaluates which batches of them, and who reads these. */
#include "base/integer.h"
#include "train/evaluation/evaluate.h"
#include "train/trainer.h"

int64_t an_evaluation_samples(const an_trainer *t) {
    const int64_t all = an_dataset_count(t->evaluator.data), asked = t->evaluator.count;
    return asked > 0 && asked < all ? asked : all;
}

int64_t an_evaluation_micro(const an_trainer *t) {
    const int64_t all = an_evaluation_samples(t), asked = t->evaluator.micro;
    if (asked == 0) return t->evaluator.default_micro;
    return asked < all ? asked : an_larger(all, 1);
}

int64_t an_evaluation_batches(const an_trainer *t) {
    return an_divide_up(an_evaluation_samples(t), an_evaluation_micro(t));
}

int64_t an_evaluation_first_batch(const an_trainer *t, int rank) {
    return (int64_t)((__int128)an_evaluation_batches(t) * rank / t->ranks);
}

/* Rank 0 adds its own batches as they come, and has room for those of another rank. */
int64_t an_evaluation_most_batches(const an_trainer *t) {
    return t->ranks > 1 ? an_divide_up(an_evaluation_batches(t), t->ranks) : 0;
}

/* Batches of other ranks, and those that do not exist, are not read. */
static an_batch_part evaluation_indices(void *user, int64_t batch, int64_t *indices) {
    const an_trainer *t = user;
    const int64_t micro = an_evaluation_micro(t), begin = batch * micro, rest = an_evaluation_samples(t) - begin;
    if (batch >= an_evaluation_first_batch(t, t->rank + 1)) return (an_batch_part){.n = -1};
    const an_batch_part part = {.n = rest < micro ? rest : micro};
    for (int64_t i = 0; i < part.n; i++) indices[i] = begin + i;
    return part;
}

an_loader_options an_evaluation_loader(an_trainer *t) {
    return (an_loader_options){
        .dataset = t->evaluator.data,
        .threads = t->samples.threads,
        .ahead = t->samples.threads, /* one for each: a batch may be large, and training has its own */
        .maximum = t->evaluator.data ? an_evaluation_micro(t) : 0,
        .evaluates = true,
        .indices = evaluation_indices,
        .user = t};
}
