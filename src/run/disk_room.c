/* Disk space: compares the checkpoints that a run keeps with the free space of its file system. */
#define _GNU_SOURCE /* syscall; NOLINT(bugprone-reserved-identifier) */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/system/limits.h"
#include "run/disk_room.h"
#include "run/run.h"
#include "store/layout.h"
#include "store/places.h"

/* ---- what the run writes ---- */

typedef struct {
    int64_t bytes;             /* of a checkpoint */
    int64_t largest;           /* file of it */
    int64_t certain, possible; /* checkpoints more than there are now, at once */
} need;

static an_status measure(const an_trainer *t, need *n) {
    an_context *ctx = t->ctx;
    an_save_layout *layout;
    AN_TRY_RETURN(an_save_layout_create(&layout, ctx, t->graph, an_params_kept(t->params), t->saving.writers));
    for (size_t i = 0; i < layout->file_count; i++) {
        const int64_t bytes = (int64_t)layout->files[i].bytes;
        n->bytes += bytes;
        if (bytes > n->largest) n->largest = bytes;
    }
    an_save_layout_destroy(&layout);
    return AN_OK;
}

static an_status count_present(const an_trainer *t, int64_t *present) {
    an_context *ctx = t->ctx;
    char path[AN_FILE_PATH];
    an_checkpoint_place *places = NULL;
    size_t count = 0, capacity = 0;
    *present = 0;
    if (!an_path_join(path, t->run->folder, AN_CHECKPOINTS)) return AN_OK; /* who writes there says it */
    AN_TRY_RETURN(an_checkpoints_list(ctx, path, &places, &count, &capacity));
    *present = (int64_t)count;
    an_release(ctx, (void **)&places, capacity, sizeof *places);
    return AN_OK;
}

/* Saves that are still to come by an interval; 1 where it is a time, or where only the last step is saved. */
static int64_t saves_left(const an_trainer *t, const an_interval *every) {
    const int64_t left = t->steps - t->next;
    if (every->steps > 0) return left / every->steps + (left % every->steps > 0);
    if (every->epochs > 0 && !t->samples.streams && left > 0) {
        const int64_t epochs =
            an_batches_at(&t->samples.batches, t->steps - 1).epoch - an_batches_at(&t->samples.batches, t->next).epoch;
        const double saves = 1 + (double)epochs / every->epochs;
        return saves < (double)left ? (int64_t)saves : left;
    }
    return left > 0;
}

/* A new one is written before the oldest goes. The best may be one more. What is kept for good adds up, but may
 * be moved away meanwhile. */
static void count(const an_trainer *t, int64_t present, need *n) {
    const an_run *h = t->run;
    const int64_t saves = saves_left(t, &h->every);
    const int64_t left = t->steps - t->next;
    const bool is_timed = h->every.seconds > 0;
    const int64_t kept = h->keep_last == 0 ? 1 : h->keep_last < saves ? h->keep_last + 1 : saves;
    n->certain = kept > present ? kept - present : saves > 0;
    n->possible = h->keep_last == 0 ? saves : !is_timed ? kept : h->keep_last < left ? h->keep_last + 1 : left;
    if (!an_interval_is_off(&h->every) && t->evaluator.data) n->possible++;
    if (!an_interval_is_off(&h->keep_every)) n->possible += saves_left(t, &h->keep_every);
    n->possible = n->possible - present > n->certain ? n->possible - present : n->certain;
}

/* ---- what there is ---- */

/* The folder, or the nearest one above it that is there. */
static int open_nearest(const char *folder) {
    char path[AN_FILE_PATH];
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path) return -1;
    for (;;) {
        const int file = open(*path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (file >= 0 || !*path) return file;
        char *slash = strrchr(path, '/');
        if (slash == path && path[1])
            path[1] = 0; /* the root */
        else
            *(slash && slash != path ? slash : path) = 0;
    }
}

