/* A checkpoint that is read by many ranks together: whoever wrote it and whoever owns the state, every rank has its own
 * part afterwards, bit for bit, and each byte of each file was read once. What is damaged, cannot be read, has no
 * memory or gets lost on one rank is the same error on all. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "comm/comm.h"
#include "ranks/threads.h"
#include "store/copy.h"
#include "store/load.h"
#include "store/ranks_support.h"

enum { CHUNK_BYTES = 10000, TIMEOUT = 20, PATH = 64, MOST_WRITERS = 8 };

static const char config[] = "run: {}\n";
static const int64_t writers[] = {1, 2, 3, 8};

/* ---- bytes that are read ---- */

static _Atomic int64_t bytes_read;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's --wrap asks for these names */
ssize_t __real_pread(int file, void *bytes, size_t count, off_t offset);
ssize_t __wrap_pread(int file, void *bytes, size_t count, off_t offset);

ssize_t __wrap_pread(int file, void *bytes, size_t count, off_t offset) {
    const ssize_t got = __real_pread(file, bytes, count, offset);
    if (got > 0) atomic_fetch_add(&bytes_read, got);
    return got;
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- messages that leave late ---- */

/* Sends of one rank that take their bytes only when some message is waited for, as those of MPI may: what is
 * overwritten before gets lost. Kept until they leave, in order. */
typedef struct late_send {
    const void *bytes;
    size_t count;
    int to, tag;
    bool left;
} late_send;

enum { MOST_LATE = 1 << 14 };
static late_send late[MOST_RANKS][MOST_LATE];
static size_t late_count[MOST_RANKS], late_left[MOST_RANKS];

static an_status send_late(an_comm *comm, const void *bytes, size_t count, int to, int tag, an_comm_request *request) {
    const size_t number = late_count[comm->rank];
    memset(request, 0, sizeof *request);
    if (number == MOST_LATE || tag == AN_TAG_ABORT) return thread_comm_send(comm, bytes, count, to, tag, request);
    late[comm->rank][number] = (late_send){.bytes = bytes, .count = count, .to = to, .tag = tag};
    late_count[comm->rank]++;
    request->words[1] = number + 1;
    return AN_OK;
}

static an_status test_late(an_comm *comm, an_comm_request *request, bool *done) {
    for (; late_left[comm->rank] < late_count[comm->rank]; late_left[comm->rank]++) {
        late_send *s = &late[comm->rank][late_left[comm->rank]];
        an_comm_request sent;
        if (s->left) continue; /* it was cancelled */
        const an_status status = thread_comm_send(comm, s->bytes, s->count, s->to, s->tag, &sent);
        if (status != AN_OK) return status;
        s->left = true;
    }
    *done = true;
    if (!request->words[1]) return thread_comm_test(comm, request, done);
    memset(request, 0, sizeof *request);
    return AN_OK;
}

static void cancel_late(an_comm *comm, an_comm_request *request) {
    if (!request->words[1]) {
        thread_comm_cancel(comm, request);
        return;
    }
    late[comm->rank][request->words[1] - 1].left = true;
    memset(request, 0, sizeof *request);
}

static void send_all_late(one_rank *r) {
    late_count[r->comm.rank] = late_left[r->comm.rank] = 0;
    r->comm.send = send_late;
    r->comm.test = test_late;
    r->comm.cancel = cancel_late;
}

/* ---- checkpoints ---- */

static int64_t checkpoint_bytes[MOST_WRITERS + 1];

static void put(const char *folder, const char *name, const void *bytes, size_t count) {
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void add_file(an_manifest_text *m, const char *name, const void *bytes, size_t count) {
    const XXH128_hash_t hash = XXH3_128bits(bytes, count);
    an_manifest_add_file(m, name, (int64_t)count, (const uint64_t[]){hash.low64, hash.high64});
}

static void write_checkpoint(an_context *ctx, const part *p, int64_t count) {
    char folder[PATH];
    an_save_layout *l;
    an_route *route;
    an_manifest_text m;
    void *memory = NULL;
    const an_manifest head = {.generation = 1, .bits = {.leaves = 1, .kernels = ""}};
    const an_route_options options = {.ranks = 1, .way = AN_ROUTE_SAVE, .chunk = AN_SAVE_CHUNK};
    snprintf(folder, sizeof folder, "written-by-%lld", (long long)count);
    assert_int_equal(mkdir(folder, 0777), 0);
    OK(ctx, an_save_layout_create(&l, ctx, p->graph, (an_kept){.moments = 2}, count));
    OK(ctx, an_route_create(&route, l, &options));
    OK(ctx, an_alloc(ctx, &memory, an_save_layout_bytes(l), 1));
    OK(ctx, an_save_copy(ctx, l, p->whole, route, memory));
    an_manifest_begin(&m, ctx, &head);
    add_file(&m, "config.yaml", config, strlen(config));
    put(folder, "config.yaml", config, strlen(config));
    checkpoint_bytes[count] = (int64_t)strlen(config);
    const size_t first_part = an_save_layout_describe(l, &m);
    OK(ctx, an_manifest_end(&m));
    for (size_t i = 0; i < l->file_count; i++) {
        char *image = (char *)memory + an_save_image_offset(l, route->files, i);
        memcpy(image, l->files[i].header, l->files[i].header_bytes);
        const XXH128_hash_t hash = XXH3_128bits(image, l->files[i].bytes);
        an_manifest_set_hash(&m, first_part + i, (const uint64_t[]){hash.low64, hash.high64});
        put(folder, l->files[i].name, image, l->files[i].bytes);
        checkpoint_bytes[count] += (int64_t)l->files[i].bytes;
    }
    an_manifest_seal(&m);
    put(folder, AN_MANIFEST_NAME, m.text.bytes, m.text.length);
    an_manifest_text_destroy(&m);
    an_release(ctx, &memory, an_save_layout_bytes(l), 1);
    an_route_destroy(&route);
    an_save_layout_destroy(&l);
}

static int write_checkpoints(void **state) {
    an_context *ctx;
    ledger memory = {0};
    part p;
    (void)state;
    if (system("rm -rf written-by-*")) return 1; /* NOLINT(cert-env33-c): the test's own folders */
    assert_int_equal(context_with_ledger(&ctx, &memory, 1), AN_OK);
    OK(ctx, open_part(&p, ctx, AN_SHARD_NONE, 1, 0));
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) write_checkpoint(ctx, &p, writers[i]);
    close_part(&p);
    an_context_destroy(&ctx);
    return 0;
}

/* ---- loading ---- */

typedef struct {
    an_shard sharding;
    int64_t writers;
    void (*spoil)(const char *folder); /* after all ranks have read the manifest; NULL: nothing */
    int64_t message;                   /* of the load, that fails; 0: none */
    long allocation;                   /* the same */
    int culprit;                       /* on this rank */
    bool late;                         /* messages leave late */
    /* What came of it. */
    int64_t calls[MOST_RANKS];
    long allocations[MOST_RANKS];
    an_status statuses[MOST_RANKS];
    char messages[MOST_RANKS][AN_MESSAGE_BYTES];
    pthread_barrier_t together;
} trial;

static void body(one_rank *r) {
    trial *t = r->user;
    part p;
    char folder[PATH];
    an_manifest *manifest = NULL;
    const int rank = r->comm.rank;
    const bool culprit = rank == t->culprit;
    snprintf(folder, sizeof folder, "written-by-%lld", (long long)t->writers);
    bool ready = !rank_failed(r, "part", open_part(&p, r->ctx, t->sharding, r->comm.ranks, rank));
    ready = ready && !rank_failed(r, "manifest", an_manifest_read(&manifest, r->ctx, folder));
    pthread_barrier_wait(&t->together);
    if (rank == 0) atomic_store(&bytes_read, 0);
    if (rank == 0 && t->spoil) t->spoil(folder);
    pthread_barrier_wait(&t->together);
    if (!ready) goto end;
    an_comm_set_timeout(r->ctx, TIMEOUT);
    const int64_t calls = r->messages.calls;
    const long allocations = r->memory.calls;
    const size_t held = r->memory.held;
    const uint64_t version = p.params->version;
    r->memory.once = true;
    if (culprit && t->message) r->messages.fails_at = calls + t->message;
    if (culprit && t->allocation) r->memory.fail_at = allocations + t->allocation;
    t->statuses[rank] = an_checkpoint_load_ranks(r->ctx, p.params, p.graph, manifest, folder, CHUNK_BYTES);
    r->messages.fails_at = 0;
    r->memory.fail_at = 0;
    t->calls[rank] = r->messages.calls - calls;
    t->allocations[rank] = r->memory.calls - allocations;
    snprintf(t->messages[rank], AN_MESSAGE_BYTES, "%s", t->statuses[rank] == AN_OK ? "" : an_last_error(r->ctx));
    if (r->memory.held != held) snprintf(r->error, sizeof r->error, "rank %d: the load kept memory", rank);
    if (t->statuses[rank] != AN_OK) goto end;
    const char *wrong = p.params->version == version ? "the version" : compare_part(&p);
    if (wrong) snprintf(r->error, sizeof r->error, "rank %d: %s: not as saved", rank, wrong);
end:
    an_manifest_destroy(&manifest);
    close_part(&p);
}

static void run_trial(trial *t, int ranks) {
    static one_rank all[MOST_RANKS];
    assert_int_equal(pthread_barrier_init(&t->together, NULL, (unsigned)ranks), 0);
    run_ranks(all, ranks, body, t, t->late ? send_all_late : NULL);
    pthread_barrier_destroy(&t->together);
    for (int i = 0; i < ranks; i++)
        if (*all[i].error) fail_msg("%d ranks, %lld writers: %s", ranks, (long long)t->writers, all[i].error);
}

static void test_every_rank_has_its_part(void **state) {
    static const int counts[] = {1, 2, 3, 5, 8};
    (void)state;
    for (size_t p = 0; p < sizeof counts / sizeof *counts; p++)
        for (size_t w = 0; w < sizeof writers / sizeof *writers; w++)
            for (size_t s = 0; s < sizeof shardings / sizeof *shardings; s++) {
                trial t = {.sharding = shardings[s], .writers = writers[w], .late = w % 2 > 0};
                run_trial(&t, counts[p]);
                for (int i = 0; i < counts[p]; i++)
                    if (t.statuses[i] != AN_OK) fail_msg("rank %d: %s", i, t.messages[i]);
                assert_int_equal(bytes_read, checkpoint_bytes[writers[w]]);
            }
}

/* ---- damage ---- */

static int spoiled; /* which part */
static int64_t spoiled_at;

static void flip(const char *folder, const char *name, long at) {
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
}

static const char *part_name(void) {
    static char name[PATH];
    snprintf(name, sizeof name, "part-%05d.safetensors", spoiled);
    return name;
}

static void flip_part(const char *folder) {
    flip(folder, part_name(), (long)spoiled_at);
}

static void flip_config(const char *folder) {
    flip(folder, "config.yaml", 3);
}

static void move(const char *folder, bool away) {
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s/%s", folder, part_name());
    assert_int_equal(away ? rename(path, "aside") : rename("aside", path), 0);
}

static void take_away(const char *folder) {
    move(folder, true);
}

/* All ranks say the same, and name the file. */
static void check_damage(const trial *t, int ranks, const char *file) {
    for (int i = 0; i < ranks; i++) {
        if (t->statuses[i] != AN_ERR_DAMAGED || !strstr(t->messages[i], file))
            fail_msg("%s is damaged, and rank %d says %s: %s", file, i, an_status_name(t->statuses[i]), t->messages[i]);
        assert_string_equal(t->messages[i], t->messages[0]);
    }
}

static void test_damage_is_the_same_error_on_all(void **state) {
    enum { RANKS = 3, WRITERS = 8 };
    (void)state;
    for (size_t s = 0; s < sizeof shardings / sizeof *shardings; s++) {
        const trial fresh = {.sharding = shardings[s], .writers = WRITERS};
        for (spoiled = 0; spoiled < WRITERS; spoiled++)
            for (spoiled_at = 5; spoiled_at < 30000; spoiled_at += 11000) {
                trial t = fresh;
                t.spoil = flip_part;
                run_trial(&t, RANKS);
                check_damage(&t, RANKS, part_name());
                flip_part("written-by-8");
            }
        for (spoiled = 0; spoiled < WRITERS; spoiled++) {
            trial t = fresh;
            t.spoil = take_away;
            run_trial(&t, RANKS);
            check_damage(&t, RANKS, part_name());
            move("written-by-8", false);
        }
        trial t = fresh;
        t.spoil = flip_config;
        run_trial(&t, RANKS);
        check_damage(&t, RANKS, "config.yaml");
        flip_config("written-by-8");
    }
}

/* ---- what fails on one rank ---- */

static void test_memory_of_one_rank(void **state) {
    enum { RANKS = 3 };
    trial good = {.sharding = AN_SHARD_OPTIMIZER, .writers = 2};
    (void)state;
    run_trial(&good, RANKS);
    for (int culprit = 0; culprit < RANKS; culprit++)
        for (long allocation = 1; allocation <= good.allocations[culprit]; allocation++) {
            trial t = {.sharding = AN_SHARD_OPTIMIZER, .writers = 2, .allocation = allocation, .culprit = culprit};
            run_trial(&t, RANKS);
            for (int i = 0; i < RANKS; i++) {
                if (t.statuses[i] != AN_ERR_MEMORY)
                    fail_msg("allocation %ld of rank %d: rank %d: %s", allocation, culprit, i, t.messages[i]);
                assert_string_equal(t.messages[i], t.messages[0]);
            }
        }
}

static void test_messages_of_one_rank(void **state) {
    enum { RANKS = 3, STRIDE = 7 };
    int all_failed = 0;
    (void)state;
    for (int s = 0; s < 2; s++) {
        const an_shard sharding = s ? AN_SHARD_FULL : AN_SHARD_NONE;
        trial good = {.sharding = sharding, .writers = 2};
        run_trial(&good, RANKS);
        for (int culprit = 0; culprit < RANKS; culprit++)
            for (int64_t message = 1; message <= good.calls[culprit]; message += STRIDE) {
                trial t = {.sharding = sharding, .writers = 2, .message = message, .culprit = culprit};
                int failed = 0;
                run_trial(&t, RANKS);
                for (int i = 0; i < RANKS; i++) {
                    failed += t.statuses[i] != AN_OK;
                    if (t.statuses[i] != AN_OK && !strstr(t.messages[i], "planted"))
                        fail_msg("message %lld of rank %d: rank %d: %s", (long long)message, culprit, i, t.messages[i]);
                }
                assert_true(failed > 0); /* a rank that was told before the other failed cannot know */
                all_failed += failed == RANKS;
            }
    }
    assert_true(all_failed > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rank_has_its_part),
        cmocka_unit_test(test_damage_is_the_same_error_on_all),
        cmocka_unit_test(test_memory_of_one_rank),
        cmocka_unit_test(test_messages_of_one_rank),
    };
    return cmocka_run_group_tests(tests, write_checkpoints, NULL);
}
