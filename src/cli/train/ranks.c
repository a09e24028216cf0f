/* One rank of a run: joining the others, and leaving them. */
#include "cli/train/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/supervise/link.h"
#include "launch/launcher.h"

/* ---- joining ---- */

/* The MPI whose launcher started this process, or that was asked for. srun may be told nothing about MPI: then any
 * will do, and finds no other rank. */
static const char *choose(const char *given, const an_launcher *l) {
    if (given) return given;
    if (*l->mpi) return l->mpi;
    return strstr(an_mpi_version(), "MPICH") && !strstr(an_mpi_version(), "Open MPI") ? "mpich" : "openmpi";
}

/* MPI gives every process of a launcher that it does not know a world of its own, and says nothing. Every
 * process sees it; one tells. */
static int refuse_launcher(const cli_ranks *ranks, const an_launcher *l) {
    if (l->rank > 0) return CLI_MISUSED;
    const char *remedy = *l->mpi && strcmp(l->mpi, ranks->mpi) != 0 ? "leave --mpi out"
                         : *l->mpi
                             ? "use the mpirun of that MPI, or choose the other one with --mpi"
                             : "tell srun which MPI it starts, with --mpi=pmix for Open MPI or --mpi=pmi2 for MPICH";
    return cli_misuse(
        ranks->call,
        "%s started %lld processes (%s=%lld), but %s has joined %d of them, so each would train the whole "
        "model on its own: %s",
        l->name, (long long)l->processes, l->variable, (long long)l->value, ranks->comm->name, ranks->comm->ranks,
        remedy);
}

int cli_ranks_begin(const cli_call *call, const char *mpi, cli_ranks *ranks) {
    an_launcher l = {.mpi = ""};
    const bool is_launched = an_launcher_find(&l);
    *ranks = (cli_ranks){.call = call};
    if (is_launched && !l.mpi) {
        if (l.rank > 0) return CLI_MISUSED;
        return cli_misuse(
            call,
            "%s started several processes (%s=%lld), but ranks find each other through MPI, which %s does "
            "not start: use 'anneal train %s -n %lld' on one host, or mpirun or srun",
            l.name, l.variable, (long long)l.value, l.name, call->argument, (long long)l.processes);
    }
    if (!is_launched) return CLI_DONE;
    ranks->mpi = choose(mpi, &l);
    cli_link_tell(AN_RANK_JOINING);
    const an_status status = an_comm_start(&ranks->comm, ranks->mpi);
    if (status != AN_OK) {
        cli_fail(call, "%s started several processes (%s=%lld), but they cannot join: %s", l.name, l.variable,
                 (long long)l.value, an_last_error(NULL));
        return CLI_MISUSED; /* another start would find the same */
    }
    cli_link_tell(AN_RANK_JOINED);
    if (l.processes > ranks->comm->ranks) return refuse_launcher(ranks, &l);
    cli_silent = ranks->comm->rank > 0;
    if (cli_silent && !freopen("/dev/null", "w", stdout)) return cli_fail(call, "/dev/null cannot be opened");
    return CLI_DONE;
}

/* ---- leaving ---- */

static volatile sig_atomic_t exit_code;

static void give_up(int number) {
    (void)number;
    _exit(exit_code);
}

int cli_ranks_end(cli_ranks *ranks, int code) {
    /* After a success every rank arrives, but on a busy machine it may be late. After a failure one may be gone. */
    enum { SECONDS_AFTER_SUCCESS = 60, SECONDS_AFTER_FAILURE = 10 };
    cli_link_end(code);
    if (!ranks->comm) return code;
    /* Launchers take any other code for a failure and kill what still runs; outcome.json says how the run ended. */
    exit_code = code == CLI_AGAIN && ranks->comm->ranks > 1 ? CLI_DONE : code;
    fflush(NULL);
    signal(SIGALRM, give_up);
    alarm(exit_code == CLI_DONE ? SECONDS_AFTER_SUCCESS : SECONDS_AFTER_FAILURE);
    const an_status status = an_comm_finish(&ranks->comm, ranks->mpi);
    alarm(0);
    if (status != AN_OK && exit_code == CLI_DONE)
        fprintf(stderr, "warning: MPI did not end properly: %s\n", an_last_error(NULL));
    return exit_code;
}
