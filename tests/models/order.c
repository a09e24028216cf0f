/* Prints the order in which a run takes its samples, one index a line, for loops in PyTorch that take the same steps.
 * Run by hand.
 *
 *     order SEED SAMPLES EPOCHS
 */
#include <stdio.h>
#include <stdlib.h>

#include "data/permutation.h"

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: order SEED SAMPLES EPOCHS\n");
        return 2;
    }
    const int64_t samples = strtoll(argv[2], NULL, 10), epochs = strtoll(argv[3], NULL, 10);
    for (int64_t epoch = 0; epoch < epochs; epoch++) {
        const an_permutation order = an_permutation_make(strtoull(argv[1], NULL, 10), (uint64_t)epoch, samples);
        for (int64_t i = 0; i < samples; i++) printf("%lld\n", (long long)an_permutation_at(&order, i));
    }
    return 0;
}
