/* Reads the stacks of the threads of another process. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "cli/supervise/supervise.h"

#ifdef AN_HAVE_LIBDW
#include <elfutils/libdwfl.h>

enum { MOST_FRAMES = 32, LINE = 2048 };

/* A line of functions, the innermost first. */
typedef struct {
    Dwfl *process;
    char line[LINE];
    size_t length;
    int frames;
    bool refused; /* a thread could not be looked at */
} looking;

static void append(looking *l, const char *text) {
    const int added = snprintf(l->line + l->length, sizeof l->line - l->length, "%s%s", l->frames ? " < " : "", text);
    l->length += added > 0 ? (size_t)added : 0;
    if (l->length >= sizeof l->line) l->length = sizeof l->line - 1;
    l->frames++;
}

/* The address after a call belongs to the line after it, which may be another function's. */
static int take_frame(Dwfl_Frame *frame, void *user) {
    looking *l = user;
    Dwarf_Addr address;
    bool is_exact;
    if (!dwfl_frame_pc(frame, &address, &is_exact)) return DWARF_CB_ABORT;
    if (!is_exact) address--;
    Dwfl_Module *module = dwfl_addrmodule(l->process, address);
    const char *name = module ? dwfl_module_addrname(module, address) : NULL;
    Dwarf_Addr start = 0;
    const char *file = module ? dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL) : NULL;
    const char *base = file && strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    char unknown[128];
    snprintf(unknown, sizeof unknown, "%s+%#llx", base ? base : "", (unsigned long long)(address - start));
    append(l, name ? name : unknown);
    return l->frames < MOST_FRAMES ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static int take_thread(Dwfl_Thread *thread, void *user) {
    looking *l = user;
    l->length = 0;
    l->frames = 0;
    errno = 0;
    const int failed = dwfl_thread_getframes(thread, take_frame, l);
    if (l->frames > 0)
        supervise_say("  stack of thread %ld: %s", (long)dwfl_thread_tid(thread), l->line);
    else if (failed && !l->refused) {
        supervise_say("  no stacks: %s", errno == EPERM ? "this system does not allow ptrace here"
                                         : errno        ? strerror(errno)
                                                        : dwfl_errmsg(-1));
        l->refused = true;
    }
    return DWARF_CB_OK;
}

/* Symbols of the files themselves are enough; nothing is looked for elsewhere, least of all on a network. */
static int find_nothing(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, const char *file,
                        const char *link, GElf_Word sum, char **found) {
    (void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)sum, (void)found;
    return -1;
}

static void print_stacks(pid_t pid) {
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf, .find_debuginfo = find_nothing};
    looking l = {.process = dwfl_begin(&callbacks)};
    int error = l.process ? dwfl_linux_proc_report(l.process, pid) : -1;
    if (error == 0) error = dwfl_report_end(l.process, NULL, NULL);
    if (error == 0) error = dwfl_linux_proc_attach(l.process, pid, false);
    if (error == 0)
        dwfl_getthreads(l.process, take_thread, &l);
    else
        supervise_say("  no stacks: %s", error > 0 ? strerror(error) : dwfl_errmsg(-1));
    dwfl_end(l.process);
}

#else

static void print_stacks(pid_t pid) {
    (void)pid;
    supervise_say("  no stacks: anneal was built without libdw");
}

#endif

/* A thread that waits in the kernel does not stop for who wants to look at it: who looks may wait for ever, and so is a
 * process of its own. */
void supervise_stacks(pid_t pid, double seconds) {
    const struct timespec pause = {.tv_nsec = 10000000};
    const double end = an_clock_seconds() + seconds;
    const pid_t looker = fork();
    if (looker == 0) {
        print_stacks(pid);
        _exit(0);
    }
    if (looker < 0) {
        supervise_say("  no stacks: %s", strerror(errno));
        return;
    }
    while (waitpid(looker, NULL, WNOHANG) == 0) {
        if (an_clock_seconds() >= end) {
            supervise_say("  no more stacks: reading them takes longer than %g seconds", seconds);
            kill(looker, SIGKILL);
            waitpid(looker, NULL, 0);
            return;
        }
        nanosleep(&pause, NULL);
    }
}
