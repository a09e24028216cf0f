/* Who a process is, in a line that others can read later: its number, when it started, the machine since its own start,
 * and the namespace of process numbers. This file uses nothing of a context, so the command can compile its own
 * copy. */
#ifndef AN_BASE_SYSTEM_PROCESS_H
#define AN_BASE_SYSTEM_PROCESS_H

#include <stddef.h>

enum { AN_PROCESS_IDENTITY = 512 };

typedef enum an_process_state {
    AN_PROCESS_GONE,
    AN_PROCESS_STOPPED, /* by a signal, or by a debugger */
    AN_PROCESS_AT_WORK,
    AN_PROCESS_ELSEWHERE /* on another machine or in another container, where its number means something else */
} an_process_state;

/* The line of this process, with its end. */
void an_process_identify(char text[AN_PROCESS_IDENTITY]);
/* What has become of the process that a line, without its end, describes, and its number; a line of something else is
 * of a process that is gone, with number 0. */
an_process_state an_process_look(const char *identity, long *process);

/* The first line of a file, without its end; "" if there is none. */
void an_process_read(const char *path, char *line, size_t capacity);

#endif
