#include "train/nonfinite.h"

#include <string.h>

#include "base/float16.h"
#include "base/integer.h"
#include "base/q8_0.h"
#include "base/text/text.h"
#include "exec/array.h"

/* ---- looking at numbers ---- */

static bool is_finite(an_dtype dtype, const char *at) {
    enum { BF16_EXPONENT = 0x7f80, F16_EXPONENT = 0x7c00 };
    uint16_t low;
    float f32;
    double f64;
    switch (dtype) {
    case AN_DTYPE_F32: memcpy(&f32, at, sizeof f32); return __builtin_isfinite(f32);
    case AN_DTYPE_F64: memcpy(&f64, at, sizeof f64); return __builtin_isfinite(f64);
    case AN_DTYPE_BF16: memcpy(&low, at, sizeof low); return (low & BF16_EXPONENT) != BF16_EXPONENT;
    case AN_DTYPE_F16: memcpy(&low, at, sizeof low); return (low & F16_EXPONENT) != F16_EXPONENT;
    default: return true;
    }
}

/* The first element that is not finite; -1: all are. */
static int64_t find_element(an_dtype dtype, const void *values, int64_t count) {
    const size_t size = an_dtype_size(dtype);
    if (dtype == AN_DTYPE_Q8_0) /* a block is finite if its scale is */
        for (int64_t i = 0; i < count; i += AN_Q8_0_ELEMENTS)
            if (!is_finite(AN_DTYPE_F16, (const char *)an_q8_0_block(values, i))) return i;
    for (int64_t i = 0; i < count; i++)
        if (!is_finite(dtype, (const char *)values + (size_t)i * size)) return i;
    return -1;
}

typedef struct {
    an_trainer *trainer;
    const an_batch *samples;
    int64_t first, count; /* the micro-batch that runs */
    void *staging;
    size_t staging_bytes;
    an_status status;           /* of the search itself */
    int64_t instruction;        /* -1: not found */
    const an_stored *weight;    /* NULL: not a weight */
    const an_feed_input *input; /* NULL: not an input */
    int64_t element, leaf;      /* leaf -1: in none */
} search;

/* Room for one value on the host; grows with the largest. */
static an_status make_room(search *s, size_t bytes) {
    an_context *ctx = s->trainer->ctx;
    if (s->staging && bytes <= s->staging_bytes) return AN_OK;
    an_release(ctx, &s->staging, s->staging_bytes, 1);
    s->staging_bytes = 0;
    AN_TRY_RETURN(an_alloc_raw(ctx, &s->staging, bytes));
    s->staging_bytes = bytes;
    return AN_OK;
}

/* ---- weights, inputs, nodes ---- */

static an_status look_at_weights(search *s) {
    an_context *ctx = s->trainer->ctx;
    const an_params *p = s->trainer->params;
    for (size_t i = 0; i < p->entry_count && !s->weight; i++) {
        const an_stored *e = &p->entries[i];
        const char *from = (const char *)an_params_base(p, e->storage) + e->offset;
        for (int64_t first, end = 0; !s->weight && an_params_next(p, e, AN_FLAT_MASTERS, end, &first, &end);) {
            const size_t bytes = (size_t)an_dtype_bytes(e->dtype, end - first);
            AN_TRY_RETURN(make_room(s, bytes));
            AN_TRY_RETURN(p->device->copy(p->device, ctx, s->staging, from + an_dtype_bytes(e->dtype, first), bytes,
                                          AN_COPY_FROM_DEVICE));
            AN_TRY_RETURN(p->device->synchronize(p->device, ctx));
            const int64_t found = find_element(e->dtype, s->staging, end - first);
            s->element = found < 0 ? found : first + found;
            if (found >= 0) s->weight = e;
        }
    }
    return AN_OK;
}

