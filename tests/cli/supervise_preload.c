/* Loaded before the C library of a training process: reads of the data come to grief, as a file says.
 *   PRELOAD_DATA   how the name of the data file ends
 *   PRELOAD_FLAG   a file with "sleep N" (the N-th read sleeps for ever, and the file is removed first) or "crash N"
 *                  (it raises SIGSEGV, in every process anew) or "slow N" (every read takes N microseconds longer);
 *                  nothing happens where there is none when the process starts
 */
#define _GNU_SOURCE /* RTLD_NEXT; NOLINT(bugprone-reserved-identifier) */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char action[16];
static long at, reads;

__attribute__((constructor)) static void read_flag(void) {
    const char *path = getenv("PRELOAD_FLAG");
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file) return;
    char line[64] = "", number[16] = "";
    if (fgets(line, sizeof line, file)) sscanf(line, "%15s %15s", action, number);
    at = strtol(number, NULL, 10);
    fclose(file);
}

static bool is_data(int descriptor) {
    char name[64], path[4096];
    const char *end = getenv("PRELOAD_DATA");
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (!end || length < (ssize_t)strlen(end)) return false;
    path[length] = 0;
    return !strcmp(path + length - strlen(end), end);
}

static void come_to_grief(int descriptor) {
    if (!action[0] || !is_data(descriptor)) return;
    if (!strcmp(action, "slow")) {
        const struct timespec time = {.tv_nsec = at * 1000};
        nanosleep(&time, NULL);
        return;
    }
    if (__atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED) != at) return;
    if (!strcmp(action, "crash")) {
        sigset_t crash; /* threads of the loader have all signals blocked, and this one is raised by no fault */
        sigemptyset(&crash);
        sigaddset(&crash, SIGSEGV);
        pthread_sigmask(SIG_UNBLOCK, &crash, NULL);
        raise(SIGSEGV);
    }
    unlink(getenv("PRELOAD_FLAG"));
    for (;;) pause();
}

typedef ssize_t read_function(int descriptor, void *buffer, size_t bytes, off_t offset);

static ssize_t pass_on(const char *name, int descriptor, void *buffer, size_t bytes, off_t offset) {
    read_function *next = NULL;
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(&next, &found, sizeof next);
    come_to_grief(descriptor);
    return next(descriptor, buffer, bytes, offset);
}

ssize_t pread(int fd, void *buf, size_t bytes, off_t offset) {
    return pass_on("pread", fd, buf, bytes, offset);
}

ssize_t pread64(int fd, void *buf, size_t bytes, off_t offset) {
    return pass_on("pread64", fd, buf, bytes, offset);
}
