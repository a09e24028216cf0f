/* One call: its key, what is to happen to it, and the record of it. */
#define _GNU_SOURCE /* RTLD_NEXT; NOLINT(bugprone-reserved-identifier) */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "interpose.h"

enum { MOST_DESCRIPTORS = 1024, MOST_KEYS = 8192, NOW_BYTES = 512, NOW_THREADS = 64 };

typedef enum mode { NONE, FAIL, DONE, BEFORE, AFTER } mode;

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    char folder[PATH_MAX];
    size_t folder_length;
    mode mode;
    const char *at;
    int error;
    bool half; /* FAULT_ERRNO=SHORT */
    long slow_ms;
    int log;
    long number; /* of calls so far */
    bool happened;
    char *paths[MOST_DESCRIPTORS]; /* of descriptors that were opened under the folder */
    struct {
        char *text; /* "name path" */
        long count;
    } keys[MOST_KEYS];
    int key_count;
    char *now;
    pid_t now_process;
    int now_count;
} state = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .log = -1};

void *real_function(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) abort();
    return function;
}

static void begin(void) {
    static const char *const modes[] = {
        [NONE] = "", [FAIL] = "fail", [DONE] = "done", [BEFORE] = "before", [AFTER] = "after"};
    static const struct {
        const char *name;
        int number;
    } errors[] = {
        {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},      {"EACCES", EACCES}, {"ESTALE", ESTALE},
        {"EXDEV", EXDEV},   {"EINTR", EINTR},   {"ENOENT", ENOENT},      {"EEXIST", EEXIST}, {"EROFS", EROFS},
        {"EINVAL", EINVAL}, {"EMFILE", EMFILE}, {"ENOTEMPTY", ENOTEMPTY}};
    const char *folder = getenv("FAULT_FOLDER"), *wanted = getenv("FAULT_MODE"), *error = getenv("FAULT_ERRNO");
    const char *log = getenv("FAULT_LOG"), *slow = getenv("FAULT_SLOW_MS");
    if (!folder) return;
    state.folder_length = strlen(folder);
    if (state.folder_length >= sizeof state.folder) abort();
    memcpy(state.folder, folder, state.folder_length);
    state.at = getenv("FAULT_AT");
    for (size_t i = 0; wanted && i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(wanted, modes[i])) state.mode = (mode)i;
    for (size_t i = 0; error && i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(error, errors[i].name)) state.error = errors[i].number;
    state.half = error && !strcmp(error, "SHORT");
    if ((wanted && *wanted && state.mode == NONE) || (error && !state.error && !state.half)) abort();
    if (slow) state.slow_ms = strtol(slow, NULL, 10);
    if (log) state.log = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

/* ---- paths ---- */

/* The path without "//", "." and "..": links are not followed. */
static void tidy_path(char *path) {
    char *out = path;
    for (const char *in = path; *in;) {
        const size_t skip = strspn(in, "/");
        const size_t length = strcspn(in + skip, "/");
        const char *part = in + skip;
        in = part + length;
        if (length == 0 || (length == 1 && part[0] == '.')) continue;
        if (length == 2 && part[0] == '.' && part[1] == '.') {
            while (out > path && *--out != '/') {
            }
            continue;
        }
        *out++ = '/';
        memmove(out, part, length);
        out += length;
    }
    *out = 0;
}

/* Writes the path relative to the folder and says whether it is in it; the folder itself is ".". */
static bool find_path(int folder, const char *path, char relative[PATH_MAX]) {
    char whole[2 * PATH_MAX] = "", link[64];
    pthread_once(&state.once, begin);
    if (!state.folder_length) return false;
    if (path[0] != '/') {
        ssize_t length = 0;
        if (folder == AT_FDCWD) {
            if (!getcwd(whole, PATH_MAX)) return false;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            length = readlink(link, whole, PATH_MAX - 1);
            if (length < 0) return false;
            whole[length] = 0;
        }
    }
    const size_t used = strlen(whole);
    if (snprintf(whole + used, sizeof whole - used, "/%s", path) >= (int)(sizeof whole - used)) return false;
    tidy_path(whole);
    if (strncmp(whole, state.folder, state.folder_length) != 0) return false;
    const char *rest = whole + state.folder_length;
    if (*rest && *rest != '/') return false;
    snprintf(relative, PATH_MAX, "%.*s", PATH_MAX - 1, *rest ? rest + 1 : ".");
    return true;
}

/* ---- a call ---- */

bool call_on_path(call *c, const char *name, int folder, const char *path) {
    const int kept = errno;
    c->name = name;
    const bool ours = find_path(folder, path, c->path);
    errno = kept;
    return ours;
}

bool call_on_two(call *c, const char *name, int from_folder, const char *from, int to_folder, const char *to) {
    char first[PATH_MAX] = "outside", second[PATH_MAX] = "outside";
    const int kept = errno;
    const bool ours = (int)find_path(from_folder, from, first) | (int)find_path(to_folder, to, second);
    c->name = name;
    snprintf(c->path, sizeof c->path, "%s -> %s", first, second);
    errno = kept;
    return ours;
}

bool call_on_descriptor(call *c, const char *name, int descriptor) {
    bool ours = false;
    if (descriptor < 0 || descriptor >= MOST_DESCRIPTORS) return false;
    pthread_mutex_lock(&state.lock);
    if (state.paths[descriptor]) {
        c->name = name;
        snprintf(c->path, sizeof c->path, "%s", state.paths[descriptor]);
        ours = true;
    }
    pthread_mutex_unlock(&state.lock);
    return ours;
}

void call_set_path(int descriptor, const char *path) {
    const int kept = errno;
    if (descriptor < 0 || (descriptor >= MOST_DESCRIPTORS && !path)) return;
    if (descriptor >= MOST_DESCRIPTORS) abort();
    pthread_mutex_lock(&state.lock);
    free(state.paths[descriptor]);
    state.paths[descriptor] = path ? strdup(path) : NULL;
    pthread_mutex_unlock(&state.lock);
    errno = kept;
}

/* Counts the call among those of its name and path; the lock is held. In runs with more keys than the table has room
 * for, those that come late have no count. */
static void make_key(call *c) {
    char text[KEY_BYTES];
    long count = 0;
    snprintf(text, sizeof text, "%s %s", c->name, c->path);
    uint32_t at = 5381;
    for (const char *s = text; *s; s++) at = at * 33 + (unsigned char)*s;
    for (at %= MOST_KEYS; state.keys[at].text && strcmp(state.keys[at].text, text) != 0;) at = (at + 1) % MOST_KEYS;
    if (!state.keys[at].text && state.key_count < MOST_KEYS / 2) {
        state.keys[at].text = strdup(text);
        state.key_count++;
    }
    if (state.keys[at].text) count = ++state.keys[at].count;
    c->number = ++state.number;
    snprintf(c->key, sizeof c->key, "%s %ld %s", c->name, count, c->path);
}

static void wait_half(void) {
    const long ms = state.slow_ms;
    if (ms > 0) nanosleep(&(struct timespec){.tv_sec = ms / 2000, .tv_nsec = ms % 2000 * 500000}, NULL);
}

/* Ends this process, or the one whose number is in the file $FAULT_VICTIM, and then goes on. */
static void end_process(void) {
    const char *path = getenv("FAULT_VICTIM");
    char text[32] = "";
    pid_t victim = getpid();
    if (path) {
        const int file = REAL(open)(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 || read(file, text, sizeof text - 1) <= 0) abort();
        REAL(close)(file);
        victim = (pid_t)strtol(text, NULL, 10);
    }
    if (victim <= 0 || kill(victim, SIGKILL) != 0) abort();
    while (victim == getpid()) pause();
}

/* This thread's line of the file that says where threads are; the lock is held. */
static char *find_now(void) {
    static __thread char *line;
    static __thread pid_t process;
    const char *prefix = getenv("FAULT_NOW");
    char path[PATH_MAX];
    if (!prefix) return NULL;
    if (process == getpid()) return line;
    process = getpid();
    line = NULL;
    if (state.now_process != process) {
        state.now_process = process;
        state.now_count = 0;
        snprintf(path, sizeof path, "%s.%d", prefix, (int)process);
        const int file = REAL(open)(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (file < 0 || REAL(ftruncate)(file, (off_t)NOW_THREADS * NOW_BYTES) != 0) abort();
        state.now = mmap(NULL, (size_t)NOW_THREADS * NOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (state.now == MAP_FAILED) abort();
        REAL(close)(file);
    }
    if (state.now_count < NOW_THREADS) line = state.now + (size_t)NOW_BYTES * (size_t)state.now_count++;
    return line;
}

bool call_enter(call *c) {
    char number[32];
    const int kept = errno;
    pthread_mutex_lock(&state.lock);
    make_key(c);
    snprintf(number, sizeof number, "%ld", c->number);
    c->chosen = !state.happened && state.at && (!strcmp(state.at, c->key) || !strcmp(state.at, number));
    state.happened |= c->chosen;
    c->half = c->chosen && state.mode == FAIL && state.half;
    c->done = c->chosen && state.mode == DONE;
    c->now = find_now();
    if (c->now) snprintf(c->now, NOW_BYTES, "%.*s\n", NOW_BYTES - 2, c->key);
    pthread_mutex_unlock(&state.lock);
    wait_half();
    if (c->chosen && state.mode == BEFORE) end_process();
    errno = kept;
    if (!c->chosen || state.mode != FAIL || c->half) return false;
    errno = state.error;
    return true;
}

ssize_t call_leave(call *c, ssize_t result) {
    char line[KEY_BYTES + 64];
    int error = errno;
    if (c->done && result >= 0) {
        result = -1;
        error = state.error;
    }
    pthread_mutex_lock(&state.lock);
    if (state.log >= 0) {
        const int length = snprintf(line, sizeof line, "%ld %s%d %s\n", c->number, c->chosen ? "*" : "",
                                    result < 0 ? -error : 0, c->key);
        if (REAL(write)(state.log, line, (size_t)length) != length) abort();
    }
    pthread_mutex_unlock(&state.lock);
    if (c->chosen && state.mode == AFTER) end_process();
    wait_half();
    if (c->now) c->now[0] = 0;
    errno = error;
    return result;
}