static void look_at_inputs(search *s) {
    const an_feed *feed = &s->trainer->samples.feed;
    for (int i = 0; i < feed->count && !s->input; i++) {
        const an_feed_input *input = &feed->inputs[i];
        const int64_t elements = (int64_t)(input->bytes / an_dtype_size(input->dtype)) * s->samples->part.n;
        s->element = find_element(input->dtype, s->samples->fields[input->field], elements);
        if (s->element < 0) continue;
        s->input = input;
        const int64_t sample = s->element / (int64_t)(input->bytes / an_dtype_size(input->dtype));
        an_leaf_samples l = {.index = -1};
        while (an_leaf_set_next(&s->trainer->samples.batches, &s->trainer->cut.leaves, &s->samples->part, &l) &&
               sample >= l.at + l.count) {
        }
        s->leaf = l.leaf;
    }
}

/* After an instruction of a run: stops it at the first output that is not finite. */
static an_status look_at_outputs(void *user, int64_t index) {
    search *s = user;
    an_program *program = s->trainer->program;
    const an_instruction *i = &program->forms[AN_FORM_TRAIN_FIRST].instructions[index];
    for (int k = 0; k < i->call.dst_count; k++) {
        const an_tensor *t = &i->call.dst[k];
        an_array array = {0};
        int64_t elements = 1;
        if (!t->data || !an_dtype_is_float(t->dtype)) continue;
        for (int d = 0; d < t->ndims; d++) elements *= array.dims[d] = t->dims[d];
        s->status = make_room(s, (size_t)elements * an_dtype_size(t->dtype));
        array.data = s->staging;
        array.dtype = t->dtype;
        array.ndims = t->ndims;
        if (s->status == AN_OK) s->status = an_tensor_copy_out(program->ctx, program->device, &array, t);
        if (s->status == AN_OK) s->element = find_element(t->dtype, s->staging, elements);
        if (s->status == AN_OK && s->element < 0) continue;
        if (s->status == AN_OK) s->instruction = index;
        return AN_ERR_HOOK;
    }
    return AN_OK;
}

/* The micro-batches of a leaf, until one has it. */
static an_status look_at_leaf(search *s, const an_leaf_samples *l) {
    an_trainer *t = s->trainer;
    const int64_t end = l->at + l->count;
    for (int64_t at = l->at; at < end; at += t->samples.batches.micro) {
        s->leaf = l->leaf;
        s->first = at;
        s->count = end - at < t->samples.batches.micro ? end - at : t->samples.batches.micro;
        AN_TRY_RETURN(an_trainer_feed(t, s->samples, at, s->count));
        an_program_set_hook(t->program, look_at_outputs, s);
        const an_status status = an_program_run(t->program, AN_FORM_TRAIN_FIRST);
        an_program_set_hook(t->program, NULL, NULL);
        if (s->status != AN_OK || s->instruction >= 0) return s->status; /* s->leaf has it */
        if (status != AN_OK) return status;
    }
    return AN_OK;
}

static an_status look_at_nodes(search *s) {
    an_trainer *t = s->trainer;
    for (an_leaf_samples l = {.index = -1};
         an_leaf_set_next(&t->samples.batches, &t->cut.leaves, &s->samples->part, &l);) {
        AN_TRY_RETURN(look_at_leaf(s, &l));
        if (s->instruction >= 0) return AN_OK;
    }
    s->leaf = -1;
    return AN_OK;
}

/* The same where ranks gather weights together: all of them take part in all rounds, and one that has found it, or
 * has nothing to run, runs only what the program exchanges. */
static an_status look_at_rounds(search *s) {
    an_trainer *t = s->trainer;
    an_leaf_samples l = {.index = -1};
    an_status status = AN_OK;
    bool found = s->weight || s->input;
    const int64_t leaf = s->leaf;
    AN_TRY_RETURN(an_step_begin_reading(t->stepper));
    for (int64_t i = 0; i < t->stepper->rounds.count; i++) {
        const bool has_leaf = an_leaf_set_next(&t->samples.batches, &t->cut.leaves, &s->samples->part, &l);
        if (has_leaf && l.count > 0 && status == AN_OK && !found)
            status = look_at_leaf(s, &l);
        else
            an_program_communicate(t->program, AN_FORM_TRAIN_FIRST, status);
        found = found || s->instruction >= 0;
    }
    const an_status ended = an_step_end_reading(t->stepper);
    if (s->instruction < 0) s->leaf = leaf;
    return status == AN_OK ? ended : status;
}

/* ---- telling ---- */

enum { MOST_NAMED = 16 };

