/* Scaling between physical units and the numbers that layers see, with existing ops and run states. */
#include "models/normalize.h"

#include "ir/graph.h"
#include "ops/layers.h"

const char *const an_normalize_names[AN_NORMALIZED_ENDS][AN_NORMALIZE_STATES] = {
    {"normalize.input.mean", "normalize.input.scale", "normalize.input.least", "normalize.input.most"},
    {"normalize.target.mean", "normalize.target.scale", "normalize.target.least", "normalize.target.most"},
};

enum { IMAGE_DIMS = 4, CHANNELS = 1 };

static void add_states(an_graph *g, int end, an_value like, an_value states[AN_NORMALIZE_STATES]) {
    const an_result *r = an_graph_result(g, like);
    an_dim dims[AN_MAX_DIMS];
    for (int d = 1; r && d < r->ndims; d++) dims[d - 1] = r->ndims == IMAGE_DIMS && d != CHANNELS ? 1 : r->dims[d];
    for (int s = 0; s < AN_NORMALIZE_STATES; s++)
        states[s] = r ? an_run_state(g, an_normalize_names[end][s], r->dtype, 0, r->ndims - 1, dims) : AN_NONE;
}

/* The difference is an addition, as autocast leaves sums in f32: of numbers of 1e6, x - mean has too few digits in
 * bf16 and no room in f16. What is divided is rounded once. */
static an_value normalize(an_graph *g, an_value x, const an_value states[AN_NORMALIZE_STATES]) {
    an_value difference = an_add(g, x, an_scale(g, states[AN_NORMALIZE_MEAN], -1));
    return an_divide(g, difference, states[AN_NORMALIZE_SCALE]);
}

an_value an_model_normalize(an_graph *g, an_value x) {
    an_value states[AN_NORMALIZE_STATES];
    add_states(g, AN_NORMALIZED_INPUT, x, states);
    return normalize(g, x, states);
}

void an_model_end_squared(an_graph *g, an_value y, an_value targets, bool normalizes) {
    an_value compared = targets, physical = y;
    if (normalizes) {
        an_value states[AN_NORMALIZE_STATES];
        add_states(g, AN_NORMALIZED_TARGET, targets, states);
        compared = normalize(g, targets, states);
        an_value scaled = an_multiply(g, y, states[AN_NORMALIZE_SCALE]);
        physical = an_add(g, scaled, states[AN_NORMALIZE_MEAN]);
    }
    an_graph_set_output(g, physical, "y");
    an_graph_set_loss(g, an_squared_error(g, y, compared), targets);
}
