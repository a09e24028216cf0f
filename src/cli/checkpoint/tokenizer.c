/* The tokenizer of a run on a file of tokens: the copy in the run's folder, or the one that 'anneal tokenize' put
 * beside the file. */
#include <stdio.h>
#include <unistd.h>

#include "base/options/settings.h"
#include "cli/checkpoint/source.h"

static bool is_there(const char *folder) {
    char file[CLI_PATH + 16];
    return snprintf(file, sizeof file, "%s/tokenizer.json", folder) < (int)sizeof file && access(file, F_OK) == 0;
}

bool cli_checkpoint_tokenizer(const cli_checkpoint *opened, an_config *config, char folder[CLI_PATH]) {
    const char *data = NULL;
    if (!opened->info.is_run || !config || !an_config_is(config, AN_SETTING(data.train.type), "tokens")) return false;
    /* A checkpoint is RUN/checkpoints/NAME. */
    if (snprintf(folder, CLI_PATH, "%s/../../tokenizer", opened->info.path) < CLI_PATH && is_there(folder)) return true;
    return an_config_path(config, AN_SETTING(data.train.path), &data) == AN_OK &&
           snprintf(folder, CLI_PATH, "%s.tokenizer", data) < CLI_PATH && is_there(folder);
}
