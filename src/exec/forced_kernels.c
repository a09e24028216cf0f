/* Lists the kernels of a plan that differ from the choice of the host. Other kernels give other bits, so a run
 * stores them. */
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "exec/plan.h"

typedef struct {
    const char *op, *kernel;
} choice;

static int compare(const void *a, const void *b) {
    const choice *x = a, *y = b;
    const int order = strcmp(x->op, y->op);
    return order ? order : strcmp(x->kernel, y->kernel);
}

static bool has(const choice *found, size_t count, const choice *wanted) {
    for (size_t i = 0; i < count; i++)
        if (!compare(&found[i], wanted)) return true;
    return false;
}

/* O(nodes × different choices), of which there are few. The other forms have no part in the weights, and a
 * run may have them or not. */
an_status an_plan_forced_kernels(const an_plan *p, char **text) {
    an_context *ctx = p->ctx;
    an_status status;
    choice *found = NULL;
    size_t count = 0, capacity = 0;
    an_text made;
    *text = NULL;
    an_text_init(&made, ctx);
    for (int form = AN_FORM_TRAIN_FIRST; form <= AN_FORM_TRAIN_NEXT; form++)
        for (const an_node *n = p->forms[form] ? p->forms[form]->first : NULL; n; n = n->next) {
            const choice c = {n->op->name, n->is_forced ? n->kernel->name : NULL};
            if (!n->is_forced || has(found, count, &c)) continue;
            AN_TRY(an_grow(ctx, (void **)&found, &capacity, count + 1, sizeof *found));
            found[count++] = c;
        }
    if (count) qsort(found, count, sizeof *found, compare);
    const bool is_host = ctx->device == &an_device_host;
    if (!is_host) an_text_add(&made, "device=%s", ctx->device->name); /* all of its kernels are others */
    for (size_t i = 0; i < count; i++)
        an_text_add(&made, "%s%s=%s", i || !is_host ? "," : "", found[i].op, found[i].kernel);
    AN_TRY(made.status);
    if (count || !is_host) AN_TRY(an_text_take(&made, text));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&found, capacity, sizeof *found);
    an_text_destroy(&made);
    return status;
}
