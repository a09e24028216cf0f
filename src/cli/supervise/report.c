/* Reports what the threads of a hanging process are doing, as far as that is visible from outside. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/supervise/supervise.h"

enum { PATH_BYTES = 96, WORD_BYTES = 64 };
static const double stack_seconds = 5;

static const struct {
    char letter;
    const char *text;
} states[] = {
    {'R', "runs"},       {'S', "sleeps"},     {'D', "waits for a device or a file server"},
    {'T', "is stopped"}, {'t', "is stopped"}, {'Z', "has ended"},
};

void supervise_place(const an_heartbeat *heartbeat, char place[SUPERVISE_PLACE]) {
    static const char save[] = "save:";
    const char *behind = NULL;
    for (int i = 1; i < AN_HEARTBEAT_SLOTS; i++)
        if (heartbeat->slots[i].thread && !strncmp(heartbeat->slots[i].text, save, sizeof save - 1))
            behind = heartbeat->slots[i].text;
    const char *text = heartbeat->slots[0].text;
    snprintf(place, SUPERVISE_PLACE, "while \"%s%s%s\"", behind ? behind : "", behind ? "\" and \"" : "",
             *text ? text : "start"); /* a process that has not said anything yet */
}

void supervise_describe(const supervise_end *end, int64_t ranks, char *text, size_t capacity) {
    char who[64] = "the training process", how[64], place[SUPERVISE_PLACE];
    if (ranks > 0) snprintf(who, sizeof who, "one of %lld ranks", (long long)ranks);
    supervise_place(&end->heartbeat, place);
    if (end->hung)
        snprintf(how, sizeof how, "hung");
    else if (end->signal)
        snprintf(how, sizeof how, "%s (signal %d)", end->signal == SIGKILL ? "was killed" : "crashed", end->signal);
    else
        snprintf(how, sizeof how, "failed (exit code %d)", end->code);
    snprintf(text, capacity, "%s %s at step %lld, %s", who, how, (long long)end->heartbeat.step, place);
}

/* The first line of a file of /proc, without what a terminal should not see; "": it cannot be read. */
static void read_line(pid_t pid, long thread, const char *name, char *text, size_t capacity) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/%s", (long)pid, thread, name);
    FILE *file = fopen(path, "re");
    text[0] = 0;
    if (file && !fgets(text, (int)capacity, file)) text[0] = 0;
    if (file) fclose(file);
    text[strcspn(text, "\n")] = 0;
    for (; *text; text++)
        if ((unsigned char)*text < ' ') *text = '?';
}

/* The letter stands after the name, which has brackets around it and may have some in it. */
static const char *state_of(pid_t pid, long thread) {
    char line[1024];
    read_line(pid, thread, "stat", line, sizeof line);
    const char *end = strrchr(line, ')');
    for (size_t i = 0; end && end[1] == ' ' && i < sizeof states / sizeof *states; i++)
        if (states[i].letter == end[2]) return states[i].text;
    return "is in an unknown state";
}

static const char *text_of(const an_heartbeat *heartbeat, long thread) {
    for (int i = 0; i < AN_HEARTBEAT_SLOTS; i++)
        if (heartbeat->slots[i].thread == thread && *heartbeat->slots[i].text) return heartbeat->slots[i].text;
    return "";
}

static void report_thread(pid_t pid, long thread, const an_heartbeat *heartbeat) {
    char name[WORD_BYTES], function[WORD_BYTES];
    read_line(pid, thread, "comm", name, sizeof name);
    read_line(pid, thread, "wchan", function,
              sizeof function); /* where in the kernel; "0": nowhere, or it is not told */
    const bool is_told = *function && strcmp(function, "0") != 0;
    const char *text = text_of(heartbeat, thread);
    supervise_say("  thread %ld (%s) %s%s%s%s%s", thread, name, state_of(pid, thread), is_told ? " in " : "",
                  is_told ? function : "", *text ? ": " : "", text);
}

void supervise_report(pid_t pid, const an_heartbeat *heartbeat) {
    enum { BASE = 10 };
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *folder = opendir(path);
    if (!folder) supervise_say("  the threads cannot be listed");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        const long thread = strtol(entry->d_name, NULL, BASE);
        if (thread > 0) report_thread(pid, thread, heartbeat);
    }
    if (folder) closedir(folder);
    supervise_stacks(pid, stack_seconds);
}
