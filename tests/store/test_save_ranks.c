/* The copy of a save by many ranks: whoever owns the state and whoever writes, the images are those of one process,
 * bit for bit; a message that fails on one rank is an error of all. */
#include "comm/comm.h"
#include "ranks/threads.h"
#include "store/copy.h"
#include "store/ranks_support.h"

enum { CHUNK_BYTES = 10000 }; /* several in each file, which end within pages */
enum { TIMEOUT = 20 };        /* seconds: a rank that waits in vain says so */

/* The message of the copy that fails, and on which rank; 0: none does. */
typedef struct {
    an_shard sharding;
    int64_t writers, message;
    int culprit;
    int64_t calls[MOST_RANKS]; /* of the copy */
    an_status statuses[MOST_RANKS];
    char messages[MOST_RANKS][AN_MESSAGE_BYTES];
} trial;

/* The memory of the files of one rank. */
typedef struct {
    void *memory;
    char *begin;
    size_t bytes;
} image;

static an_status open_image(image *m, an_context *ctx, const an_save_layout *l, an_file_range files) {
    m->bytes = an_save_image_bytes(l, files);
    const an_status status = an_alloc(ctx, &m->memory, m->bytes, 1);
    m->begin = (char *)an_round_up((uintptr_t)m->memory, AN_SAVE_ALIGNMENT);
    return status;
}

static const char *compare(const one_rank *r, const part *p, const an_save_layout *l, an_file_range files,
                           const char *found) {
    image expected = {0};
    an_route *route = NULL;
    const char *wrong = NULL;
    const an_file_range all = {0, l->file_count};
    const an_route_options options = {.ranks = 1, .way = AN_ROUTE_SAVE, .chunk = AN_SAVE_CHUNK};
    if (open_image(&expected, r->ctx, l, all) != AN_OK || an_route_create(&route, l, &options) != AN_OK ||
        an_save_copy(r->ctx, l, p->whole, route, expected.begin) != AN_OK)
        wrong = "the copy of one process failed";
    for (size_t i = files.begin; i < files.end && !wrong; i++)
        if (memcmp(found + an_save_image_offset(l, files, i), expected.begin + an_save_image_offset(l, all, i),
                   l->files[i].bytes))
            wrong = l->files[i].name;
    an_route_destroy(&route);
    an_release(r->ctx, &expected.memory, expected.bytes, 1);
    return wrong;
}

static void body(one_rank *r) {
    trial *t = r->user;
    part p;
    image own = {0};
    an_save_layout *layout = NULL;
    an_route *route = NULL;
    const int rank = r->comm.rank;
    if (rank_failed(r, "part", open_part(&p, r->ctx, t->sharding, r->comm.ranks, rank))) goto end;
    fill_store(p.params);
    if (rank_failed(r, "layout", an_save_layout_create(&layout, r->ctx, p.graph, (an_kept){.moments = 2}, t->writers)))
        goto end;
    const an_route_options options = {.ranks = r->comm.ranks,
                                      .rank = rank,
                                      .shards = t->sharding == AN_SHARD_NONE ? NULL : p.shards,
                                      .way = AN_ROUTE_SAVE,
                                      .chunk = CHUNK_BYTES};
    if (rank_failed(r, "route", an_route_create(&route, layout, &options))) goto end;
    if (rank_failed(r, "image", open_image(&own, r->ctx, layout, route->files))) goto end;
    const size_t before = r->memory.maximum = r->memory.held;
    const int64_t calls = r->messages.calls;
    an_comm_set_timeout(r->ctx, TIMEOUT);
    if (t->message && t->culprit == rank) r->messages.fails_at = calls + t->message;
    t->statuses[rank] = an_save_copy(r->ctx, layout, p.params, route, own.begin);
    r->messages.fails_at = 0;
    t->calls[rank] = r->messages.calls - calls;
    if (r->memory.maximum != before) snprintf(r->error, sizeof r->error, "rank %d: the copy took memory", rank);
    if (t->statuses[rank] != AN_OK) {
        snprintf(t->messages[rank], sizeof t->messages[rank], "%s", an_last_error(r->ctx));
        goto end;
    }
    const char *wrong = compare(r, &p, layout, route->files, own.begin);
    if (wrong) snprintf(r->error, sizeof r->error, "rank %d: %s differs", rank, wrong);
end:
    an_release(r->ctx, &own.memory, own.bytes, 1);
    an_route_destroy(&route);
    an_save_layout_destroy(&layout);
    close_part(&p);
}

static void run_trial(trial *t, int ranks) {
    static one_rank all[MOST_RANKS];
    run_ranks(all, ranks, body, t, NULL);
    for (int i = 0; i < ranks; i++)
        if (*all[i].error) fail_msg("%d ranks, %lld writers: %s", ranks, (long long)t->writers, all[i].error);
}

static void test_images_are_those_of_one_process(void **state) {
    static const int counts[] = {1, 2, 3, 5, 8};
    static const int64_t writers[] = {1, 2, 3, 8, 9};
    (void)state;
    for (size_t p = 0; p < sizeof counts / sizeof *counts; p++)
        for (size_t w = 0; w < sizeof writers / sizeof *writers; w++)
            for (size_t s = 0; s < sizeof shardings / sizeof *shardings; s++) {
                trial t = {.sharding = shardings[s], .writers = writers[w]};
                run_trial(&t, counts[p]);
                for (int i = 0; i < counts[p]; i++) assert_int_equal(t.statuses[i], AN_OK);
            }
}

/* ---- a message that fails ---- */

/* A rank that had everything before the other failed cannot know. All others have its error. */
static int count_failed(const trial *t, int ranks) {
    int failed = 0;
    for (int i = 0; i < ranks; i++) {
        if (t->statuses[i] == AN_OK) continue;
        if (!strstr(t->messages[i], "planted"))
            fail_msg("message %lld of rank %d: rank %d says: %s", (long long)t->message, t->culprit, i, t->messages[i]);
        failed++;
    }
    return failed;
}

static void test_a_failure_is_everyones(void **state) {
    enum { RANKS = 3, STRIDE = 5 };
    trial good = {.sharding = AN_SHARD_FULL, .writers = RANKS};
    int all_failed = 0;
    (void)state;
    run_trial(&good, RANKS);
    for (int culprit = 0; culprit < RANKS; culprit++)
        for (int64_t message = 1; message <= good.calls[culprit]; message += STRIDE) {
            trial t = {.sharding = AN_SHARD_FULL, .writers = RANKS, .message = message, .culprit = culprit};
            run_trial(&t, RANKS);
            const int failed = count_failed(&t, RANKS);
            assert_true(failed > 0);
            all_failed += failed == RANKS;
        }
    assert_true(all_failed > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images_are_those_of_one_process),
        cmocka_unit_test(test_a_failure_is_everyones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
