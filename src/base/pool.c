#define _GNU_SOURCE /* pthread_attr_setaffinity_np; NOLINT(bugprone-reserved-identifier) */
#include "base/pool.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "base/system/clock.h"

/* The state of a region is one word: these flags, and below them how many threads are inside. Tasks can be taken while
 * it is open; whoever finds none left closes it. */
enum { OPEN = 1 << 30, ENDED = 1 << 29, CALLER_SLEEPS = 1 << 28 };

/* A thread whose next region comes soon should be awake: one that spins begins within a microsecond, one that sleeps
 * takes about ten. A step's regions follow each other faster than this; what other programs lose to it is a small part
 * of a time slice (a millisecond or more). */
static const double short_spin = 200e-6;
enum { LOOKS = 8 }; /* between two looks at the clock */

enum { STACK_BYTES = 1 << 20 }; /* whatever the limit of the main thread's is: kernels need less than 64 kB */

typedef struct {
    pthread_t thread;
    an_pool *pool;
    int number;
} worker;

struct an_pool {
    an_task *task; /* the region: written while no thread is inside */
    void *user;
    int64_t count;
    _Alignas(AN_ALIGNMENT) atomic_llong next; /* task */
    _Alignas(AN_ALIGNMENT) atomic_uint state;
    _Alignas(AN_ALIGNMENT) atomic_int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t opened, done;
    double spin;
    bool is_started;
    int threads, started;
    worker workers[];
};

static _Thread_local bool is_inside;

/* ---- waiting ---- */

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static bool has_flag(an_pool *p, unsigned flags) {
    return (atomic_load(&p->state) & flags) != 0;
}

/* Spins until `is_over` or until it is time to sleep. */
static bool spin(an_pool *p, bool (*is_over)(an_pool *p)) {
    if (is_over(p)) return true;
    if (p->spin <= 0) return false;
    const double until = an_clock_seconds() + p->spin;
    do {
        for (int i = 0; i < LOOKS; i++) {
            relax();
            if (is_over(p)) return true;
        }
    } while (an_clock_seconds() < until);
    return false;
}

/* ---- a region ---- */

static void run_tasks(an_pool *p, int thread) {
    is_inside = true;
    for (int64_t i; (i = atomic_fetch_add(&p->next, 1)) < p->count;) p->task(p->user, i, thread);
    is_inside = false;
    atomic_fetch_and(&p->state, ~(unsigned)OPEN);
}

/* From then until it leaves, the region stays as it is. */
static bool enter(an_pool *p) {
    unsigned state = atomic_load(&p->state);
    while (state & OPEN)
        if (atomic_compare_exchange_weak(&p->state, &state, state + 1)) return true;
    return false;
}

static void leave(an_pool *p) {
    if (atomic_fetch_sub(&p->state, 1) != CALLER_SLEEPS + 1) return;
    pthread_mutex_lock(&p->mutex);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->mutex);
}

/* ---- a worker ---- */

static bool is_called(an_pool *p) {
    return has_flag(p, OPEN | ENDED);
}

static void sleep_until_called(an_pool *p) {
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_add(&p->sleepers, 1);
    while (!is_called(p)) pthread_cond_wait(&p->opened, &p->mutex);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->mutex);
}

static void *work(void *user) {
    const worker *w = user;
    an_pool *p = w->pool;
    an_float_enter();
    while (!has_flag(p, ENDED)) {
        if (enter(p)) {
            run_tasks(p, w->number);
            leave(p);
        } else if (!spin(p, is_called))
            sleep_until_called(p);
    }
    return NULL;
}

/* ---- the calling thread ---- */

/* No lock: a thread that is just going to sleep may miss it, and then the others do its part of this region. */
static void wake(an_pool *p, int64_t maximum) {
    const int sleepers = atomic_load(&p->sleepers);
    if (sleepers == 0) return;
    if (sleepers <= maximum)
        pthread_cond_broadcast(&p->opened);
    else
        for (int64_t i = 0; i < maximum; i++) pthread_cond_signal(&p->opened);
}

