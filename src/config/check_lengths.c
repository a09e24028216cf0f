/* Lengths of a config against that of its run: what is longer never ends, or never comes. */
#include "config/config.h"

an_status an_config_check_lengths(an_config *c) {
    static const char *const runs[] = {"run.steps", "run.epochs", "run.tokens", "run.samples"};
    static const char *const paths[] = {"schedule.warmup.steps",
                                        "schedule.T_0",
                                        "schedule.period",
                                        "schedule.stable",
                                        "schedule.decay",
                                        "eval.every",
                                        "save.every",
                                        "save.keep_every",
                                        "log.every"};
    an_length run, length;
    const char *which = NULL;
    for (int i = 0; i < 4; i++)
        if (an_config_find(c, runs[i])) which = runs[i];
    const an_config_node *node = which ? an_config_find(c, which) : NULL;
    if (!node || !an_read_length(node->text, node->option->units, &run)) return AN_OK;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const an_config_node *n = an_config_find(c, paths[i]);
        if (!n || n->origin == AN_ORIGIN_DEFAULT || !an_read_length(n->text, n->option->units, &length)) continue;
        if (length.unit != run.unit || length.amount <= run.amount) continue;
        AN_TRY_RETURN(an_config_warn(c, n->place, "%s is %s, which is longer than the run of %s", paths[i],
                                     AN_QUOTE(n->text), AN_QUOTE(node->text)));
    }
    const an_config_node *milestones = an_config_find(c, "schedule.milestones");
    for (const an_config_node *n = milestones ? milestones->first : NULL; n; n = n->next)
        if (an_read_length(n->text, n->option->units, &length) && length.unit == run.unit && length.amount > run.amount)
            AN_TRY_RETURN(an_config_warn(c, n->place, "the milestone %s is after the end of the run of %s",
                                         AN_QUOTE(n->text), AN_QUOTE(node->text)));
    return AN_OK;
}
