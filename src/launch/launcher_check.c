/* Whether the ranks of a context are what its launcher started. */
#include "base/context.h"
#include "base/status.h"
#include "launch/launcher.h"

an_status an_launcher_check(an_context *ctx) {
    an_launcher l;
    const int ranks = ctx->communicator ? ctx->communicator->ranks : 1;
    if (ctx->alone || ranks > 1 || !an_launcher_find(&l) || l.processes < 2) return AN_OK;
    if (!l.mpi)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s started several processes (%s=%lld), and each of them would train the whole model on its "
                        "own: ranks find each other through MPI, which %s does not start. Use mpirun or srun, or "
                        "'anneal train CONFIG -n %lld'",
                        l.name, l.variable, (long long)l.value, l.name, (long long)l.processes);
    if (!ctx->communicator)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s started several processes (%s=%lld), and each of them would train the whole model on its "
                        "own. Create the context with an_context_create_mpi, so that they train together, or set "
                        "an_context_options.alone, if each is to train alone",
                        l.name, l.variable, (long long)l.value);
    return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                    "%s started several processes (%s=%lld), but the communicator has 1 rank, so each of them would "
                    "train the whole model on its own. Is %s the MPI of this launcher? A program of one MPI under the "
                    "launcher of another gets a world of its own in every process. Set an_context_options.alone, if "
                    "each is to train alone",
                    l.name, l.variable, (long long)l.value, ctx->communicator->name);
}
