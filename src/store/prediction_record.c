#include "store/prediction_record.h"

#include <string.h>

void an_prediction_write(an_json_writer *json, const an_saved_prediction *prediction) {
    an_json_write_bool(json, "f32_storage", prediction->f32_storage);
    an_json_write_object(json, "sizes");
    for (int i = 0; i < prediction->size_count; i++)
        an_json_write_integer(json, prediction->sizes[i].symbol, prediction->sizes[i].value);
    an_json_write_end(json);
}

static bool refuse(an_json *json, const char *problem) {
    return an_json_refuse(json, json->at, problem);
}

static bool read_sizes(an_json *json, an_saved_prediction *prediction) {
    an_json_string symbol;
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &symbol)) {
        if (prediction->size_count == AN_SAVED_SIZES) return refuse(json, "there are sizes of too many symbols");
        if (an_prediction_size(prediction, symbol.bytes)) return refuse(json, "the size of a symbol is there twice");
        an_saved_size *size = &prediction->sizes[prediction->size_count];
        if (!an_json_count(json, &size->value)) return false;
        if (size->value < 1) return refuse(json, "the size of a symbol is below 1");
        size->symbol = symbol.bytes;
        prediction->size_count++;
    }
    return !json->problem;
}

bool an_prediction_read(an_json *json, an_saved_prediction *prediction) {
    an_json_string key;
    unsigned seen = 0;
    *prediction = (an_saved_prediction){.is_known = true};
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        unsigned bit = 0;
        bool good;
        if (!strcmp(key.bytes, "f32_storage"))
            bit = 1, good = an_json_bool(json, &prediction->f32_storage);
        else if (!strcmp(key.bytes, "sizes"))
            bit = 2, good = !(seen & 2U) && read_sizes(json, prediction);
        else
            good = an_json_skip(json);
        if (!good || seen & bit) return refuse(json, "a member of the prediction is there twice");
        seen |= bit;
    }
    if (json->problem) return false;
    return seen == 3U || refuse(json, "the prediction needs f32_storage and sizes");
}

const an_saved_size *an_prediction_size(const an_saved_prediction *prediction, const char *symbol) {
    for (int i = 0; i < prediction->size_count; i++)
        if (!strcmp(prediction->sizes[i].symbol, symbol)) return &prediction->sizes[i];
    return NULL;
}
