/* Runs of one config with several seeds, which are drawn as one: their mean, and a band from the lowest to the
 * highest. */
#include <string.h>

#include "base/options/settings.h"
#include "cli/checkpoint/config_lines.h"
#include "cli/plot/plot.h"

static void note_difference(void *user, const char *path, const char *a, const char *b) {
    bool *differs = user;
    (void)a, (void)b;
    if (strcmp(path, AN_SETTING(run.seed)) != 0 && strcmp(path, AN_SETTING(run.dir)) != 0) *differs = true;
}

bool plot_run_is_seed_of(const plot_run *run, const plot_run *of) {
    bool differs = false;
    char a[CLI_CONFIG_TEXT], b[CLI_CONFIG_TEXT];
    if (!run->config || !of->config) return false;
    /* The same run given twice, or one that was repeated, is no other seed. */
    if (!cli_config_find(run->config, AN_SETTING(run.seed), a) ||
        !cli_config_find(of->config, AN_SETTING(run.seed), b) || !strcmp(a, b))
        return false;
    cli_config_differences(run->config, of->config, note_difference, &differs);
    return !differs;
}

bool plot_run_add_seed(plot_run *run, const plot_run *seed) {
    bool good = true;
    for (int metric = 0; good && metric < PLOT_METRICS; metric++) {
        if (run->seeds == 1) good = plot_curve_merge(&run->spreads[metric], &run->curves[metric]);
        if (good) good = plot_curve_merge(&run->spreads[metric], &seed->curves[metric]);
    }
    run->seeds++;
    if (seed->first_step < run->first_step) run->first_step = seed->first_step;
    if (seed->last_step > run->last_step) run->last_step = seed->last_step;
    return good;
}

bool plot_run_finish(plot_run *run) {
    bool good = true;
    for (int metric = 0; good && run->seeds > 1 && metric < PLOT_METRICS; metric++) {
        plot_curve_free(&run->curves[metric]);
        good = plot_curve_means(&run->spreads[metric], &run->curves[metric]);
    }
    return good;
}
