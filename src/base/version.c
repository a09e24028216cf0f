#include "anneal/version.h"
#include "anneal/core.h"

const char *an_version(void) {
    return AN_VERSION_STRING;
}
