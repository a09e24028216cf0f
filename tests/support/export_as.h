/* An export with the defaults of its format. */
#ifndef TESTS_EXPORT_AS_H
#define TESTS_EXPORT_AS_H

#include "anneal/checkpoint.h"

static inline an_status export_as(const an_checkpoint *checkpoint, const char *path, an_export_format format) {
    an_export_options options;
    an_export_options_init(&options, sizeof options);
    options.format = format;
    return an_checkpoint_export(checkpoint, path, &options);
}

#endif
