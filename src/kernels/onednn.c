/* oneDNN: for now only which one this is. Its kernels come behind this file. */
#include "anneal/anneal.h"

#ifdef ANNEAL_HAVE_ONEDNN
#include <dnnl.h>
#include <stdio.h>

const char *an_onednn_version(void) {
    static _Thread_local char text[32]; /* of the library that was loaded, which need not be the one built with */
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}
#else
const char *an_onednn_version(void) {
    return "";
}
#endif
