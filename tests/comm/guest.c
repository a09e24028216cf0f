/* A host that has MPI of its own, built with each MPI library:
 *
 *     mpirun.sh openmpi 4 guest_openmpi single|multiple
 *
 * It initializes MPI with this level of threads and gives each half of its processes a context of its own. Both halves
 * then train, each its own model, at the same time, and while messages of the host, with tags that the library uses
 * too, are under way. Each must end with the bits that one process has without MPI. The library makes no call on the
 * host's communicators but the one that duplicates, calls MPI in the host's thread only, and leaves nothing behind:
 * no handle, no file, no thread, no memory. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "anneal/anneal.h"
#include "anneal/mpi.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "guest_calls.h"

enum { HALVES = 2, ROUNDS = 50, TAGS = 5, LETTERS = 2500, ROWS = 85 };

static int rank;
static an_context *ctx;

#define CHECK(condition)                                                                             \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "rank %d: %s:%d: not true: %s\n", rank, __FILE__, __LINE__, #condition); \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

#define INSIDE(call)                                                                               \
    do {                                                                                           \
        seen.is_inside = true;                                                                     \
        const an_status status_ = (call);                                                          \
        seen.is_inside = false;                                                                    \
        if (status_ != AN_OK) {                                                                    \
            fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, an_last_error(ctx)); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* ---- what the library leaves behind ---- */

static size_t bytes_held;

static void *allocate(void *user, size_t bytes, size_t alignment) {
    (void)user;
    void *memory = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory) bytes_held += bytes;
    return memory;
}

static void release(void *user, void *memory, size_t bytes) {
    (void)user;
    bytes_held -= bytes;
    free(memory);
}

typedef struct {
    int files, threads;
} system_use;

static int count_entries(const char *path) {
    int count = 0;
    DIR *folder = opendir(path);
    CHECK(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

static system_use look(void) {
    return (system_use){count_entries("/proc/self/fd"), count_entries("/proc/self/task")};
}

static void print_files(void) {
    char path[64], target[256];
    for (int i = 0; i < 1024; i++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        const ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0) fprintf(stderr, "rank %d: file %d is %.*s\n", rank, i, (int)length, target);
    }
}

/* The library, and all that it made, is gone. The system forgets a thread a moment after it was joined. */
static void check_gone(const system_use *before) {
    system_use now = look();
    for (int i = 0; i < 100 && now.threads > before->threads; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        now = look();
    }
    if (now.files > before->files) print_files();
    CHECK(now.files <= before->files);
    CHECK(now.threads <= before->threads);
    CHECK(bytes_held == 0);
    for (int i = 0; i < HANDLES; i++)
        if (seen.made[i] != seen.released[i]) {
            fprintf(stderr, "rank %d: the library has made %ld %s and released %ld\n", rank, seen.made[i],
                    handle_names[i], seen.released[i]);
            exit(1);
        }
    if (seen.foreign > 0) fprintf(stderr, "rank %d: the library has called %s\n", rank, seen.which);
    CHECK(seen.foreign == 0);
    CHECK(seen.by_threads == 0);
}

/* ---- contexts ---- */

/* MPI_COMM_NULL: one process, without MPI. */
static void begin(MPI_Comm comm) {
    const an_allocator allocator = {.size = sizeof allocator, .allocate = allocate, .release = release};
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.allocator = &allocator;
    options.threads = 2; /* of which one may call MPI */
    options.alone = comm == MPI_COMM_NULL;
    if (comm == MPI_COMM_NULL)
        INSIDE(an_context_create(&ctx, &options));
    else
        INSIDE(an_context_create_mpi(&ctx, comm, &options));
}

static void end(void) {
    seen.is_inside = true;
    an_context_destroy(&ctx);
    seen.is_inside = false;
}

/* ---- training ---- */

/* Dropout, evaluations, saves, and steps that have fewer samples than leaves. */
static const char *const configs[HALVES] = {
    "run: {seed: 11, steps: 30}\n"
    "model: {type: gpt2, layers: 2, heads: 2, width: 32, context: 16, dropout: 0.1}\n"
    "data: {train: {type: text, path: letters.txt, tokens: chars, part: 0%..75%},\n"
    "       eval: {type: text, path: letters.txt, tokens: chars, part: 75%..100%}}\n"
    "batch: {global: 16, leaves: 8}\n"
    "optimizer: {type: adamw, lr: 3e-3}\n"
    "eval: {every: 5 steps}\nsave: {every: 11 steps}\n",
    "run: {seed: 13, steps: 60}\n"
    "model: {type: mlp, hidden: [24, 16], activation: tanh, dropout: 0.1}\n"
    "data: {train: {type: csv, path: rows.csv, targets: [y], dtype: f64, part: 0%..80%},\n"
    "       eval: {type: csv, path: rows.csv, targets: [y], dtype: f64, part: 80%..100%}}\n"
    "batch: {micro: 2, accumulate: 16, leaves: 8}\n"
    "optimizer: {type: lion, lr: 1e-3}\n"
    "train: {precision: f64}\n"
    "eval: {every: 7 steps}\nsave: {every: 19 steps}\n",
};

static void write_data(int half) {
    FILE *file = fopen(half == 0 ? "letters.txt" : "rows.csv", "w");
    CHECK(file);
    for (int i = 0; half == 0 && i < LETTERS; i++) fputc(i % 13 == 12 ? '\n' : 'a' + i * i / 7 % 17, file);
    if (half == 1) fprintf(file, "a,b,y\n");
    for (int i = 0; half == 1 && i < ROWS; i++) fprintf(file, "%d,%d,%d\n", i % 11, i % 7, i % 11 - i % 7);
    CHECK(fclose(file) == 0);
}

/* A whole run in the present context: a new one, whatever an earlier test left in the folder. */
static void train(int half, const char *folder, char hash[AN_HASH_TEXT]) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    char set[64];
    const char *const sets[] = {set};
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_open_options opening;
    an_open_options_init(&opening, sizeof opening);
    snprintf(set, sizeof set, "run.dir=%s-%d", folder, half);
    options.file = "guest.yaml";
    options.text = configs[half];
    options.length = strlen(configs[half]);
    options.sets = sets;
    options.set_count = 1;
    opening.fresh = true;
    INSIDE(an_config_read(&config, ctx, &options));
    INSIDE(an_trainer_open_config(&trainer, ctx, config, &opening));
    INSIDE(an_trainer_run(trainer, NULL, NULL));
    INSIDE(an_trainer_state_hash(trainer, hash));
    seen.is_inside = true;
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    seen.is_inside = false;
}

