/* Calls that change files, put in front of the C library's by LD_PRELOAD: counts them, lets them fail, ends the process
 * at one, or makes them slow. Looks only at what is under $FAULT_FOLDER, a path without links.
 *
 * A call has a key, "name nth path": the nth call of that name on that path (relative to the folder) since the process
 * began. The order in which threads make calls changes from run to run; keys do not.
 *
 *   FAULT_LOG      a file that gets a line "number result key" for each call that came back; the result has a star at
 *   the chosen one FAULT_AT       the key of the call that something happens to, once; or its number
 *   FAULT_MODE     fail    it does nothing and reports $FAULT_ERRNO; SHORT: a write writes half
 *                  done    it does its work and reports $FAULT_ERRNO all the same, as a repeated request on a
 *                          network does
 *                  before  the process is killed right before it
 *                  after   … right after it
 *   FAULT_VICTIM   a file with the number of another process, which is killed in place of this one
 *   FAULT_ERRNO    EIO, ENOSPC, …, SHORT
 *   FAULT_SLOW_MS  each call takes so much longer, half before and half after
 *   FAULT_NOW      threads write the call that they are in to $FAULT_NOW.PROCESS, a line of 512 bytes each
 *   FAULT_READS    opening a file for reading is a call too, openread
 *   FAULT_SHADOW   what a power cut would leave is kept there (interpose_shadow.c)
 *
 * A close that fails has closed the descriptor. Files opened by fopen and folders by opendir are not followed; these
 * two themselves are calls. Opening a folder is one, as it is how folders are synced. */
#define _GNU_SOURCE /* the functions themselves; NOLINT(bugprone-reserved-identifier) */
#undef _FILE_OFFSET_BITS
#include "interpose.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Names of functions are the system's, those of their parameters ours.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name,bugprone-reserved-identifier) */
#define EXPORT __attribute__((visibility("default")))

/* A call that gives 0 or -1: `made` is only evaluated if it is to be made. */
#define TRY_CALL(c, made) (int)call_leave(&(c), call_enter(&(c)) ? -1 : (made))

/* ---- open and close ---- */

static bool is_change(int flags) {
    return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC | O_DIRECTORY)) != 0;
}

static int open_at(int folder, const char *path, int flags, mode_t rights) {
    call c;
    const bool changes = is_change(flags);
    if ((!changes && !getenv("FAULT_READS")) || (flags & O_PATH) != 0 ||
        !call_on_path(&c, changes ? "open" : "openread", folder, path)) {
        const int other = REAL(openat)(folder, path, flags, rights);
        call_set_path(other, NULL); /* its number may have been another's, closed by what is not followed */
        return other;
    }
    if (call_enter(&c)) return (int)call_leave(&c, -1);
    int descriptor = REAL(openat)(folder, path, flags, rights);
    if (descriptor >= 0 && c.done) {
        REAL(close)(descriptor);
        descriptor = 0;
    } else
        call_set_path(descriptor, changes ? c.path : NULL);
    return (int)call_leave(&c, descriptor);
}

static mode_t read_rights(int flags, va_list arguments) {
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

EXPORT int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t rights = read_rights(flags, arguments);
    va_end(arguments);
    return open_at(AT_FDCWD, path, flags, rights);
}

EXPORT int openat(int folder, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t rights = read_rights(flags, arguments);
    va_end(arguments);
    return open_at(folder, path, flags, rights);
}

EXPORT int creat(const char *path, mode_t rights) {
    return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, rights);
}

EXPORT DIR *opendir(const char *path) {
    call c;
    if (!call_on_path(&c, "opendir", AT_FDCWD, path)) return REAL(opendir)(path);
    DIR *folder = call_enter(&c) ? NULL : REAL(opendir)(path);
    if (call_leave(&c, folder ? 0 : -1) == 0) return folder;
    const int kept = errno;
    if (folder) closedir(folder);
    errno = kept;
    return NULL;
}

