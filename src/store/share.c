#include "store/share.h"

#include "anneal/ranks.h"
#include "base/files/file.h"
#include "base/memory.h"

an_status an_share_bytes(an_context *ctx, an_status status, char **bytes, size_t *count) {
    int64_t length = (int64_t)*count;
    AN_TRY_RETURN(an_ranks_agree(ctx, status));
    if (an_context_ranks(ctx) == 1) return AN_OK;
    AN_TRY_RETURN(an_ranks_broadcast(ctx, &length, 1, AN_DTYPE_I64, 0));
    if (an_context_rank(ctx) > 0) {
        status = an_alloc(ctx, (void **)bytes, (size_t)length + 1, 1);
        if (status == AN_OK) *count = (size_t)length;
    }
    AN_TRY_RETURN(an_ranks_agree(ctx, status));
    return an_ranks_broadcast(ctx, *bytes, length, AN_DTYPE_U8, 0);
}

an_status an_manifest_share(an_manifest **manifest, an_context *ctx, const char *folder) {
    an_status status = AN_OK;
    char path[AN_FILE_PATH], *text = NULL;
    size_t bytes = 0;
    *manifest = NULL;
    AN_CHECK(ctx, an_path_join(path, folder, AN_MANIFEST_NAME), AN_ERR_ARGUMENT, "the path is too long: %s", folder);
    if (an_context_rank(ctx) == 0) status = an_manifest_read_text(ctx, path, &text, &bytes);
    AN_TRY(an_share_bytes(ctx, status, &text, &bytes));
    status = an_manifest_parse(manifest, ctx, path, text, bytes);
    text = NULL; /* it was taken over */
    if (status == AN_OK && an_context_rank(ctx) == 0) status = an_manifest_check_files(*manifest, folder);
    AN_TRY(an_ranks_agree(ctx, status));
    return AN_OK;
fail:
    an_release(ctx, (void **)&text, bytes + 1, 1);
    an_manifest_destroy(manifest);
    return status;
}
