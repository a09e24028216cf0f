/* The columns that --keep lists. */
#include <stdlib.h>
#include <string.h>

#include "cli/predict/predict.h"

/* "a,b" is two columns. */
static int add(const cli_call *call, cli_kept *kept, char *names) {
    for (char *name = names, *next; name; name = next) {
        next = strchr(name, ',');
        if (next) *next++ = 0;
        if (!*name) return cli_misuse(call, "--keep needs names of columns, with commas between them");
        if (kept->count == CLI_MOST_KEPT) return cli_misuse(call, "--keep takes at most %d columns", CLI_MOST_KEPT);
        kept->names[kept->count++] = name;
    }
    return CLI_DONE;
}

int cli_kept_list(const cli_call *call, cli_kept *kept) {
    int code = CLI_DONE;
    for (int i = 0; code == CLI_DONE && i < call->listed_count; i++) {
        kept->texts[i] = strdup(call->listed[i]);
        code = kept->texts[i] ? add(call, kept, kept->texts[i]) : cli_fail(call, "out of memory");
    }
    return code;
}

void cli_kept_free(cli_kept *kept) {
    for (int i = 0; i < CLI_MOST_SETS; i++) free(kept->texts[i]);
}
