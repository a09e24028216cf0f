/* The graph of a form as a picture, after all passes. */
#include "ir/dot.h"

#include "base/guard.h"
#include "exec/plan.h"

an_status an_plan_dot(const an_plan *plan, an_form form, char **text) {
    AN_GUARD;
    AN_NEED(plan, text);
    an_status status;
    an_context *ctx = plan->ctx;
    const an_graph *g = (unsigned)form < AN_FORMS ? plan->forms[form] : NULL;
    an_text t;
    *text = NULL;
    an_text_init(&t, ctx);
    AN_CHECK(ctx, g, AN_ERR_ARGUMENT, "the plan does not have this form: add it to an_plan_options.programs");
    an_graph_draw(g, &t);
    AN_TRY(an_text_take(&t, text));
fail:
    an_text_destroy(&t);
    return status;
}
