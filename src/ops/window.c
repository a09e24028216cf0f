#include "ops/window.h"

#include <inttypes.h>

/* Larger numbers are mistakes, and sums and products of two of these fit. */
enum { LARGEST = INT32_MAX };

an_int_list an_window_pair(const int64_t *values, const int64_t *standard) {
    an_int_list pair = {.count = 2};
    for (int i = 0; i < 2; i++) pair.values[i] = values[i] == 0 && standard ? standard[i] : values[i];
    return pair;
}

an_status an_expect_pair(an_graph *g, const an_node *node, const char *name, const an_int_list *pair, int64_t minimum) {
    if (pair->count != 2)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "%s has %d numbers, but needs two, for height and width", name,
                               pair->count);
    for (int i = 0; i < 2; i++)
        if (pair->values[i] < minimum || pair->values[i] > LARGEST)
            return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                                   "%s is (%" PRId64 ", %" PRId64 "); both numbers must be from %" PRId64 " to %d",
                                   name, pair->values[0], pair->values[1], minimum, LARGEST);
    return AN_OK;
}

an_status an_window_dims(an_graph *g, const an_node *node, const an_dim *image, const int64_t *window,
                         const an_int_list *stride, const an_int_list *padding, an_dim *dims) {
    for (int i = 0; i < 2; i++) {
        an_dim padded = an_graph_add_dims(g, image[i], 2 * padding->values[i]);
        if (g->status != AN_OK) return g->status;
        if (padded >= 0 && padded < window[i])
            return an_node_mistake(g, node, AN_ERR_SHAPE,
                                   "a window of %s %" PRId64 " does not fit into an image of %" PRId64
                                   " with a padding of %" PRId64 " on both sides",
                                   i == 0 ? "height" : "width", window[i], image[i], padding->values[i]);
        dims[i] = an_dim_window(g, padded, window[i], stride->values[i]);
    }
    return g->status;
}
