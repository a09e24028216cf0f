/* The threads of a context.
 *
 * They take tasks of a region as they come to it, and the calling thread takes tasks too. It waits only for tasks that
 * were taken and are not done, never for a thread that has not come: on a busy machine a thread may get no core for
 * milliseconds, which is longer than most regions last.
 */
#ifndef AN_BASE_POOL_H
#define AN_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct an_pool an_pool;

/* A task's index decides what it computes; `thread` (below an_context_threads) only picks scratch. */
typedef void an_task(void *user, int64_t index, int thread);

/* A pool is made in memory of the caller's, aligned to AN_ALIGNMENT. Its threads start with its first region. */
size_t an_pool_bytes(int threads);
void an_pool_init(an_pool *pool, int threads);
/* The processors are shared with other processes that compute: threads without work sleep at once, unless
 * OMP_WAIT_POLICY says otherwise. Before the first region. */
void an_pool_share_processors(an_pool *pool);
/* Ends its threads. Not for a process forked from the one that started them: there they do not exist. */
void an_pool_end(an_pool *pool);

/* Runs tasks 0 … count-1, each once. A thread takes them in rising order. */
void an_pool_run(an_pool *pool, int64_t count, an_task *task, void *user);
/* Whether the calling thread is running a task of a pool. */
bool an_pool_is_inside(void);

/* Seconds that a thread without work spins before it sleeps; INFINITY: it never sleeps. */
double an_pool_spin(const an_pool *pool);
/* Threads that were started. The calling thread is not one of them. */
int an_pool_started(const an_pool *pool);

#endif
