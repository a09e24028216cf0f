/* How many samples an evaluation has, and which rank evaluates which batches of them. */
#include "base/integer.h"
#include "train/evaluate.h"
#include "train/trainer.h"

int64_t an_evaluation_samples(const an_trainer *t) {
    const int64_t all = an_dataset_count(t->evaluation), asked = t->evaluation_count;
    return asked > 0 && asked < all ? asked : all;
}

int64_t an_evaluation_batches(const an_trainer *t) {
    return an_divide_up(an_evaluation_samples(t), t->batches.micro);
}

int64_t an_evaluation_first_batch(const an_trainer *t, int rank) {
    return (int64_t)((__int128)an_evaluation_batches(t) * rank / t->ranks);
}

/* Rank 0 adds its own batches as they come, and has room for those of another rank. */
int64_t an_evaluation_most_batches(const an_trainer *t) {
    return t->ranks > 1 ? an_divide_up(an_evaluation_batches(t), t->ranks) : 0;
}
