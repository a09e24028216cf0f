#include "run/save_phases.h"

#include <stdio.h>

#include "base/heartbeat.h"
#include "base/span.h"
#include "base/system/thread.h"
#include "step/agree.h"

enum { OVER, WHOLE, STAGE_BEGIN, STAGE_WRITE, STAGE_END, STAGE_DROP, BEGIN, WRITE, END, DROP };

/* That the fast folder fails is a pity and no more: the checkpoint still gets to where it belongs. */
static const struct {
    void (*run)(an_save_job *job);
    bool all;     /* every rank does it, with files of its own; else rank 0 */
    bool staging; /* in the fast folder */
    int next, otherwise;
} table[] = {
    [WHOLE] = {an_save_job_run, .next = OVER, .otherwise = OVER},
    [STAGE_BEGIN] = {an_save_job_begin, .staging = true, .next = STAGE_WRITE, .otherwise = BEGIN},
    [STAGE_WRITE] = {an_save_job_write, .all = true, .staging = true, .next = STAGE_END, .otherwise = STAGE_DROP},
    [STAGE_END] = {an_save_job_end, .staging = true, .next = BEGIN, .otherwise = BEGIN},
    [STAGE_DROP] = {an_save_job_drop, .staging = true, .next = BEGIN, .otherwise = BEGIN},
    [BEGIN] = {an_save_job_begin, .next = WRITE, .otherwise = OVER},
    [WRITE] = {an_save_job_write, .all = true, .next = END, .otherwise = DROP},
    [END] = {an_save_job_end, .next = OVER, .otherwise = OVER},
    [DROP] = {an_save_job_drop, .next = OVER, .otherwise = OVER},
};

an_status an_save_agree(an_trainer *t, an_status status) {
    an_agreement records[2];
    if (t->ranks == 1) return status;
    an_agreement_begin(&records[0], t->ctx, AN_AGREE_SAVE, t->next, status);
    return an_agree(t->ctx, &records[0], 0, &records[1]);
}

static bool takes_part(const an_save_phases *p) {
    return table[p->phase].all || p->trainer->rank == 0;
}

static void *run(void *user) {
    const an_save_phases *p = user;
    table[p->phase].run(p->job);
    return NULL;
}

/* A system that gives no thread gets its checkpoint at once, and so does a run without a copy of its state. */
static void begin(an_save_phases *p, int phase) {
    an_save_job *job = p->job;
    p->phase = phase;
    if (phase == OVER) return;
    job->staging = table[phase].staging;
    job->status = AN_OK;
    atomic_store(&job->done, !takes_part(p));
    if (!takes_part(p)) return;
    p->is_running = !job->params && an_thread_start(&p->thread, run, p) == 0;
    if (!p->is_running) run(p);
}

int64_t an_save_phases_count(const an_save_phases *p) {
    return p->ended + (p->phase != OVER && atomic_load(&p->job->done));
}

void an_save_phases_leave(an_save_phases *p) {
    if (p->is_running && !an_context_is_forked(p->trainer->ctx)) {
        const double begin = an_span_begin(p->trainer->ctx);
        an_heartbeat_enter(p->trainer->ctx, AN_HEARTBEAT_SAVE, "save: waits until it is durable");
        pthread_join(p->thread, NULL);
        an_span_end(p->trainer->ctx, "wait for the save", p->job->place.step, begin);
    }
    p->is_running = false;
}

/* What failed after the checkpoint was durable is a warning, unless the run is no longer this launch's. */
static an_status status_here(const an_save_phases *p) {
    const an_save_job *job = p->job;
    if (job->safe && job->status != AN_ERR_TAKEN_OVER) return AN_OK;
    return an_note_raise(p->trainer->ctx, job->status, (an_note){p->job->note, sizeof p->job->note});
}

bool an_save_phases_next(an_save_phases *p) {
    an_context *ctx = p->trainer->ctx;
    const int phase = p->phase;
    an_save_phases_leave(p);
    an_status status = an_save_agree(p->trainer, status_here(p));
    if (status == AN_OK && table[phase].all)
        status = an_save_share_hashes(ctx, p->job->layout, p->route, p->job->hashes);
    p->ended++;
    if (status != AN_OK && p->status == AN_OK && !table[phase].staging) {
        p->status = status;
        snprintf(p->message, sizeof p->message, "%s", ctx->error.message);
    }
    begin(p, status == AN_OK ? table[phase].next : table[phase].otherwise);
    return p->phase == OVER;
}

/* The last phase is left to whoever asks how the save has ended. */
static bool needs_state(int phase) {
    return phase >= STAGE_BEGIN && phase <= WRITE;
}

void an_save_phases_start(an_save_phases *p) {
    p->status = AN_OK;
    begin(p, p->trainer->ranks == 1 ? WHOLE : p->job->stage ? STAGE_BEGIN : BEGIN);
    while (p->job->params && needs_state(p->phase)) an_save_phases_next(p);
}
