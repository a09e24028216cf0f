/* A file system in user space (FUSE) for tests: passes everything on to a folder and behaves like one that is shared
 * over a network where it is asked to.
 *
 *   shared_fs FOLDER MOUNT [WORD...]       stays in the foreground until it is unmounted
 *
 *   rename=N   each Nth rename is done, but says ENOENT or EIO in turn: a request that was sent again and finds it done
 *   stale=N    each Nth opening of a file fails with ESTALE (twice on end: the kernel tries once more by itself)
 *   silly      a file that is removed while it is open is renamed to .nfs… and stays until it is closed; a folder with
 *   one in it is not
 *              empty, and the file itself cannot be removed (EBUSY)
 *   nolock     flock and fcntl locks fail with ENOLCK
 *   nodirect   O_DIRECT fails with EINVAL
 *   nolink     hard links are not supported
 */
#define _GNU_SOURCE /* O_DIRECT, renameat2; NOLINT(bugprone-reserved-identifier) */
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that somebody has open. One thread serves all requests, so nothing is locked. */
typedef struct opened {
    struct opened *next;
    int file;
    ino_t inode;
    char silly[PATH_MAX]; /* what it was renamed to; "": it was not */
} opened;

static struct {
    int root; /* the folder */
    long rename_every, renames, stale_every, opens, stale_left;
    bool silly, nolock, nodirect, nolink;
    unsigned silly_count;
    opened *first;
} state = {.root = -1};

static const char *relative(const char *path) {
    return path[1] ? path + 1 : ".";
}

static int answer(int result) {
    return result < 0 ? -errno : 0;
}

static opened *handle(const struct fuse_file_info *info) {
    return (opened *)(uintptr_t)info->fh;
}

static void *fs_init(struct fuse_conn_info *connection, struct fuse_config *config) {
    (void)connection;
    config->use_ino = 1;
    config->hard_remove = 1; /* what becomes of an open file is decided here */
    config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
    return NULL;
}

/* ---- files ---- */

static int add_opened(int file, struct fuse_file_info *info) {
    struct stat about;
    if (file < 0) return -errno;
    opened *o = calloc(1, sizeof *o);
    if (!o || fstat(file, &about) != 0) abort();
    *o = (opened){.next = state.first, .file = file, .inode = about.st_ino};
    state.first = o;
    info->fh = (uintptr_t)o;
    return 0;
}

/* The error that opening meets; 0: none. */
static int meet(int flags) {
    if (state.nodirect && (flags & O_DIRECT) != 0) return -EINVAL;
    if (state.stale_left > 0) {
        state.stale_left--;
        return -ESTALE;
    }
    if (state.stale_every > 0 && ++state.opens % state.stale_every == 0) {
        state.stale_left = 1;
        return -ESTALE;
    }
    return 0;
}

static int fs_open(const char *path, struct fuse_file_info *info) {
    const int error = meet(info->flags);
    return error ? error : add_opened(openat(state.root, relative(path), info->flags), info);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *info) {
    const int error = meet(info->flags);
    return error ? error : add_opened(openat(state.root, relative(path), info->flags, mode), info);
}

static int fs_release(const char *path, struct fuse_file_info *info) {
    opened *o = handle(info), **place = &state.first;
    (void)path;
    while (*place != o) place = &(*place)->next;
    *place = o->next;
    bool last = true;
    for (opened *other = state.first; other; other = other->next) last &= other->inode != o->inode;
    if (last && *o->silly) unlinkat(state.root, o->silly, 0);
    close(o->file);
    free(o);
    return 0;
}

static int fs_read(const char *path, char *bytes, size_t count, off_t offset, struct fuse_file_info *info) {
    (void)path;
    const ssize_t done = pread(handle(info)->file, bytes, count, offset);
    return done < 0 ? -errno : (int)done;
}

