/* Public calls with NULL for each of their pointers in turn.
 *
 * A row names a function and good arguments for it. Each pointer among them is written N(pointer), or O(pointer) where
 * the header says that NULL is fine. A row makes the call once for each pointer, with NULL in its place, and once with
 * none. Every call runs in a process of its own, so that one that crashes is named and changes nothing for the next.
 */
#ifndef TESTS_TRAIN_NULL_SUPPORT_H
#define TESTS_TRAIN_NULL_SUPPORT_H

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/context.h"
#include "open/support.h"
#include "support/public_calls.h"

enum { RIGHT = 0, WRONG = 70, RIGHT_AT_LAST = 71, WRONG_AT_LAST = 72, CALL_SECONDS = 120 };

static struct {
    const char *function;
    int turn;           /* which of its pointers is NULL */
    int seen;           /* pointers of this call so far */
    const char *nulled; /* the one that is NULL; NULL: none */
    bool needed;        /* whether it was N */
    int failures;
} * row; /* shared with the children */

static an_predictor *predictor; /* these have contexts of their own for messages */
static an_generator *generator;
static public_calls rowed; /* functions that have a row */

static inline bool takes_null(const char *pointer, bool needed) {
    if (row->seen++ != row->turn) return false;
    row->nulled = pointer;
    row->needed = needed;
    return true;
}

#define N(pointer) (takes_null(#pointer, true) ? NULL : (pointer))
#define O(pointer) (takes_null(#pointer, false) ? NULL : (pointer))

static inline void begin_row(const char *function) {
    if (!row) row = mmap(NULL, sizeof *row, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(row, MAP_FAILED);
    assert_true(rowed.count < MOST_PUBLIC_CALLS);
    snprintf(rowed.names[rowed.count++], PUBLIC_NAME, "%s", function);
    row->function = function;
    row->turn = -1;
}

/* In the child: true. In the parent: false, after the last turn, in which nothing is NULL. */
static inline bool next_turn(void) {
    for (;;) {
        int status = 0;
        row->turn++;
        row->seen = 0;
        row->nulled = NULL;
        fflush(NULL);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
            for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
                signal(crashes[i], SIG_DFL); /* not cmocka's */
            alarm(CALL_SECONDS);             /* what hangs is killed */
            ctx->process = getpid();         /* it has no threads that fork would have lost */
            return true;
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (code != RIGHT && code != RIGHT_AT_LAST) row->failures++;
        if (code == RIGHT_AT_LAST || code == WRONG_AT_LAST) return false;
        if (code == RIGHT || code == WRONG) continue;
        fprintf(stderr, "%s with %s%s crashed (status %#x)\n", row->function,
                row->nulled ? "NULL for " : "good arguments", row->nulled ? row->nulled : "", (unsigned)status);
        if (!row->nulled) return false;
    }
}

/* In the child: how the call went, and the end. */
static inline void end_turn(bool right, const char *gave) {
    if (!right)
        fprintf(stderr, "%s with %s%s gave %s: %s | %s\n", row->function, row->nulled ? "NULL for " : "good arguments",
                row->nulled ? row->nulled : "", gave, an_last_error(ctx), an_last_error(NULL));
    _exit(row->nulled ? right ? RIGHT : WRONG : right ? RIGHT_AT_LAST : WRONG_AT_LAST);
}

/* A call that fails leaves a message, on the context or, if it has none, for the thread. */
static inline void end_status(an_status status, bool succeeds) {
    const bool says = *an_last_error(ctx) || *an_last_error(NULL);
    end_turn(!row->nulled  ? status == AN_OK || !succeeds
             : row->needed ? status != AN_OK && says
                           : true,
             an_status_name(status));
}

/* A function that returns a status: AN_OK with good arguments. */
#define STATUS(f, ...) \
    for (begin_row(#f); next_turn();) end_status(f(__VA_ARGS__), true)
/* One that is refused for its order even with good ones. */
#define REFUSED(f, ...) \
    for (begin_row(#f); next_turn();) end_status(f(__VA_ARGS__), false)
/* One that returns something else: `harmless` if a pointer that it needs is NULL. */
#define VALUE(f, harmless, ...)                                                                           \
    for (begin_row(#f); next_turn();) {                                                                   \
        const __typeof__(f(__VA_ARGS__)) given_ = f(__VA_ARGS__);                                         \
        end_turn(!row->nulled || !row->needed || given_ == (harmless), "a value that is not " #harmless); \
    }
/* One that returns a text: "" then. */
#define TEXT(f, ...)                                                                                            \
    for (begin_row(#f); next_turn();) {                                                                         \
        const char *given_ = f(__VA_ARGS__);                                                                    \
        end_turn(!row->nulled || !row->needed || (given_ && !*given_), "a text that is not empty, or no text"); \
    }
/* One that returns nothing. */
#define NOTHING(f, ...)                 \
    for (begin_row(#f); next_turn();) { \
        f(__VA_ARGS__);                 \
        end_turn(true, "");             \
    }
/* One that has no pointers. */
#define PLAIN(f) begin_row(#f)

#endif
