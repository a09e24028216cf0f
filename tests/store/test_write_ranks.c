/* A checkpoint that many ranks write in three steps, and any number of ranks reads: each rank creates its own files
 * and no other, and until the last step there is no checkpoint. If a part cannot be written on any rank, all
 * ranks have its error, nothing is left of it, and the checkpoint before it is there. All of this from a copy of
 * the state, and without one. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/ranks.h"
#include "base/heartbeat.h"
#include "ranks/threads.h"
#include "store/copy.h"
#include "store/launch.h"
#include "store/load.h"
#include "store/ranks_support.h"
#include "store/stream.h"
#include "store/write.h"

#define FOLDER "ranks-write"
enum { CHUNK_BYTES = 10000, NOBODY = -1 };

typedef struct {
    an_shard sharding;
    int64_t writers, step, generation;
    int culprit; /* the rank that cannot write its first part */
    bool direct; /* without a copy */
    an_status statuses[MOST_RANKS];
    char messages[MOST_RANKS][AN_MESSAGE_BYTES];
} trial;

/* ---- saving ---- */

typedef struct {
    part p;
    an_route *route;
    void *memory;
    size_t bytes;
    an_save_job job;
} saving;

static an_status open_saving(saving *s, const one_rank *r, const trial *t) {
    an_context *ctx = r->ctx;
    an_save_job *job = &s->job;
    an_status status = open_part(&s->p, ctx, t->sharding, r->comm.ranks, r->comm.rank);
    if (status == AN_OK)
        status = an_save_layout_create(&job->layout, ctx, s->p.graph, (an_kept){.moments = 2}, t->writers);
    if (status != AN_OK) return status;
    fill_store(s->p.params);
    const an_route_options options = {.ranks = r->comm.ranks,
                                      .rank = r->comm.rank,
                                      .shards = t->sharding == AN_SHARD_NONE ? NULL : s->p.shards,
                                      .way = AN_ROUTE_SAVE,
                                      .chunk = CHUNK_BYTES};
    status = an_route_create(&s->route, job->layout, &options);
    if (status == AN_OK) status = an_alloc(ctx, (void **)&job->hashes, job->layout->file_count, sizeof *job->hashes);
    if (status != AN_OK) return status;
    if (t->direct) {
        job->params = s->p.params;
        job->route = s->route;
    }
    s->bytes = t->direct ? an_save_window_bytes(job->layout, s->route->files, CHUNK_BYTES)
                         : an_save_image_bytes(job->layout, s->route->files);
    status = an_alloc(ctx, &s->memory, s->bytes, 1);
    job->ctx = ctx;
    job->folder = FOLDER;
    job->generation = t->generation;
    job->files = s->route->files;
    job->image = (char *)an_round_up((uintptr_t)s->memory, AN_SAVE_ALIGNMENT);
    an_checkpoint_name(job->place.name, AN_CHECKPOINT_FINISHED, t->step, t->generation, NULL);
    for (size_t i = job->files.begin; i < job->files.end && status == AN_OK && !t->direct; i++)
        memcpy(job->image + an_save_image_offset(job->layout, job->files, i), job->layout->files[i].header,
               job->layout->files[i].header_bytes);
    if (status != AN_OK || r->comm.rank > 0) return status;
    const an_manifest head = {.generation = t->generation, .bits = {.leaves = 1, .kernels = ""}};
    an_manifest_begin(&job->manifest, ctx, &head);
    job->first_part = an_save_layout_describe(job->layout, &job->manifest);
    return an_manifest_end(&job->manifest);
}

static void close_saving(saving *s, const one_rank *r) {
    if (r->comm.rank == 0) an_manifest_text_destroy(&s->job.manifest);
    an_release(r->ctx, &s->memory, s->bytes, 1);
    if (s->job.layout) an_release(r->ctx, (void **)&s->job.hashes, s->job.layout->file_count, sizeof *s->job.hashes);
    an_route_destroy(&s->route);
    an_save_layout_destroy(&s->job.layout);
    close_part(&s->p);
}

static an_status step_status(an_context *ctx, an_save_job *job) {
    return an_ranks_agree(ctx, an_note_raise(ctx, job->status, (an_note){job->note, sizeof job->note}));
}

static bool exists(const trial *t) {
    char name[AN_CHECKPOINT_NAME], path[AN_FILE_PATH];
    an_checkpoint_name(name, AN_CHECKPOINT_FINISHED, t->step, t->generation, NULL);
    snprintf(path, sizeof path, "%s/%s/%s", FOLDER, AN_CHECKPOINTS, name);
    return access(path, F_OK) == 0;
}

/* A file is in the way of the first part of the culprit. */
static void stand_in_the_way(const saving *s) {
    char name[AN_CHECKPOINT_NAME], path[AN_FILE_PATH];
    an_checkpoint_rename(name, AN_CHECKPOINT_UNFINISHED, s->job.place.name);
    snprintf(path, sizeof path, "%s/%s/%s/%s", FOLDER, AN_CHECKPOINTS, name,
             s->job.layout->files[s->job.files.begin].name);
    close(open(path, O_CREAT | O_WRONLY, 0666));
}

