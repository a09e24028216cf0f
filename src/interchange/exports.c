/* Exports of checkpoints: the choice of a format, and of what is written. */
#include "base/guard.h"
#include "base/structs.h"
#include "interchange/exporter.h"
#include "interchange/structs.h"
#include "store/chosen_weights.h"
#include "store/inspect.h"

static const an_exporter *const exporters[] = {
#define AN_EXPORTER(format, name) [AN_EXPORT_##format] = &an_exporter_##name,
#include "interchange/exporters.def"
#undef AN_EXPORTER
};

/* Nothing is ignored that a caller asks for. */
static an_status check_options(an_context *ctx, const an_export_options *o) {
    if (o->format < 0 || o->format >= (int)(sizeof exporters / sizeof *exporters))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "an_export_options.format is %d, which is no an_export_format",
                        (int)o->format);
    const an_exporter *e = exporters[o->format];
    if (o->max_bytes < 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "an_export_options.max_bytes is %lld; it must be at least 1",
                        (long long)o->max_bytes);
    if (!e->converts && (o->dtype != AN_DTYPE_NONE || o->from || o->tokenizer))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "an_export_options.%s is set, but exports to %s do not use it; only huggingface and gguf do",
                        o->dtype != AN_DTYPE_NONE ? "dtype"
                        : o->from                 ? "from"
                                                  : "tokenizer",
                        e->name);
    if (o->dtype != AN_DTYPE_NONE && o->dtype != AN_DTYPE_F32 && o->dtype != AN_DTYPE_F16 &&
        o->dtype != AN_DTYPE_BF16 && o->dtype != AN_DTYPE_Q8_0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "an_export_options.dtype is %s, which exports to %s cannot have",
                        an_dtype_name(o->dtype), e->name);
    return AN_OK;
}

an_status an_checkpoint_export(const an_checkpoint *checkpoint, const char *path, const an_export_options *options) {
    AN_GUARD;
    AN_NEED(checkpoint, path);
    an_context *ctx = checkpoint->ctx;
    an_export_options own;
    bool average;
    AN_TRY_RETURN(an_export_options_read(ctx, &own, options));
    AN_TRY_RETURN(check_options(ctx, &own));
    AN_TRY_RETURN(an_choose_weights(ctx, checkpoint->manifest, checkpoint->path, own.weights, &average));
    an_checkpoint chosen = *checkpoint;
    chosen.chosen = own.weights;
    return exporters[own.format]->write(&chosen, path, &own);
}
