/* A format of exports is a file with one record, and a line in exporters.def. */
#ifndef AN_INTERCHANGE_EXPORTER_H
#define AN_INTERCHANGE_EXPORTER_H

#include "anneal/checkpoint.h"

typedef struct an_exporter {
    const char *name;
    /* `checkpoint` has the weights that were chosen; `options` are complete, and fit the format. */
    an_status (*write)(const an_checkpoint *checkpoint, const char *path, const an_export_options *options);
    bool converts; /* it writes options.dtype, and takes a model and a tokenizer from elsewhere */
} an_exporter;

#define AN_EXPORTER(format, name) extern const an_exporter an_exporter_##name;
#include "interchange/exporters.def"
#undef AN_EXPORTER

#endif