static bool is_empty(an_pool *p) {
    return atomic_load(&p->state) == 0;
}

static void wait_for_taken_tasks(an_pool *p) {
    if (spin(p, is_empty)) return;
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_or(&p->state, CALLER_SLEEPS);
    while (atomic_load(&p->state) != CALLER_SLEEPS) pthread_cond_wait(&p->done, &p->mutex);
    atomic_store(&p->state, 0);
    pthread_mutex_unlock(&p->mutex);
}

static void start(an_pool *p);

void an_pool_run(an_pool *pool, int64_t count, an_task *task, void *user) {
    if (!pool->is_started) start(pool);
    pool->task = task;
    pool->user = user;
    pool->count = count;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->state, OPEN);
    wake(pool, count - 1);
    run_tasks(pool, 0);
    wait_for_taken_tasks(pool);
}

bool an_pool_is_inside(void) {
    return is_inside;
}

/* ---- starting and ending ---- */

/* OpenMP's places hold for these threads too: a bound host thread would else keep all of them on its own place. Places
 * that are close come one after another; fewer threads than places are spread if that was asked for. */
static void set_place(pthread_attr_t *attributes, int number, int threads) {
    const omp_proc_bind_t bind = omp_get_proc_bind();
    const int places = omp_get_num_places(), own = omp_get_place_num();
    if (bind == omp_proc_bind_false || places <= 0) return;
    int away = bind == omp_proc_bind_spread || threads > places ? (int)((int64_t)number * places / threads) : number;
    if (bind == omp_proc_bind_master) away = 0;
    const int place = ((own < 0 ? 0 : own) + away) % places, count = omp_get_place_num_procs(place);
    int *processors = malloc((size_t)count * sizeof *processors);
    if (!processors) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    omp_get_place_proc_ids(place, processors);
    for (int i = 0; i < count; i++)
        if (processors[i] < CPU_SETSIZE) CPU_SET((size_t)processors[i], &set);
    if (CPU_COUNT(&set) > 0) pthread_attr_setaffinity_np(attributes, sizeof set, &set);
    free(processors);
}

/* Whatever threads the system does not give, the others do the work. The host's signals are for the host's threads. */
static void start(an_pool *p) {
    sigset_t all, before;
    p->is_started = true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int number = 1; number < p->threads; number++) {
        worker *w = &p->workers[p->started];
        pthread_attr_t attributes;
        *w = (worker){.pool = p, .number = number};
        if (pthread_attr_init(&attributes) != 0) break;
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        set_place(&attributes, number, p->threads);
        const int error = pthread_create(&w->thread, &attributes, work, w);
        pthread_attr_destroy(&attributes);
        if (error) break;
        p->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* OMP_WAIT_POLICY is the user's word. More threads than processors would spin in each other's way. */
static double choose_spin(int threads) {
    const char *policy = getenv("OMP_WAIT_POLICY");
    if (policy && !strcasecmp(policy, "active")) return INFINITY;
    if ((policy && !strcasecmp(policy, "passive")) || threads > omp_get_num_procs()) return 0;
    return short_spin;
}

size_t an_pool_bytes(int threads) {
    return sizeof(an_pool) + (size_t)(threads - 1) * sizeof(worker);
}

void an_pool_init(an_pool *pool, int threads) {
    memset(pool, 0, an_pool_bytes(threads));
    pool->threads = threads;
    pool->spin = choose_spin(threads);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->opened, NULL);
    pthread_cond_init(&pool->done, NULL);
}

void an_pool_share_processors(an_pool *pool) {
    if (pool->spin < INFINITY) pool->spin = 0;
}

void an_pool_end(an_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->state, ENDED);
    pthread_cond_broadcast(&pool->opened);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->opened);
    pthread_mutex_destroy(&pool->mutex);
}

double an_pool_spin(const an_pool *pool) {
    return pool->spin;
}

int an_pool_started(const an_pool *pool) {
    return pool->started;
}
