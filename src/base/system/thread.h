/* Threads of the library's own, beside those of a pool. */
#ifndef AN_BASE_SYSTEM_THREAD_H
#define AN_BASE_SYSTEM_THREAD_H

#include <pthread.h>

/* Starts a thread that no signal of the host is delivered to, with a stack of AN_THREAD_STACK bytes whatever the limit
 * of the main thread's is. Returns 0, or the number of a system error. */
enum { AN_THREAD_STACK = 1 << 20 };
int an_thread_start(pthread_t *thread, void *(*run)(void *user), void *user);

#endif
