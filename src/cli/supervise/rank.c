/* A rank's side of its supervisor: it dies with its launcher, is watched, and tells how it ends. */
#include "cli/supervise/rank.h"
#include "base/options/settings.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "cli/supervise/board.h"
#include "cli/supervise/link.h"
#include "cli/supervise/supervise.h"
#include "launch/rank_state.h"

static const char variable[] = "ANNEAL_SUPERVISOR", leader_variable[] = "ANNEAL_LEADER";
static char supervisor[AN_RANK_SUPERVISOR_TEXT]; /* "": none */

void cli_rank_begin(void) {
    struct sockaddr_in address;
    an_siphash_key key;
    const char *value = getenv(variable);
    if (!value) return;
    if (an_rank_supervisor_read(value, &address, &key)) {
        snprintf(supervisor, sizeof supervisor, "%s", value);
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* or an orphan would train on beside the next start */
        cli_link_begin(supervisor, getenv(leader_variable));
    } else {
        fprintf(stderr, "warning: %s does not name a supervisor and is ignored\n", variable);
    }
    unsetenv(leader_variable);
    unsetenv(variable); /* it is not for programs that this one may start */
}

/* ---- its watch ---- */

/* On the thread of the watch. Under a launcher, standard error of every rank reaches the terminal. */
static void report(void *user, an_watch_event event, const char *text, bool is_told) {
    (void)user;
    if (is_told) return;
    fprintf(stderr, "%s: %s%s\n", event == AN_WATCH_GOES_ON ? "note" : "warning", text,
            event == AN_WATCH_TIMEOUT ? " (ranks.timeout)" : "");
}

an_heartbeat *cli_rank_heartbeat(const an_comm *comm) {
    static an_heartbeat own;
    an_heartbeat *shared = cli_heartbeat();
    if (!shared && comm) shared = cli_board_heartbeat(comm->rank);
    if (shared || (!comm && !*supervisor)) return shared;
    an_heartbeat_init(&own, sizeof own);
    return &own;
}

/* Ranks that cannot be watched can train. */
void cli_rank_watch(an_watch **watch, an_context *ctx, an_config *config, const an_comm *comm) {
    an_watch_options options;
    an_watch_options_init(&options, sizeof options);
    options.report = report;
    options.supervisor = *supervisor ? supervisor : NULL;
    if (!comm && !*supervisor) return;
    an_status status = an_config_seconds(config, AN_SETTING(ranks.report_after), &options.report_after);
    if (status == AN_OK) status = an_config_seconds(config, AN_SETTING(ranks.timeout), &options.timeout);
    if (status == AN_OK) status = an_watch_create(watch, ctx, &options);
    if (status != AN_OK) cli_tell("warning: a hang of these ranks will not be explained: %s", an_last_error(ctx));
}
