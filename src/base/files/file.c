#include "base/files/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/regular.h"
#include "base/memory.h"

bool an_path_join(char path[AN_FILE_PATH], const char *folder, const char *name) {
    return snprintf(path, AN_FILE_PATH, "%s/%s", folder, name) < AN_FILE_PATH;
}

/* strerror's text may be another thread's by the time it is read. */
an_status an_file_failed(const char *path, const char *what, an_note note) {
    char reason[128];
    const int number = errno;
    if (strerror_r(number, reason, sizeof reason) != 0) snprintf(reason, sizeof reason, "error %d", number);
    return AN_NOTE(note, AN_ERR_FILE, "%s: %s: %s%s", path, what, reason,
                   number == EFBIG ? " (more than 'ulimit -f' or the file system allows)" : "");
}

an_status an_file_open(int *file, const char *path, int flags, an_note note) {
    *file = an_regular_open(path, flags);
    if (*file >= 0) return AN_OK;
    if (*file == AN_NOT_REGULAR)
        return AN_NOTE(note, AN_ERR_FILE, "%s: is not a regular file but a pipe, a device or a folder; move it away",
                       path);
    return an_file_failed(path, "cannot be opened", note);
}

an_status an_file_write(int file, const void *bytes, size_t length, const char *path, an_note note) {
    const char *at = bytes;
    while (length > 0) {
        const ssize_t written = write(file, at, length);
        if (written < 0 && errno == EINTR) continue;
        if (written == 0) errno = ENOSPC;
        if (written <= 0) return an_file_failed(path, "cannot be written", note);
        at += written;
        length -= (size_t)written;
    }
    return AN_OK;
}

/* Interrupted is not failed: nothing was lost, and the call may be made again. */
an_status an_file_sync(int file, const char *path, an_note note) {
    int result;
    do result = fsync(file);
    while (result != 0 && errno == EINTR);
    return result == 0 ? AN_OK : an_file_failed(path, "cannot be synced", note);
}

an_status an_file_close(int *file, const char *path, an_note note) {
    const int number = *file;
    *file = -1; /* whatever close says, the number is no longer ours */
    return close(number) == 0 ? AN_OK : an_file_failed(path, "cannot be closed", note);
}

bool an_file_exists(const char *path) {
    struct stat found;
    return lstat(path, &found) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

an_status an_file_rename(const char *from, const char *to, an_note note) {
    int renamed;
    do renamed = rename(from, to);
    while (renamed != 0 && errno == EINTR);
    const int reason = errno;
    if (renamed == 0 || (!an_file_exists(from) && an_file_exists(to))) return AN_OK;
    errno = reason;
    return an_file_failed(from, "cannot be renamed", note);
}

/* Writes, syncs and closes. */
static an_status fill(int file, const char *path, const void *bytes, size_t length, an_note note) {
    an_status status = an_file_write(file, bytes, length, path, note);
    if (status == AN_OK) status = an_file_sync(file, path, note);
    if (status == AN_OK) return an_file_close(&file, path, note);
    close(file);
    return status;
}

an_status an_file_put(const char *path, const void *bytes, size_t length, an_note note) {
    int file;
    an_status status = an_file_open(&file, path, O_WRONLY | O_CREAT | O_EXCL, note);
    if (status != AN_OK) return status;
    status = fill(file, path, bytes, length, note);
    if (status != AN_OK) unlink(path);
    return status;
}

an_status an_file_replace(const char *path, const void *bytes, size_t length, an_note note) {
    char beside[AN_FILE_PATH];
    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside)
        return AN_NOTE(note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", path);
    int file;
    an_status status = an_file_open(&file, beside, O_WRONLY | O_CREAT | O_TRUNC, note);
    if (status != AN_OK) return status;
    status = fill(file, beside, bytes, length, note);
    if (status == AN_OK) status = an_file_rename(beside, path, note);
    if (status == AN_OK) return an_parent_sync(path, note);
    unlink(beside);
    return status;
}

an_status an_file_overwrite(const char *path, const void *bytes, size_t length, an_note note) {
    enum { UNIT = 512 }; /* of st_blocks */
    struct stat about;
    int file;
    const an_status status = an_file_open(&file, path, O_WRONLY, note);
    if (status != AN_OK) return status;
    const bool is_known = fstat(file, &about) == 0;
    if (is_known && (uintmax_t)about.st_blocks * UNIT < length)
        errno = ENOSPC;
    else if (is_known && ftruncate(file, (off_t)length) == 0)
        return fill(file, path, bytes, length, note);
    const an_status failed = an_file_failed(path, "cannot be written", note);
    close(file);
    return failed;
}

an_status an_folder_next(DIR *stream, const char *path, const struct dirent **entry, an_note note) {
    errno = 0;
    *entry = readdir(stream); /* NOLINT(concurrency-mt-unsafe): a stream of the caller's own */
    return *entry || errno == 0 ? AN_OK : an_file_failed(path, "the folder cannot be read", note);
}

an_status an_folder_sync(const char *path, an_note note) {
    int folder;
    do folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder < 0 && errno == EINTR);
    if (folder < 0) return an_file_failed(path, "cannot be opened", note);
    an_status status = an_file_sync(folder, path, note);
    /* Some file systems cannot sync folders, and say so with one of these: there is nothing more to do. */
    if (status != AN_OK && (errno == EINVAL || errno == ENOTSUP || errno == ENOSYS)) status = AN_OK;
    if (status == AN_OK) return an_file_close(&folder, path, note);
    close(folder);
    return status;
}