static int fs_write(const char *path, const char *bytes, size_t count, off_t offset, struct fuse_file_info *info) {
    (void)path;
    if (state.nodirect && (info->flags & O_DIRECT) != 0) return -EINVAL;
    const ssize_t done = pwrite(handle(info)->file, bytes, count, offset);
    return done < 0 ? -errno : (int)done;
}

static int fs_fsync(const char *path, int data, struct fuse_file_info *info) {
    (void)path;
    return answer(data ? fdatasync(handle(info)->file) : fsync(handle(info)->file));
}

static int fs_truncate(const char *path, off_t length, struct fuse_file_info *info) {
    if (info) return answer(ftruncate(handle(info)->file, length));
    const int file = openat(state.root, relative(path), O_WRONLY);
    if (file < 0) return -errno;
    const int result = answer(ftruncate(file, length));
    close(file);
    return result;
}

static int fs_flock(const char *path, struct fuse_file_info *info, int operation) {
    (void)path;
    (void)info;
    (void)operation;
    return state.nolock ? -ENOLCK : 0;
}

static int fs_lock(const char *path, struct fuse_file_info *info, int command, struct flock *lock) {
    (void)path;
    (void)info;
    (void)command;
    (void)lock;
    return state.nolock ? -ENOLCK : 0;
}

/* ---- names ---- */

static int fs_getattr(const char *path, struct stat *about, struct fuse_file_info *info) {
    if (info) return answer(fstat(handle(info)->file, about));
    return answer(fstatat(state.root, relative(path), about, AT_SYMLINK_NOFOLLOW));
}

static int fs_readlink(const char *path, char *target, size_t capacity) {
    const ssize_t length = readlinkat(state.root, relative(path), target, capacity - 1);
    if (length < 0) return -errno;
    target[length] = 0;
    return 0;
}

static int fs_mkdir(const char *path, mode_t mode) {
    return answer(mkdirat(state.root, relative(path), mode));
}

static int fs_symlink(const char *target, const char *path) {
    return answer(symlinkat(target, state.root, relative(path)));
}

static int fs_link(const char *from, const char *to) {
    return state.nolink ? -EOPNOTSUPP : answer(linkat(state.root, relative(from), state.root, relative(to), 0));
}