static an_status save(saving *s, one_rank *r, const trial *t) {
    an_context *ctx = r->ctx;
    an_save_job *job = &s->job;
    const bool first = r->comm.rank == 0;
    an_status status = t->direct ? AN_OK : an_save_copy(ctx, job->layout, s->p.params, s->route, job->image);
    if (status != AN_OK) return status;
    if (first) an_save_job_begin(job);
    status = step_status(ctx, job);
    if (status != AN_OK) return status;
    if (t->culprit == r->comm.rank) stand_in_the_way(s);
    an_save_job_write(job);
    status = step_status(ctx, job);
    if (first && exists(t)) snprintf(r->error, sizeof r->error, "the checkpoint is there before it is whole");
    if (status == AN_OK) status = an_save_share_hashes(ctx, job->layout, s->route, job->hashes);
    if (status != AN_OK) {
        if (first) an_save_job_drop(job);
        return status;
    }
    if (first) an_save_job_end(job);
    if (first && job->status == AN_OK && !job->safe) snprintf(r->error, sizeof r->error, "the checkpoint is not safe");
    return step_status(ctx, job);
}

static void save_body(one_rank *r) {
    trial *t = r->user;
    const int rank = r->comm.rank;
    saving s = {0};
    if (!rank_failed(r, "saving", open_saving(&s, r, t))) {
        t->statuses[rank] = save(&s, r, t);
        snprintf(t->messages[rank], AN_MESSAGE_BYTES, "%s", t->statuses[rank] == AN_OK ? "" : an_last_error(r->ctx));
    }
    close_saving(&s, r);
}

/* ---- loading ---- */

static void load_body(one_rank *r) {
    const trial *t = r->user;
    part p;
    char name[AN_CHECKPOINT_NAME], path[AN_FILE_PATH];
    an_manifest *manifest = NULL;
    an_checkpoint_name(name, AN_CHECKPOINT_FINISHED, t->step, t->generation, NULL);
    snprintf(path, sizeof path, "%s/%s/%s", FOLDER, AN_CHECKPOINTS, name);
    if (rank_failed(r, "part", open_part(&p, r->ctx, t->sharding, r->comm.ranks, r->comm.rank))) goto end;
    if (rank_failed(r, "manifest", an_manifest_read(&manifest, r->ctx, path))) goto end;
    if (rank_failed(r, "load",
                    an_checkpoint_load_ranks(r->ctx, p.params, p.graph, manifest, path, (int64_t)2 * CHUNK_BYTES)))
        goto end;
    const char *wrong = compare_part(&p);
    if (wrong) snprintf(r->error, sizeof r->error, "rank %d: %s: not as saved", r->comm.rank, wrong);
end:
    an_manifest_destroy(&manifest);
    close_part(&p);
}

static void run_all(void (*body)(one_rank *rank), trial *t, int ranks) {
    static one_rank all[MOST_RANKS];
    run_ranks(all, ranks, body, t, NULL);
    for (int i = 0; i < ranks; i++)
        if (*all[i].error) fail_msg("%d ranks, %lld writers: %s", ranks, (long long)t->writers, all[i].error);
}

/* ---- tests ---- */

static int64_t generation;

static int claim(void **state) {
    an_context *ctx;
    ledger memory = {0};
    (void)state;
    if (system("rm -rf " FOLDER)) return 1; /* NOLINT(cert-env33-c): the test's own folder */
    assert_int_equal(context_with_ledger(&ctx, &memory, 1), AN_OK);
    OK(ctx, an_launch_claim(ctx, FOLDER, &generation));
    an_context_destroy(&ctx);
    return 0;
}

static void test_any_number_writes_and_any_number_reads(void **state) {
    static const int counts[] = {1, 2, 3, 8};
    static const int64_t writers[] = {1, 2, 3, 8};
    int64_t step = 0;
    (void)state;
    for (size_t p = 0; p < 4; p++)
        for (size_t w = 0; w < 4; w++) {
            const size_t s = (p + w) % 4;
            trial t = {.sharding = shardings[s],
                       .writers = writers[w],
                       .step = ++step,
                       .generation = generation,
                       .culprit = NOBODY,
                       .direct = w % 2 == p / 2 % 2};
            run_all(save_body, &t, counts[p]);
            for (int i = 0; i < counts[p]; i++)
                if (t.statuses[i] != AN_OK) fail_msg("rank %d: %s", i, t.messages[i]);
            for (size_t k = 0; k < 4; k++) {
                t.sharding = shardings[(s + k) % 4];
                run_all(load_body, &t, counts[k]);
            }
        }
}

/* How many folders begin with this. */
static int count_folders(const char *begin) {
    int count = 0;
    const struct dirent *entry;
    DIR *folder = opendir(FOLDER "/" AN_CHECKPOINTS);
    assert_non_null(folder);
    while ((entry = readdir(folder))) count += !strncmp(entry->d_name, begin, strlen(begin));
    closedir(folder);
    return count;
}

static void test_a_part_that_cannot_be_written(void **state) {
    enum { RANKS = 3, BEFORE = 1000 };
    (void)state;
    trial good = {.sharding = AN_SHARD_FULL, .writers = 5, .step = BEFORE, .generation = generation, .culprit = NOBODY};
    run_all(save_body, &good, RANKS);
    assert_int_equal(good.statuses[0], AN_OK);
    const int finished = count_folders("step-");
    for (int i = 0; i < 2 * RANKS; i++) {
        trial t = good;
        t.step = BEFORE + 1;
        t.culprit = i / 2;
        t.direct = i % 2;
        run_all(save_body, &t, RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            assert_int_equal(t.statuses[rank], AN_ERR_FILE);
            assert_string_equal(t.messages[rank], t.messages[0]);
            assert_non_null(strstr(t.messages[rank], "cannot be opened"));
        }
        assert_int_equal(count_folders("step-"), finished);
        assert_int_equal(count_folders("unfinished-"), 0);
        run_all(load_body, &good, 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_writes_and_any_number_reads),
        cmocka_unit_test(test_a_part_that_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, claim, NULL);
}