/* What is done with the file later is not seen. */
EXPORT FILE *fopen(const char *path, const char *how) {
    call c;
    if (!call_on_path(&c, how[0] == 'r' && !strchr(how, '+') ? "openread" : "fopen", AT_FDCWD, path))
        return REAL(fopen)(path, how);
    FILE *file = call_enter(&c) ? NULL : REAL(fopen)(path, how);
    if (call_leave(&c, file ? 0 : -1) == 0) return file;
    const int kept = errno;
    if (file) fclose(file);
    errno = kept;
    return NULL;
}

/* Closes its descriptor where nobody sees it. */
EXPORT int closedir(DIR *folder) {
    call_set_path(dirfd(folder), NULL);
    return REAL(closedir)(folder);
}

EXPORT int close(int descriptor) {
    call c;
    if (!call_on_descriptor(&c, "close", descriptor)) return REAL(close)(descriptor);
    const bool fails = call_enter(&c);
    const int error = errno;
    call_set_path(descriptor, NULL);
    const int result = REAL(close)(descriptor);
    if (fails) errno = error;
    return (int)call_leave(&c, fails ? -1 : result);
}

/* ---- descriptors ---- */

/* What of a write is to be written; direct writes stay whole blocks. */
static size_t shorten(const call *c, int descriptor, size_t count) {
    const size_t block = fcntl(descriptor, F_GETFL) & O_DIRECT ? 4096 : 1;
    if (!c->half || count / 2 / block == 0) return count;
    return count / 2 / block * block;
}

EXPORT ssize_t write(int descriptor, const void *bytes, size_t count) {
    call c;
    if (!call_on_descriptor(&c, "write", descriptor)) return REAL(write)(descriptor, bytes, count);
    return call_leave(&c, call_enter(&c) ? -1 : REAL(write)(descriptor, bytes, shorten(&c, descriptor, count)));
}

EXPORT ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    call c;
    if (!call_on_descriptor(&c, "write", descriptor)) return REAL(pwrite)(descriptor, bytes, count, offset);
    return call_leave(&c,
                      call_enter(&c) ? -1 : REAL(pwrite)(descriptor, bytes, shorten(&c, descriptor, count), offset));
}

EXPORT ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    call c;
    if (!call_on_descriptor(&c, "write", descriptor)) return REAL(writev)(descriptor, parts, count);
    if (call_enter(&c)) return call_leave(&c, -1);
    if (!c.half) return call_leave(&c, REAL(writev)(descriptor, parts, count));
    const size_t length = parts[0].iov_len;
    return call_leave(&c,
                      REAL(write)(descriptor, parts[0].iov_base, count > 1 ? length : shorten(&c, descriptor, length)));
}

static int sync_file(const char *name, int descriptor, bool whole) {
    call c;
    if (!call_on_descriptor(&c, name, descriptor)) return whole ? REAL(fsync)(descriptor) : REAL(fdatasync)(descriptor);
    int result = -1;
    if (!call_enter(&c)) {
        result = whole ? REAL(fsync)(descriptor) : REAL(fdatasync)(descriptor);
        const int kept = errno;
        if (result == 0) shadow_sync(descriptor);
        errno = kept;
    }
    return (int)call_leave(&c, result);
}

EXPORT int fsync(int descriptor) {
    return sync_file("fsync", descriptor, true);
}

EXPORT int fdatasync(int descriptor) {
    return sync_file("fdatasync", descriptor, false);
}

EXPORT int ftruncate(int descriptor, off_t length) {
    call c;
    if (!call_on_descriptor(&c, "ftruncate", descriptor)) return REAL(ftruncate)(descriptor, length);
    return TRY_CALL(c, REAL(ftruncate)(descriptor, length));
}

EXPORT int fallocate(int descriptor, int how, off_t offset, off_t length) {
    call c;
    if (!call_on_descriptor(&c, "fallocate", descriptor)) return REAL(fallocate)(descriptor, how, offset, length);
    return TRY_CALL(c, REAL(fallocate)(descriptor, how, offset, length));
}

/* It gives the error itself and leaves errno alone. */
EXPORT int posix_fallocate(int descriptor, off_t offset, off_t length) {
    call c;
    const int kept = errno;
    if (!call_on_descriptor(&c, "fallocate", descriptor)) return REAL(posix_fallocate)(descriptor, offset, length);
    int result = -1;
    if (!call_enter(&c)) {
        errno = REAL(posix_fallocate)(descriptor, offset, length);
        result = errno ? -1 : 0;
    }
    result = call_leave(&c, result) < 0 ? errno : 0;
    errno = kept;
    return result;
}

