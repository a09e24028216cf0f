/* The executor: walks a flat array of instructions. The whole of a run is here, top to bottom. */
#include <string.h>

#include "base/guard.h"
#include "base/heartbeat.h"
#include "base/system/clock.h"
#include "exec/by_leaf.h"
#include "exec/program.h"
#include "exec/structs.h"
#include "pass/call.h"

/* Where in the graph the run is, for who watches it from outside. */
static an_heartbeat_phase phase_of(an_form form, const an_node *node) {
    if (form == AN_FORM_EVALUATE) return AN_HEARTBEAT_EVALUATE;
    if (form == AN_FORM_PREDICT) return AN_HEARTBEAT_PREDICT;
    return node->phase == AN_PHASE_BACKWARD ? AN_HEARTBEAT_BACKWARD : AN_HEARTBEAT_FORWARD;
}

static void say_end(const an_context *ctx, an_form form) {
    if (form == AN_FORM_EVALUATE)
        an_heartbeat_enter(ctx, AN_HEARTBEAT_EVALUATE, "evaluation, after its last node");
    else if (form == AN_FORM_PREDICT)
        an_heartbeat_enter(ctx, AN_HEARTBEAT_PREDICT, "prediction, after its last node");
    else
        an_heartbeat_enter(ctx, AN_HEARTBEAT_STEP, "step, after its last node");
}

/* Until the weights that it reads are here. */
static an_status wait_for_weights(const an_weight_exchange *x, const an_instruction *i) {
    an_status status = AN_OK;
    if (!x->is_open || !x->wait_unit) return AN_OK;
    for (int k = 0; k < 2 && status == AN_OK && i->units[k] != AN_NO_UNIT; k++)
        status = x->wait_unit(x->user, i->units[k]);
    return status;
}

static an_status launch(an_program *p, an_instruction *i, an_status failed) {
    if (p->profiles) i->begin = an_clock_seconds();
    const bool by_leaves = i->node->leaf_sum && p->leaves.count > 1;
    i->call.failed = failed;
    i->call.leaves = by_leaves ? &p->leaves : NULL;
    const an_status status = by_leaves && !i->node->kernel->by_leaves
                                 ? an_by_leaf_launch(p->device, i->node, p->add, &i->call)
                                 : p->device->launch(p->device, i->node->kernel, &i->call);
    if (p->profiles) {
        i->last = an_clock_seconds() - i->begin;
        i->seconds += i->last;
        i->runs++;
    }
    return status;
}

static an_status kernel_failed(an_program *p, const an_instruction *i, an_status status) {
    char message[AN_MESSAGE_BYTES / 2];
    strncpy(message, p->ctx->error.message, sizeof message - 1);
    message[sizeof message - 1] = 0;
    return AN_ERROR(p->ctx, status, "%s at '%s' (kernel %s): %s", i->node->op->name, i->node->path,
                    i->node->kernel->name, message);
}

/* After a failure only communication goes on, so that no other rank waits; the first error is what is reported. An
 * error takes 4 kB of the stack, which kernels must not find taken: so it is no part of its caller. */
static __attribute__((noinline)) void walk_communication(an_program *p, an_program_form *f, size_t from,
                                                         an_status status) {
    an_error first = p->ctx->error;
    for (size_t i = from; i < f->tables.instructions; i++)
        if (f->instructions[i].node->op->flags & AN_OP_COMMUNICATION) launch(p, &f->instructions[i], status);
    p->ctx->error = first;
}

static an_status run(an_program *p, an_form form) {
    an_context *ctx = p->ctx;
    an_program_form *f = &p->forms[form];
    for (size_t i = 0; i < f->tables.instructions; i++) {
        const an_node *node = f->instructions[i].node;
        an_heartbeat_say_place(ctx, phase_of(form, node), node->path, node->op->name);
        an_context_progress(ctx);
        an_status status = wait_for_weights(&p->exchange.weights, &f->instructions[i]);
        if (status == AN_OK) status = launch(p, &f->instructions[i], AN_OK);
        if (status != AN_OK) status = kernel_failed(p, &f->instructions[i], status);
        if (status == AN_OK && p->hook) { /* the hook is the caller's code: it sees the caller's environment */
            an_status asked;
            AN_HOST(asked = p->hook(p->hook_user, (int64_t)i));
            if (asked != AN_OK)
                status = AN_ERROR(ctx, AN_ERR_HOOK, "the hook stopped the program after instruction %zu (%s at '%s')",
                                  i, f->instructions[i].node->op->name, f->instructions[i].node->path);
        }
        if (status == AN_OK) continue;
        walk_communication(p, f, i + 1, status);
        return status;
    }
    return p->device->synchronize(p->device, ctx);
}