/* What a quota leaves; -1: there is none. That of a project is in what statvfs says. Root is not bound by any. */
static int64_t quota_left(int file, int type, int id) {
#ifdef SYS_quotactl_fd
    struct dqblk quota;
    if (geteuid() == 0 || syscall(SYS_quotactl_fd, file, QCMD(Q_GETQUOTA, type), id, &quota) != 0) return -1;
    if (!(quota.dqb_valid & QIF_BLIMITS) || !(quota.dqb_valid & QIF_SPACE) || quota.dqb_bhardlimit == 0 ||
        quota.dqb_bhardlimit > INT64_MAX / QIF_DQBLKSIZE || quota.dqb_curspace > INT64_MAX)
        return -1;
    const int64_t left = (int64_t)(quota.dqb_bhardlimit * QIF_DQBLKSIZE) - (int64_t)quota.dqb_curspace;
    return left > 0 ? left : 0;
#else
    (void)file, (void)type, (void)id;
    return -1;
#endif
}

/* Bytes that this process may still write below a folder, and what limits them; -1: nobody says. */
static int64_t find_room(const char *folder, const char **what) {
    struct statvfs state;
    int64_t room = -1;
    const int file = open_nearest(folder);
    if (file < 0) return -1;
    *what = "the file system has";
    if (fstatvfs(file, &state) == 0 && state.f_blocks > 0 && state.f_bavail <= INT64_MAX / (state.f_frsize + 1))
        room = (int64_t)(state.f_bavail * state.f_frsize);
    const int64_t quotas[] = {quota_left(file, USRQUOTA, (int)geteuid()), quota_left(file, GRPQUOTA, (int)getegid())};
    for (int i = 0; i < 2; i++)
        if (quotas[i] >= 0 && (room < 0 || quotas[i] < room)) {
            room = quotas[i];
            *what = i == 0 ? "the user's quota has" : "the group's quota has";
        }
    close(file);
    return room;
}

static an_status check_file_size(const an_trainer *t, const need *n) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= (rlim_t)n->largest)
        return AN_OK;
    return AN_ERROR(t->ctx, AN_ERR_FILE,
                    "%s: a file of a checkpoint needs %s, but ulimit -f allows only %s, so no save could succeed. "
                    "Raise the limit, or split checkpoints into more files with save.writers",
                    t->run->folder, an_bytes_in_words(n->largest).text,
                    an_bytes_in_words((int64_t)limit.rlim_cur).text);
}

/* A fast folder that is full is a pity and no more: the checkpoint still gets to where it belongs. */
static an_status look_at_stage(an_trainer *t, const need *n) {
    const char *what;
    char note[AN_FILE_PATH + AN_LIMITS_TEXT];
    const int64_t room = t->run->stage ? find_room(t->run->stage, &what) : -1;
    if (room < 0 || room >= n->bytes) return AN_OK;
    snprintf(note, sizeof note, "save.stage: a checkpoint needs %s, but %s only %s left in %s\n",
             an_bytes_in_words(n->bytes).text, what, an_bytes_in_words(room).text, t->run->stage);
    return an_trainer_add_note(t, note);
}

an_status an_disk_room_check(an_trainer *t) {
    an_context *ctx = t->ctx;
    need n = {0};
    int64_t present;
    const char *what;
    char note[AN_FILE_PATH + AN_LIMITS_TEXT];
    if (t->planned || !t->params || !t->run->folder) return AN_OK;
    AN_TRY_RETURN(measure(t, &n));
    AN_TRY_RETURN(count_present(t, &present));
    count(t, present, &n);
    if (n.certain == 0) return AN_OK;
    AN_TRY_RETURN(check_file_size(t, &n));
    const int64_t room = find_room(t->run->folder, &what);
    const an_bytes_text each = an_bytes_in_words(n.bytes), left = an_bytes_in_words(room);
    if (room >= 0 && n.bytes > 0 && room / n.bytes < n.certain)
        return AN_ERROR(
            ctx, AN_ERR_FILE,
            "%s: %lld more checkpoint%s of %s must fit there at the same time (save.keep_last, and the one being "
            "written), but %s only %s left. Free some space, move run.dir elsewhere, or lower save.keep_last",
            t->run->folder, (long long)n.certain, n.certain == 1 ? "" : "s", each.text, what, left.text);
    t->run->has_room = true;
    AN_TRY_RETURN(look_at_stage(t, &n));
    if (room < 0 || n.bytes == 0 || room / n.bytes >= n.possible) return AN_OK;
    snprintf(note, sizeof note, "%s: up to %lld checkpoints of %s are kept, but %s only %s left\n", t->run->folder,
             (long long)n.possible, each.text, what, left.text);
    return an_trainer_add_note(t, note);
}