static void tell_samples(an_text *text, const int64_t *indices, int64_t count) {
    for (int64_t i = 0; i < count && i < MOST_NAMED; i++)
        an_text_add(text, "%s%lld", i ? ", " : "", (long long)indices[i]);
    if (count > MOST_NAMED) an_text_add(text, " and %lld more", (long long)(count - MOST_NAMED));
}

static void tell_place(an_text *text, const search *s) {
    if (s->weight) {
        an_text_add(
            text,
            "the first value that is not finite is a weight: '%s', element %lld. It was not finite before this step",
            s->weight->name, (long long)s->element);
    } else if (s->input) {
        const int64_t each = (int64_t)(s->input->bytes / an_dtype_size(s->input->dtype));
        an_text_add(text, "the first value that is not finite is in the data: input '%s' of sample %lld, element %lld",
                    s->input->name, (long long)s->samples->indices[s->element / each], (long long)(s->element % each));
    } else if (s->instruction >= 0) {
        const an_node *n = s->trainer->program->forms[AN_FORM_TRAIN_FIRST].instructions[s->instruction].node;
        an_text_add(
            text,
            "the first node whose output is not finite is %s at '%s'%s, element %lld; its micro-batch has sample%s ",
            n->op->name, n->path, n->phase == AN_PHASE_BACKWARD ? " (backward)" : "", (long long)s->element,
            s->count == 1 ? "" : "s");
        tell_samples(text, s->samples->indices + s->first, s->count);
    } else {
        an_text_add(text, "every value of every micro-batch is finite, but their sum over the step is not");
    }
}

static void tell_history(an_text *text, const an_trainer *t) {
    const int64_t count = t->record.history_count < AN_HISTORY ? t->record.history_count : AN_HISTORY;
    if (count) an_text_add(text, "\nthe steps before it (step: loss, gradient norm, learning rate):");
    for (int64_t i = t->record.history_count - count; i < t->record.history_count; i++) {
        const an_step_metrics *m = &t->record.history[i % AN_HISTORY];
        an_text_add(text, "\n  %lld: %.6g, %.6g, %.6g", (long long)m->step, m->loss, m->norm, m->rate);
    }
}

/* What this rank finds in its own leaves, in *leaf the one that it is in. */
static an_status explain(an_trainer *t, const an_batch *samples, const char *reason, int64_t *leaf) {
    an_status status;
    an_context *ctx = t->ctx;
    an_text text;
    search s = {.trainer = t, .samples = samples, .instruction = -1, .element = -1, .leaf = -1};
    const double loss = t->stepper->loss / (double)t->stepper->divisor, norm = t->stepper->norm;
    an_text_init(&text, ctx);
    AN_TRY(look_at_weights(&s));
    if (!s.weight) look_at_inputs(&s);
    if (an_trainer_gathers(t))
        AN_TRY(look_at_rounds(&s));
    else if (!s.weight && !s.input)
        AN_TRY(look_at_nodes(&s));
    char numbers[2][32]; /* without the sign that a NaN may have */
    an_text_number(numbers[0], sizeof numbers[0], loss);
    an_text_number(numbers[1], sizeof numbers[1], norm);
    an_text_add(&text, "step %lld: %sthe loss is %s and the gradient norm is %s; nothing was updated; ",
                (long long)t->next + 1, reason, numbers[0], numbers[1]);
    tell_place(&text, &s);
    tell_history(&text, t);
    AN_TRY(text.status);
    *leaf = s.leaf;
    status = AN_ERROR(ctx, AN_ERR_NONFINITE, "%s", text.bytes);
fail:
    an_text_destroy(&text);
    an_release(ctx, &s.staging, s.staging_bytes, 1);
    return status;
}

an_status an_nonfinite_explain(an_trainer *t, const an_batch *samples, const char *reason) {
    an_agreement records[2];
    int64_t leaf = -1;
    const an_status status = explain(t, samples, reason, &leaf);
    if (t->ranks == 1) return status;
    an_agreement_begin(&records[0], t->ctx, AN_AGREE_NONFINITE, t->next + 1, status);
    records[0].leaf = leaf;
    return an_agree(t->ctx, &records[0], 0, &records[1]);
}