/* An open file gets a name of its own beside the one that it loses. */
static int keep_open(const char *path, ino_t inode) {
    char name[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const int folder = (int)(slash - path);
    if (!strncmp(slash + 1, ".nfs", 4)) return -EBUSY;
    snprintf(name, sizeof name, "%.*s/.nfs%016llx%08x", folder, path, (unsigned long long)inode, ++state.silly_count);
    if (renameat(state.root, relative(path), state.root, relative(name)) != 0) return -errno;
    for (opened *o = state.first; o; o = o->next)
        if (o->inode == inode) snprintf(o->silly, sizeof o->silly, "%s", relative(name));
    return 0;
}

/* The inode of a path that somebody has open; 0: nobody has. */
static ino_t find_open(const char *path) {
    struct stat about;
    if (fstatat(state.root, relative(path), &about, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    for (const opened *o = state.first; o; o = o->next)
        if (o->inode == about.st_ino) return o->inode;
    return 0;
}

static int fs_unlink(const char *path) {
    const ino_t inode = state.silly ? find_open(path) : 0;
    return inode ? keep_open(path, inode) : answer(unlinkat(state.root, relative(path), 0));
}

static int fs_rmdir(const char *path) {
    return answer(unlinkat(state.root, relative(path), AT_REMOVEDIR));
}

/* Open files keep their new name when the folder above them gets another one. */
static void move_silly(const char *from, const char *to) {
    const size_t length = strlen(relative(from));
    for (opened *o = state.first; o; o = o->next) {
        char moved[PATH_MAX];
        if (strncmp(o->silly, relative(from), length) != 0 || o->silly[length] != '/') continue;
        if (snprintf(moved, sizeof moved, "%s%s", relative(to), o->silly + length) >= (int)sizeof moved) abort();
        memcpy(o->silly, moved, sizeof moved);
    }
}

static int fs_rename(const char *from, const char *to, unsigned flags) {
    const ino_t inode = state.silly ? find_open(to) : 0;
    struct stat about;
    if (inode && fstatat(state.root, relative(from), &about, AT_SYMLINK_NOFOLLOW) == 0) {
        const int kept = keep_open(to, inode);
        if (kept != 0) return kept;
    }
    if (renameat2(state.root, relative(from), state.root, relative(to), flags) != 0) return -errno;
    move_silly(from, to);
    if (state.rename_every == 0 || ++state.renames % state.rename_every != 0) return 0;
    return state.renames / state.rename_every % 2 ? -ENOENT : -EIO;
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *info) {
    (void)info;
    return answer(fchmodat(state.root, relative(path), mode, 0));
}

static int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info) {
    (void)info;
    return answer(utimensat(state.root, relative(path), times, AT_SYMLINK_NOFOLLOW));
}

/* ---- folders ---- */

static int fs_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
                      enum fuse_readdir_flags flags) {
    (void)offset;
    (void)info;
    (void)flags;
    const int file = openat(state.root, relative(path), O_RDONLY | O_DIRECTORY);
    DIR *folder = file < 0 ? NULL : fdopendir(file);
    if (!folder) return -errno;
    for (const struct dirent *entry; (entry = readdir(folder));) fill(buffer, entry->d_name, NULL, 0, 0);
    closedir(folder);
    return 0;
}

static int fs_fsyncdir(const char *path, int data, struct fuse_file_info *info) {
    (void)data;
    (void)info;
    const int file = openat(state.root, relative(path), O_RDONLY | O_DIRECTORY);
    if (file < 0) return -errno;
    const int result = answer(fsync(file));
    close(file);
    return result;
}

static const struct fuse_operations operations = {
    .init = fs_init,
    .getattr = fs_getattr,
    .readlink = fs_readlink,
    .mkdir = fs_mkdir,
    .unlink = fs_unlink,
    .rmdir = fs_rmdir,
    .symlink = fs_symlink,
    .rename = fs_rename,
    .link = fs_link,
    .chmod = fs_chmod,
    .truncate = fs_truncate,
    .open = fs_open,
    .create = fs_create,
    .read = fs_read,
    .write = fs_write,
    .release = fs_release,
    .fsync = fs_fsync,
    .readdir = fs_readdir,
    .lock = fs_lock,
    .flock = fs_flock,
    .utimens = fs_utimens,
    .fsyncdir = fs_fsyncdir,
};

static bool read_word(const char *word) {
    static const struct {
        const char *name;
        long *number;
        bool *flag;
    } words[] = {{"rename=", &state.rename_every, NULL}, {"stale=", &state.stale_every, NULL},
                 {"silly", NULL, &state.silly},          {"nolock", NULL, &state.nolock},
                 {"nodirect", NULL, &state.nodirect},    {"nolink", NULL, &state.nolink}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strncmp(word, words[i].name, strlen(words[i].name)) != 0) continue;
        if (words[i].flag) *words[i].flag = true;
        if (words[i].number) *words[i].number = strtol(word + strlen(words[i].name), NULL, 10);
        return true;
    }
    return false;
}

int main(int count, char **arguments) {
    char *options[] = {arguments[0], (char[]){"-f"}, (char[]){"-s"}, count > 2 ? arguments[2] : NULL, NULL};
    for (int i = 3; i < count; i++)
        if (!read_word(arguments[i])) count = 0;
    if (count < 3 || (state.root = open(arguments[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        fprintf(stderr, "usage: shared_fs FOLDER MOUNT [rename=N] [stale=N] [silly] [nolock] [nodirect] [nolink]\n");
        return 2;
    }
    umask(0);
    return fuse_main(4, options, &operations, NULL);
}
