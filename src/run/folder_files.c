/* Files in the folder of a run. */
#include <string.h>

#include "base/status.h"
#include "run/folder.h"

enum { NOTE_BYTES = 1024 };

an_status an_folder_join(const an_folder *f, const char *name, char path[AN_FILE_PATH]) {
    if (an_path_join(path, f->path, name)) return AN_OK;
    return AN_ERROR(f->ctx, AN_ERR_ARGUMENT, "the path of the run folder is too long: %s", f->path);
}

an_status an_folder_replace_file(const an_folder *f, const char *name, const char *text) {
    an_context *ctx = f->ctx;
    char path[AN_FILE_PATH], message[NOTE_BYTES] = "";
    const an_note note = {message, sizeof message};
    AN_TRY_RETURN(an_folder_join(f, name, path));
    AN_TRY_RETURN(an_note_raise(ctx, an_file_replace(path, text, strlen(text), note), note));
    return AN_OK;
}

an_status an_folder_append(const an_folder *f, int file, const char *name, const char *text, size_t length) {
    an_context *ctx = f->ctx;
    char path[AN_FILE_PATH], message[NOTE_BYTES] = "";
    const an_note note = {message, sizeof message};
    AN_TRY_RETURN(an_folder_join(f, name, path));
    AN_TRY_RETURN(an_note_raise(ctx, an_file_write(file, text, length, path, note), note));
    return AN_OK;
}
