/* A column of categories is one number for each of its names, 1 for the cell's own and 0 for all others. The product of
 * such a row with a table is a row of the table, so existing ops and their gradients do it, and a cell that is none
 * of the names is a row of zeros. */
#include "models/embed.h"

#include <stdio.h>

#include "ir/graph.h"
#include "models/model.h"
#include "models/structs.h"

an_status an_model_check_embedded(an_context *ctx, const char *model, const an_embedded_column *columns, int count,
                                  int64_t inputs) {
    int64_t next = 0;
    if (count < 0 || count > AN_MOST_EMBEDDED || (count > 0 && !columns))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: embedded_count is %d; 0 to %d are possible, with their columns",
                        model, count, AN_MOST_EMBEDDED);
    for (int i = 0; i < count; i++) {
        an_embedded_column c;
        AN_TRY_RETURN(an_embedded_column_read_at(ctx, &c, columns, i));
        const an_model_size sizes[] = {{"the categories of an embedded column", c.count},
                                       {"the width of an embedded column", c.width}};
        AN_TRY_RETURN(an_model_check_sizes(ctx, model, sizes, 2));
        if (c.begin < next || c.begin > inputs || c.count > inputs - c.begin)
            return AN_ERROR(
                ctx, AN_ERR_ARGUMENT,
                "%s: embedded column %d is inputs %lld to %lld of %lld; columns are in the order of the inputs, "
                "and do not overlap",
                model, i, (long long)c.begin, (long long)(c.begin + c.count - 1), (long long)inputs);
        next = c.begin + c.count;
    }
    return AN_OK;
}

static an_value read_table(an_graph *g, an_value x, const an_embedded_column *c, int index) {
    char name[16];
    snprintf(name, sizeof name, "%d", index);
    an_scope_begin(g, name);
    an_value table = an_param(g, "weight", an_value_dtype(g, x), AN_INITIALIZER_NORMAL, 1,
                              AN_DIMS((an_dim)c->count, (an_dim)c->width));
    an_scope_end(g);
    return an_matmul(g, an_slice(g, x, 1, c->begin, c->begin + c->count), table, false, false);
}

an_value an_model_embed(an_graph *g, an_value x, an_value numbers, const an_embedded_column *columns, int count) {
    an_value parts[2 * AN_MOST_EMBEDDED + 1];
    int used = 0;
    int64_t next = 0;
    const int64_t inputs = an_value_dim(g, x, 1);
    an_scope_begin(g, "embedding");
    for (int i = 0; i < count && g->status == AN_OK; i++) {
        an_embedded_column c;
        if (an_embedded_column_read_at(g->ctx, &c, columns, i) != AN_OK) break; /* it was read before */
        if (c.begin > next) parts[used++] = an_slice(g, numbers, 1, next, c.begin);
        parts[used++] = read_table(g, x, &c, i);
        next = c.begin + c.count;
    }
    if (next < inputs) parts[used++] = an_slice(g, numbers, 1, next, inputs);
    an_scope_end(g);
    return used == 1 ? parts[0] : an_concat(g, 1, used, parts);
}
