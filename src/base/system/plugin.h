/* Plugins: shared libraries that are built with this one and bring what it must not be linked with. */
#ifndef AN_BASE_SYSTEM_PLUGIN_H
#define AN_BASE_SYSTEM_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/note.h"

/* What every plugin's record begins with. */
typedef struct an_plugin_head {
    size_t size; /* of the whole record */
    int version;
} an_plugin_head;

/* Opens libanneal-NAME.so and gives the record that it exports as `symbol`, which must have this size and version. It
 * is looked for beside the file that has this code, in ../lib from there, and where plugins are installed. The plugin
 * stays open. AN_ERR_FILE if it is not there or cannot be loaded, AN_ERR_UNSUPPORTED if it belongs to another version;
 * the note says which file and why. */
an_status an_plugin_open(const char *name, const char *symbol, an_plugin_head expected, const void **record,
                         an_note note);

#endif
