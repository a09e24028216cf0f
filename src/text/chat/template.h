/* The chat template of a folder, as text. */
#ifndef AN_TEXT_CHAT_TEMPLATE_H
#define AN_TEXT_CHAT_TEMPLATE_H

#include "base/files/file.h"
#include "base/text/text.h"

/* Adds the template of a folder, or of the folder of a file, to an empty text, which stays without bytes if there is
 * none. `file` gets the path that was looked at last. */
an_status an_chat_template_read(an_context *ctx, const char *path, char file[AN_FILE_PATH], an_text *template);

#endif
