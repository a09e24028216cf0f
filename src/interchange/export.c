/* Writes one safetensors file from a checkpoint. */
#include "interchange/export_file.h"
#include "interchange/exporter.h"

enum { ALIGNMENT = 64 };

an_status an_export_write(const an_checkpoint *checkpoint, const char *file, const an_export_names *names) {
    an_status status;
    an_context *ctx = checkpoint->ctx;
    an_export_list list = {0};
    an_export_file f = {0};
    char *encoding = NULL;
    an_text header;
    an_text_init(&header, ctx);
    AN_TRY(an_export_list_create(&list, checkpoint, names));
    /* What inputs and classes mean goes along: tensors alone do not say it. */
    if (checkpoint->manifest && an_manifest_find_file(checkpoint->manifest, "encoding.json") >= 0)
        AN_TRY(an_checkpoint_text(checkpoint, "encoding.json", &encoding));
    AN_TRY(an_safetensors_header(&header, list.entries, list.count, ALIGNMENT, encoding));
    AN_TRY(an_export_file_open(&f, ctx, file));
    AN_TRY(an_export_file_bytes(&f, header.bytes, header.length));
    for (size_t i = 0; i < list.count; i++) AN_TRY(an_export_file_tensor(&f, &list, i));
    AN_TRY(an_export_file_finish(&f));
    status = AN_OK;
fail:
    an_export_file_close(&f);
    an_export_list_destroy(&list);
    an_string_release(ctx, &encoding);
    an_text_destroy(&header);
    return status;
}

static an_status write_safetensors(const an_checkpoint *checkpoint, const char *path,
                                   const an_export_options *options) {
    (void)options;
    return an_export_write(checkpoint, path, NULL);
}

const an_exporter an_exporter_safetensors = {.name = "safetensors", .write = write_safetensors};