/* A rank whose first step has no samples, or fails before its first micro-batch, has bound no sizes yet. Communication
 * depends on none, but binding also copies attributes and finds what gathered weights come to. */
void an_program_communicate(an_program *p, an_form form, an_status status) {
    an_program_form *f = &p->forms[form];
    for (size_t i = 0; !f->is_bound && i < f->tables.instructions; i++) {
        const an_instruction *instruction = &f->instructions[i];
        if (instruction->node->op->flags & AN_OP_COMMUNICATION) (void)an_program_bind_instruction(p, f, instruction);
    }
    walk_communication(p, f, 0, status);
}

/* What a run needs: gradients, sizes and copies of low precision. Where ranks divide gradients and a stepper adds them,
 * only its buffers have room for all: the parameters have this rank's pieces. */
static an_status prepare(an_program *p, an_form form) {
    an_context *ctx = p->ctx;
    const bool has_room = p->gradients || !p->plan->accumulates || !p->params->pieces.shards;
    if (an_form_trains(form) && !has_room)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "ranks divide the gradients of this program, and only a step adds them: call an_step_begin and "
                        "an_step_micro_batch, or an_trainer_step, instead of an_program_run");
    if (p->forms[AN_FORM_TRAIN_FIRST].graph) AN_TRY_RETURN(an_program_find_gradients(p));
    if (!p->forms[form].is_bound) AN_TRY_RETURN(an_program_bind_form(p, form));
    return an_params_refresh(p->params);
}

an_status an_program_run(an_program *program, an_form form) {
    AN_GUARD;
    AN_NEED(program);
    an_context *ctx = program->ctx;
    AN_TRY_RETURN(an_context_check_threads(ctx));
    if ((unsigned)form >= AN_FORMS || !program->forms[form].graph)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the plan does not have this form: add it to an_plan_options.programs");
    program->has_run = false;
    an_status status = prepare(program, form);
    if (status == AN_OK)
        status = run(program, form);
    else /* other ranks run it, and wait for what this one has */
        an_program_communicate(program, form, status);
    say_end(ctx, form);
    program->last = form;
    program->has_run = status == AN_OK;
    return status;
}

/* ---- profile ---- */

void an_program_profile(an_program *program, bool on) {
    AN_NEED_OR(, program);
    program->profiles = on;
}

int64_t an_program_profile_count(const an_program *program, an_form form) {
    AN_NEED_OR(0, program);
    return (unsigned)form < AN_FORMS ? (int64_t)program->forms[form].tables.instructions : 0;
}

an_status an_program_profile_entry(const an_program *program, an_form form, int64_t index, an_profile_entry *entry) {
    AN_GUARD;
    AN_NEED(program, entry);
    an_context *ctx = program->ctx;
    AN_TRY_RETURN(an_profile_entry_check(ctx, entry));
    if (index < 0 || index >= an_program_profile_count(program, form))
        return AN_ERROR(program->ctx, AN_ERR_ARGUMENT, "instruction %lld does not exist", (long long)index);
    const an_instruction *first = program->forms[form].instructions, *i = &first[index];
    an_cost cost = an_node_cost(&program->forms[form].sized, i->node);
    const an_profile_entry own = {.op = i->node->op->name,
                                  .kernel = i->node->kernel->name,
                                  .path = i->node->path,
                                  .dtype = i->call.src_count > 0   ? i->call.src[0].dtype
                                           : i->call.dst_count > 0 ? i->call.dst[0].dtype
                                                                   : AN_DTYPE_NONE,
                                  .backward = i->node->phase == AN_PHASE_BACKWARD,
                                  .runs = i->runs,
                                  .seconds = i->seconds,
                                  .begin = i->begin - first->begin,
                                  .began = i->begin,
                                  .last = i->last,
                                  .flops = cost.flops,
                                  .bytes = cost.bytes};
    return an_profile_entry_write(ctx, entry, &own);
}
