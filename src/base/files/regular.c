#include "base/files/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int an_regular_open(const char *path, int flags) {
    struct stat found;
    int file;
    do file = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    while (file < 0 && errno == EINTR);
    /* a pipe that nobody reads, or a socket; a folder that is opened for writing */
    if (file < 0) return errno == ENXIO || errno == EISDIR ? AN_NOT_REGULAR : -1;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) return file;
    close(file);
    return AN_NOT_REGULAR;
}

FILE *an_regular_read(const char *path) {
    const int file = an_regular_open(path, O_RDONLY);
    if (file == AN_NOT_REGULAR) errno = EINVAL;
    FILE *stream = file >= 0 ? fdopen(file, "r") : NULL;
    if (file >= 0 && !stream) close(file);
    return stream;
}
