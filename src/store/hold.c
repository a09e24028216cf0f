#include "store/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "store/manifest.h"

/* Waits for nobody. False: another process has a lock that excludes this one. Whatever else goes wrong is no lock. */
static bool lock(int file, int kind) {
    int done;
    do done = flock(file, kind | LOCK_NB);
    while (done != 0 && errno == EINTR);
    return done == 0 || errno != EWOULDBLOCK;
}

static bool is_still_there(const char *path, int file) {
    struct stat named, opened;
    return lstat(path, &named) == 0 && fstat(file, &opened) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

/* Between opening and locking it may have been removed. */
bool an_hold_begin(int *hold, const char *folder) {
    char path[AN_FILE_PATH];
    *hold = an_path_join(path, folder, AN_MANIFEST_NAME) ? open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
                                                         : AN_HOLD_NONE;
    if (*hold >= 0 && lock(*hold, LOCK_SH) && is_still_there(path, *hold)) return true;
    an_hold_end(hold);
    return false;
}

/* For writing: NFS gives an exclusive lock to nobody else. */
bool an_hold_take(int *hold, const char *folder) {
    char path[AN_FILE_PATH];
    *hold = an_path_join(path, folder, AN_MANIFEST_NAME) ? open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
                                                         : AN_HOLD_NONE;
    if (*hold < 0 || lock(*hold, LOCK_EX)) return true;
    an_hold_end(hold);
    return false;
}

void an_hold_end(int *hold) {
    if (*hold >= 0) close(*hold);
    *hold = AN_HOLD_NONE;
}
