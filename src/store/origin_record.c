#include "store/origin_record.h"

#include <string.h>

#include "store/state_record.h"

void an_origin_write(an_json_writer *json, const an_saved_origin *origin) {
    char digits[AN_HASH_DIGITS + 1] = "";
    an_hash_write(digits, origin->hash);
    an_json_write_string(json, "path", origin->path);
    an_json_write_integer(json, "step", origin->step);
    an_json_write_string(json, "hash", digits);
}

static bool refuse(an_json *json, const char *problem) {
    return an_json_refuse(json, json->at, problem);
}

bool an_origin_read(an_json *json, an_saved_origin *origin) {
    an_json_string key, path = {0};
    unsigned seen = 0;
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        unsigned bit = 0;
        bool good;
        if (!strcmp(key.bytes, "path"))
            bit = 1, good = an_json_string_value(json, &path);
        else if (!strcmp(key.bytes, "step"))
            bit = 2, good = an_json_count(json, &origin->step);
        else if (!strcmp(key.bytes, "hash"))
            bit = 4, good = an_json_hash(json, origin->hash);
        else
            good = an_json_skip(json);
        if (!good || seen & bit) return refuse(json, "a member of the origin appears twice");
        seen |= bit;
    }
    if (json->problem) return false;
    if (seen != 7U) return refuse(json, "the origin needs path, step and hash");
    origin->path = path.bytes;
    return true;
}