an_status an_parent_sync(const char *path, an_note note) {
    char parent[AN_FILE_PATH];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return an_folder_sync(slash ? "/" : ".", note);
    if (snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path) >= (int)sizeof parent)
        return AN_NOTE(note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", path);
    return an_folder_sync(parent, note);
}

an_status an_folders_make(const char *path, an_note note) {
    char part[AN_FILE_PATH];
    const size_t length = strlen(path);
    if (length >= sizeof part) return AN_NOTE(note, AN_ERR_ARGUMENT, "the path is too long: %.100s…", path);
    memcpy(part, path, length + 1);
    while (length > 1 && part[strlen(part) - 1] == '/') part[strlen(part) - 1] = 0;
    const size_t end = strlen(part);
    for (size_t i = 1; i <= end; i++) {
        if (part[i] != '/' && part[i] != 0) continue;
        const char kept = part[i];
        part[i] = 0;
        int made;
        do made = mkdir(part, 0777);
        while (made != 0 && errno == EINTR);
        if (made != 0 && errno != EEXIST) return an_file_failed(part, "the folder cannot be created", note);
        if (made == 0) {
            const an_status status = an_parent_sync(part, note);
            if (status != AN_OK) return status;
        }
        part[i] = kept;
    }
    return AN_OK;
}

an_status an_file_read(an_context *ctx, const char *path, size_t maximum, char **text, size_t *bytes) {
    an_status status;
    struct stat found;
    void *memory = NULL;
    size_t length = 0, done = 0;
    char message[AN_MESSAGE_BYTES] = "";
    const an_note note = {message, sizeof message};
    int file;
    AN_TRY(an_note_raise(ctx, an_file_open(&file, path, O_RDONLY, note), note));
    AN_CHECK(ctx, fstat(file, &found) == 0 && found.st_size >= 0 && (size_t)found.st_size <= maximum, AN_ERR_FILE,
             "%s: has %lld bytes, but at most %zu can be read", path, (long long)found.st_size, maximum);
    length = (size_t)found.st_size;
    AN_TRY(an_alloc_raw(ctx, &memory, length + 1));
    while (done < length) {
        const ssize_t got = pread(file, (char *)memory + done, length - done, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        AN_CHECK(ctx, got >= 0, AN_ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
        AN_CHECK(ctx, got > 0, AN_ERR_FILE, "%s: was truncated while it was being read", path);
        done += (size_t)got;
    }
    ((char *)memory)[length] = 0;
    *text = memory;
    *bytes = length;
    close(file);
    return AN_OK;
fail:
    if (file >= 0) close(file);
    an_release(ctx, &memory, length + 1, 1);
    return status;
}
