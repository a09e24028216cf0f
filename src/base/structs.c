#include "base/structs.h"

#include <string.h>

#include "base/status.h"

#define AN_STRUCT AN_STRUCT_DEFINE
#include "base/structs.def"
#undef AN_STRUCT

double an_auto(void) {
    return AN_AUTO;
}

bool an_is_auto(double value) {
    return isnan(value);
}

static size_t size_of(const void *given) {
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

void an_struct_init(const an_struct *record, void *given, size_t size) {
    if (!given || size < sizeof size) return;
    const size_t known = size < record->size ? size : record->size;
    memcpy(given, record->defaults, known);
    memset((char *)given + known, 0, size - known);
    memcpy(given, &size, sizeof size);
}

an_status an_struct_check(an_context *ctx, const an_struct *record, const void *given) {
    if (!given) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s is NULL", record->name);
    if (size_of(given) < record->first)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s has size %zu, expected at least %zu: call %s_init first",
                        record->name, size_of(given), record->first, record->name);
    return AN_OK;
}

an_status an_struct_read(an_context *ctx, const an_struct *record, void *own, const void *given) {
    memcpy(own, record->defaults, record->size);
    if (!given) return AN_OK;
    AN_TRY_RETURN(an_struct_check(ctx, record, given));
    const size_t size = size_of(given), known = size < record->size ? size : record->size;
    for (size_t i = known; i < size; i++)
        if (((const char *)given)[i] != 0)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "%s sets an option that this library does not have, at byte %zu: the program was compiled "
                            "for a release later "
                            "than %s",
                            record->name, i, an_version());
    memcpy(own, given, known);
    memcpy(own, &record->size, sizeof record->size);
    return AN_OK;
}

an_status an_struct_read_at(an_context *ctx, const an_struct *record, void *own, const void *array, int64_t index) {
    AN_TRY_RETURN(an_struct_check(ctx, record, array));
    const size_t stride = size_of(array);
    const char *element = (const char *)array + stride * (size_t)index;
    if (size_of(element) != stride)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "element %lld of an array of %s has size %zu, the first one %zu: call %s_init for each element",
                        (long long)index, record->name, size_of(element), stride, record->name);
    return an_struct_read(ctx, record, own, element);
}

an_status an_struct_write(an_context *ctx, const an_struct *record, void *given, const void *own) {
    AN_TRY_RETURN(an_struct_check(ctx, record, given));
    const size_t size = size_of(given), known = size < record->size ? size : record->size;
    memcpy((char *)given + sizeof size, (const char *)own + sizeof size, known - sizeof size);
    return AN_OK;
}