/* What one process has without MPI: the first of a half computes it. */
static void train_alone(int half, char hash[AN_HASH_TEXT]) {
    const int calls = seen.calls;
    write_data(half);
    begin(MPI_COMM_NULL);
    CHECK(an_context_ranks(ctx) == 1);
    train(half, "alone", hash);
    end();
    CHECK(seen.calls == calls);
}

/* ---- the host ---- */

/* The host's own message to the next process of its half, from before a call of the library until after it. */
typedef struct {
    int sent, received;
    MPI_Request requests[2];
} host_message;

static void post(host_message *m, int mine, int peers, int tag) {
    m->sent = tag * 100 + mine;
    m->received = -1;
    MPI_Irecv(&m->received, 1, MPI_INT, (mine + peers - 1) % peers, tag, seen.half, &m->requests[0]);
    MPI_Isend(&m->sent, 1, MPI_INT, (mine + 1) % peers, tag, seen.half, &m->requests[1]);
}

static void complete(host_message *m, int mine, int peers, int tag) {
    MPI_Status statuses[2];
    MPI_Waitall(2, m->requests, statuses);
    CHECK(m->received == tag * 100 + (mine + peers - 1) % peers);
}

static void compute(int mine, int peers) {
    host_message message;
    begin(seen.half);
    CHECK(an_context_rank(ctx) == mine && an_context_ranks(ctx) == peers && seen.duplications == 1);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t sum = mine + 1;
        post(&message, mine, peers, round % TAGS + 1);
        INSIDE(an_ranks_all_reduce(ctx, &sum, 1, AN_DTYPE_I64, AN_REDUCE_SUM));
        CHECK(sum == (int64_t)peers * (peers + 1) / 2);
        complete(&message, mine, peers, round % TAGS + 1);
    }
    CHECK(peers == 1 || seen.made[REQUESTS] > 0); /* else nothing was watched */
    end();                                        /* the other half may be in the middle of its work */
}

static void train_both(int half, int mine, int peers) {
    char expected[AN_HASH_TEXT], hash[AN_HASH_TEXT];
    host_message messages[TAGS];
    if (mine == 0) train_alone(half, expected);
    MPI_Bcast(expected, AN_HASH_TEXT, MPI_CHAR, 0, seen.half);
    MPI_Barrier(MPI_COMM_WORLD); /* both halves begin now */
    for (int i = 0; i < TAGS; i++) post(&messages[i], mine, peers, i + 1);
    const long before = seen.made[REQUESTS];
    begin(seen.half);
    train(half, "half", hash);
    end();
    CHECK(peers == 1 || seen.made[REQUESTS] > before);
    for (int i = 0; i < TAGS; i++) complete(&messages[i], mine, peers, i + 1);
    if (strcmp(hash, expected) != 0)
        fprintf(stderr, "rank %d: half %d: %s, but one process has %s\n", rank, half, hash, expected);
    CHECK(!strcmp(hash, expected));
}

int main(int count, char **arguments) {
    const int wanted = count > 1 && !strcmp(arguments[1], "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int level, ranks, mine = -1, peers, finalized;
    seen.thread = pthread_self();
    seen.half = MPI_COMM_NULL;
    MPI_Init_thread(&count, &arguments, wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank % HALVES, -rank, &seen.half); /* in the opposite order */
    MPI_Comm_rank(seen.half, &mine);
    MPI_Comm_size(seen.half, &peers);
    /* The folders of an earlier test: a run does not begin where another one was saved. */
    if (rank == 0) CHECK(system("rm -rf alone-0 alone-1 half-0 half-1") == 0); /* NOLINT(cert-env33-c) */
    MPI_Barrier(MPI_COMM_WORLD);

    compute(mine, peers);
    const system_use before = look(); /* after MPI and the library's plugin have what they keep */
    train_both(rank % HALVES, mine, peers);
    CHECK(seen.duplications == 2);
    check_gone(&before);

    /* One process alone, and a communicator that is none. */
    INSIDE(an_context_create_mpi(&ctx, MPI_COMM_SELF, NULL));
    CHECK(an_context_ranks(ctx) == 1);
    an_context_destroy(&ctx);
    CHECK(an_context_create_mpi(&ctx, MPI_COMM_NULL, NULL) == AN_ERR_ARGUMENT && !ctx);
    CHECK(strstr(an_last_error(NULL), "MPI_COMM_NULL"));

    const MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
    MPI_Comm_free(&seen.half);
    MPI_Finalized(&finalized);
    CHECK(!finalized);
    MPI_Finalize();
    CHECK(an_context_create_mpi_f(&ctx, world, NULL) == AN_ERR_STATE);
    if (rank == 0) printf("%d ranks with %s: all tests passed\n", ranks, count > 1 ? arguments[1] : "single");
    return 0;
}
