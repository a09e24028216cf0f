/* Norms of the gradients of parts of a model: of blocks, or of each parameter. */
#include <string.h>

#include "base/guard.h"
#include "train/trainer.h"

/* Parameters of one block belong together; outside of blocks, those of one layer do. */
static const char *name_of(const an_graph *g, const an_parameter *p, an_norms norms) {
    const int block = an_graph_block_of(g, p->node->block);
    if (norms == AN_NORMS_PARAMETER) return p->name;
    if (block > 0) return g->blocks[block].path;
    return *p->node->path ? p->node->path : p->name;
}

an_status an_norms_make(an_trainer *t, an_norms norms) {
    an_context *ctx = t->ctx;
    const an_graph *g = t->graph;
    an_norm_parts *parts = &t->norms;
    if ((unsigned)norms > AN_NORMS_PARAMETER)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "norms is %d, which is not a value of an_norms", (int)norms);
    if (norms == AN_NORMS_GLOBAL) return AN_OK;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&parts->names, g->parameter_count, sizeof *parts->names));
    parts->parameter_count = g->parameter_count;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&parts->part_of, g->parameter_count, sizeof *parts->part_of));
    for (size_t i = 0; i < g->parameter_count; i++) {
        const an_parameter *p = &g->parameters[i];
        parts->part_of[i] = -1;
        if (p->node->outputs[0].storage != AN_STORAGE_MASTER) continue;
        const char *name = name_of(g, p, norms);
        int part = norms == AN_NORMS_PARAMETER ? -1 : parts->count - 1; /* names of parameters are different */
        while (part >= 0 && strcmp(parts->names[part], name) != 0) part--;
        if (part < 0) parts->names[part = parts->count++] = name;
        parts->part_of[i] = part;
    }
    return AN_OK;
}

void an_norms_destroy(an_trainer *t) {
    an_context *ctx = t->ctx;
    an_norm_parts *parts = &t->norms;
    an_release(ctx, (void **)&parts->part_of, parts->parameter_count, sizeof *parts->part_of);
    an_release(ctx, (void **)&parts->names, parts->parameter_count, sizeof *parts->names);
}

int an_trainer_norm_count(const an_trainer *trainer) {
    AN_NEED_OR(0, trainer);
    return trainer->norms.count;
}

an_status an_trainer_norm(const an_trainer *trainer, int index, const char **name, double *norm) {
    AN_GUARD;
    AN_NEED(trainer, name, norm);
    const an_norm_parts *parts = &trainer->norms;
    an_context *ctx = trainer->ctx;
    double sum = 0;
    if (index < 0 || index >= parts->count)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "norm %d does not exist; there are %d", index, parts->count);
    if (trainer->next == 0) return AN_ERROR(ctx, AN_ERR_STATE, "norms are available only after the first step");
    for (size_t i = 0; i < parts->parameter_count; i++)
        if (parts->part_of[i] == index) sum += an_optimizer_squares(trainer->optimizer, i);
    *name = parts->names[index];
    *norm = __builtin_sqrt(sum);
    return AN_OK;
}
