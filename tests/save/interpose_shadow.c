/* What would be left if the power went: the content of files at their last fsync and the entries of folders at theirs.
 * This is the strictest reading of what POSIX promises; tests/save/power.py makes a folder from it. */
#define _GNU_SOURCE /* O_PATH; NOLINT(bugprone-reserved-identifier) */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose.h"

enum { COPY_BYTES = 65536 };

/* A file of the shadow, empty. */
static int make_file(const char *kind, ino_t inode) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%llu", getenv("FAULT_SHADOW"), kind, (unsigned long long)inode);
    const int file = REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) abort();
    return file;
}

static void write_all(int file, const char *bytes, size_t count) {
    while (count > 0) {
        const ssize_t written = REAL(write)(file, bytes, count);
        if (written <= 0) abort();
        bytes += written;
        count -= (size_t)written;
    }
}

/* The descriptor may be for writing only, or direct: the file is opened again. */
static void keep_content(int descriptor, ino_t inode) {
    char bytes[COPY_BYTES], path[64];
    ssize_t count;
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const int from = REAL(open)(path, O_RDONLY | O_CLOEXEC);
    if (from < 0) abort();
    const int to = make_file("inodes", inode);
    while ((count = read(from, bytes, sizeof bytes)) > 0) write_all(to, bytes, (size_t)count);
    if (count < 0) abort();
    REAL(close)(from);
    REAL(close)(to);
}

static void keep_entry(int to, int folder, const char *name) {
    char line[2 * PATH_MAX + 64], target[PATH_MAX] = "";
    struct stat about;
    if (fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) return; /* another thread was faster */
        abort();
    }
    const char type = S_ISDIR(about.st_mode) ? 'd' : S_ISLNK(about.st_mode) ? 'l' : 'f';
    if (type == 'l' && readlinkat(folder, name, target, sizeof target - 1) < 0) abort();
    const int length = snprintf(line, sizeof line, "%c %llu %s%s%s\n", type, (unsigned long long)about.st_ino, name,
                                type == 'l' ? "\t" : "", target);
    write_all(to, line, (size_t)length);
}

static void keep_entries(int descriptor, ino_t inode) {
    const int again = REAL(openat)(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = again < 0 ? NULL : fdopendir(again);
    if (!folder) abort();
    const int to = make_file("folders", inode);
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            keep_entry(to, dirfd(folder), entry->d_name);
    closedir(folder);
    REAL(close)(to);
}

void shadow_sync(int descriptor) {
    struct stat about;
    if (!getenv("FAULT_SHADOW")) return;
    if (fstat(descriptor, &about) != 0) abort();
    if (S_ISDIR(about.st_mode))
        keep_entries(descriptor, about.st_ino);
    else
        keep_content(descriptor, about.st_ino);
}

void shadow_pin(int folder, const char *path) {
    const int kept = errno;
    if (getenv("FAULT_SHADOW")) (void)REAL(openat)(folder, path, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* never closed */
    errno = kept;
}
