/* A host program with MPI of its own and an installed anneal. */
#include <anneal/anneal.h>
#include <anneal/mpi.h>
#include <stdio.h>

int main(int count, char **arguments) {
    an_context *ctx = NULL;
    int64_t sum = 0;
    MPI_Init(&count, &arguments);
    const int ok = an_context_create_mpi(&ctx, MPI_COMM_WORLD, NULL) == AN_OK && an_context_ranks(ctx) == 2 &&
                   (sum = an_context_rank(ctx) + 1) > 0 &&
                   an_ranks_all_reduce(ctx, &sum, 1, AN_DTYPE_I64, AN_REDUCE_SUM) == AN_OK && sum == 3;
    if (!ok) fprintf(stderr, "%s\n", an_last_error(ctx));
    an_context_destroy(&ctx);
    MPI_Finalize();
    return ok ? 0 : 1;
}
