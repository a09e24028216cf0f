#include "base/options/kind.h"

#include <string.h>

#include "base/context.h"

const an_kind *an_kind_find(const an_context *ctx, an_kind_sort sort, const char *name) {
    for (const an_kind *const *k = ctx->kinds[sort]; k && name && *k; k++)
        if (!strcmp((*k)->name, name)) return *k;
    return NULL;
}
