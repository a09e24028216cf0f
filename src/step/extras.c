#include "step/extras.h"

#include "base/device.h"
#include "base/integer.h"
#include "ops/ops.h"
#include "pass/shard.h"

typedef struct {
    an_tensor src[2];
    an_call call;
} sum_call;

/* dst ← dst + from, of as many pages. */
static void make_sum(const an_extras *e, const an_page_range *dst, int64_t from, sum_call *c) {
    const an_params *p = e->program->params;
    const an_page_range extra = {from, from + dst->end - dst->begin};
    c->src[0] = an_flat_tensor(p->gradients, p->sizes.trainable_dtype, dst);
    c->src[1] = an_flat_tensor(p->gradients, p->sizes.trainable_dtype, &extra);
    c->call = (an_call){.ctx = p->ctx, .src_count = 2, .dst_count = 1, .src = c->src, .dst = c->src};
}

an_status an_extras_make(an_extras *e, an_program *program) {
    const an_flat_sizes *sizes = &program->plan->sizes;
    sum_call sum;
    *e = (an_extras){.program = program};
    if (sizes->gradient_elements == sizes->trainable_elements) return AN_OK;
    make_sum(e, &(an_page_range){0, 1}, 1, &sum);
    return an_device_kernel(program->ctx, an_op_add.name, &sum.call, &e->add);
}

/* In one of this rank's pieces. */
static an_status add_in(const an_extras *e, const an_parameter *p, const an_page_range *piece) {
    const an_device *device = e->program->device;
    const an_page_range all = an_parameter_pages(p);
    const an_page_range dst = {an_larger(all.begin, piece->begin), an_smaller(all.end, piece->end)};
    for (int k = 0; k < p->extras && dst.begin < dst.end; k++) {
        sum_call sum;
        make_sum(e, &dst, (p->extra + k * an_parameter_padded(p)) / AN_PAGE + dst.begin - all.begin, &sum);
        AN_TRY_RETURN(device->launch(device, e->add, &sum.call));
    }
    return AN_OK;
}

an_status an_extras_add(const an_extras *e) {
    const an_params *params = e->program->params;
    const an_graph *model = e->program->plan->model;
    for (size_t i = 0; e->add && i < model->parameter_count; i++)
        for (int k = 0; model->parameters[i].extras && k < an_params_piece_count(params); k++) {
            const an_page_range piece = an_params_piece(params, k);
            AN_TRY_RETURN(add_in(e, &model->parameters[i], &piece));
        }
    return AN_OK;
}
