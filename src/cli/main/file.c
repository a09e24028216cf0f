/* Files that a command writes because it was asked to: --output, --svg. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/main/cli.h"

FILE *cli_file_open(const cli_call *call, const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (!file)
        cli_fail(call, "'%s' cannot be written: %s%s", path, strerror(errno),
                 errno == EEXIST ? "; remove it, or choose another name" : "");
    return file;
}

int cli_file_close(const cli_call *call, const char *path, FILE *file) {
    struct stat about;
    const bool regular = fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode);
    const bool failed = ferror(file) != 0;
    errno = 0; /* if an earlier call failed, its reason may have been lost */
    if (fclose(file) == 0 && !failed) return CLI_DONE;
    const char *reason = errno ? strerror(errno) : NULL;
    if (regular) remove(path); /* half of it would look like all */
    return cli_fail(call, "'%s' could not be written%s%s", path, reason ? ": " : "", reason ? reason : "");
}