/* ---- names ---- */

EXPORT int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    call c;
    if (!call_on_two(&c, "rename", from_folder, from, to_folder, to))
        return REAL(renameat2)(from_folder, from, to_folder, to, flags);
    shadow_pin(to_folder, to);
    return TRY_CALL(c, REAL(renameat2)(from_folder, from, to_folder, to, flags));
}

EXPORT int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return renameat2(from_folder, from, to_folder, to, 0);
}

EXPORT int rename(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

EXPORT int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    call c;
    if (!call_on_two(&c, "link", from_folder, from, to_folder, to))
        return REAL(linkat)(from_folder, from, to_folder, to, flags);
    return TRY_CALL(c, REAL(linkat)(from_folder, from, to_folder, to, flags));
}

EXPORT int link(const char *from, const char *to) {
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

EXPORT int unlinkat(int folder, const char *path, int flags) {
    call c;
    if (!call_on_path(&c, flags & AT_REMOVEDIR ? "rmdir" : "unlink", folder, path))
        return REAL(unlinkat)(folder, path, flags);
    shadow_pin(folder, path);
    return TRY_CALL(c, REAL(unlinkat)(folder, path, flags));
}

EXPORT int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}

EXPORT int rmdir(const char *path) {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

EXPORT int remove(const char *path) {
    const int kept = errno;
    const int result = unlinkat(AT_FDCWD, path, 0);
    if (result == 0 || (errno != EISDIR && errno != EPERM)) return result;
    errno = kept;
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

EXPORT int mkdirat(int folder, const char *path, mode_t rights) {
    call c;
    if (!call_on_path(&c, "mkdir", folder, path)) return REAL(mkdirat)(folder, path, rights);
    return TRY_CALL(c, REAL(mkdirat)(folder, path, rights));
}

EXPORT int mkdir(const char *path, mode_t rights) {
    return mkdirat(AT_FDCWD, path, rights);
}

EXPORT int symlinkat(const char *target, int folder, const char *path) {
    call c;
    if (!call_on_path(&c, "symlink", folder, path)) return REAL(symlinkat)(target, folder, path);
    return TRY_CALL(c, REAL(symlinkat)(target, folder, path));
}

EXPORT int symlink(const char *target, const char *path) {
    return symlinkat(target, AT_FDCWD, path);
}

/* ---- the same under the names that other settings of the compiler give them; off_t has 64 bits here ---- */

_Static_assert(sizeof(off_t) == 8, "the functions whose names end in 64 are the same ones");
EXPORT int open64(const char *path, int flags, ...) __attribute__((alias("open")));
EXPORT int openat64(int folder, const char *path, int flags, ...) __attribute__((alias("openat")));
EXPORT FILE *fopen64(const char *path, const char *how) __attribute__((alias("fopen")));
EXPORT int creat64(const char *path, mode_t rights) __attribute__((alias("creat")));
EXPORT ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset)
    __attribute__((alias("pwrite")));
EXPORT int ftruncate64(int descriptor, off64_t length) __attribute__((alias("ftruncate")));
EXPORT int fallocate64(int descriptor, int how, off64_t offset, off64_t length) __attribute__((alias("fallocate")));
EXPORT int posix_fallocate64(int descriptor, off64_t offset, off64_t length) __attribute__((alias("posix_fallocate")));
EXPORT int __open_2(const char *path, int flags);
EXPORT int __open64_2(const char *path, int flags);
EXPORT int __openat_2(int folder, const char *path, int flags);
EXPORT int __openat64_2(int folder, const char *path, int flags);

int __open_2(const char *path, int flags) {
    return open_at(AT_FDCWD, path, flags, 0);
}
int __open64_2(const char *path, int flags) {
    return open_at(AT_FDCWD, path, flags, 0);
}
int __openat_2(int folder, const char *path, int flags) {
    return open_at(folder, path, flags, 0);
}
int __openat64_2(int folder, const char *path, int flags) {
    return open_at(folder, path, flags, 0);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name,bugprone-reserved-identifier) */
