#include "base/system/process.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/regular.h"

enum { MACHINE = AN_PROCESS_IDENTITY / 2 };

void an_process_read(const char *path, char *line, size_t capacity) {
    FILE *file = an_regular_read(path);
    line[0] = 0;
    if (file && fgets(line, (int)capacity, file)) line[strcspn(line, "\n")] = 0;
    if (file) fclose(file);
}

/* When a process started, and what it is doing; false: there is none of that number. */
static bool read_process(long process, unsigned long long *start, char *state) {
    char path[64], line[1024];
    /* Its first thread's, which says the same; of the process's own file an emulator shows it a version with another
     * time. */
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/stat", process, process);
    an_process_read(path, line, sizeof line);
    const char *after = strrchr(line, ')'); /* a name may have anything in it */
    static const char fields[] =
        " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu"; /* the 3rd and the 22nd */
    /* NOLINTNEXTLINE(cert-err34-c): what is no number is no process of ours */
    return after && sscanf(after + 1, fields, state, start) == 2;
}

static void write_machine(char text[MACHINE]) {
    char boot[64], names[64];
    an_process_read("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    const ssize_t length = readlink("/proc/self/ns/pid", names, sizeof names - 1);
    names[length > 0 ? length : 0] = 0;
    snprintf(text, MACHINE, "%s %s", boot, names);
}

void an_process_identify(char text[AN_PROCESS_IDENTITY]) {
    char machine[MACHINE], state;
    unsigned long long start = 0;
    write_machine(machine);
    read_process((long)getpid(), &start, &state);
    snprintf(text, AN_PROCESS_IDENTITY, "%ld %llu %s\n", (long)getpid(), start, machine);
}

an_process_state an_process_look(const char *identity, long *process) {
    char machine[MACHINE], state = 0;
    unsigned long long started = 0, starts = 0;
    int read = 0;
    *process = 0;
    /* NOLINTNEXTLINE(cert-err34-c): anything else is nobody */
    if (sscanf(identity, "%ld %llu %n", process, &started, &read) != 2) return AN_PROCESS_GONE;
    write_machine(machine);
    if (strcmp(identity + read, machine) != 0) return AN_PROCESS_ELSEWHERE;
    if (!read_process(*process, &starts, &state) || starts != started || strchr("ZX", state)) return AN_PROCESS_GONE;
    return strchr("Tt", state) ? AN_PROCESS_STOPPED : AN_PROCESS_AT_WORK;
}
