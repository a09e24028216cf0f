/* Members of JSON lines as text: strings, and numbers and words as they are written. */
#include <string.h>

#include "base/text/text.h"
#include "data/tables/cells.h"
#include "data/texts/lines.h"

static int find(const an_cells *cells, const an_json_string *key) {
    int i = 0;
    while (i < cells->columns && strcmp(cells->names[i], key->bytes) != 0) i++;
    return i < cells->columns ? i : -1;
}

static bool read_value(an_json *json, an_json_string *value) {
    const int first = an_json_peek(json);
    const size_t begin = json->at;
    if (first == '"') return an_json_string_value(json, value);
    if (first == '{' || first == '[') return an_json_refuse(json, begin, "only a text, a number or a word can be kept");
    if (!an_json_skip(json)) return false;
    *value = (an_json_string){json->text + begin, json->at - begin};
    return true;
}

static an_status read_record(an_cells *cells, an_lines *lines, int64_t record, int64_t sample) {
    an_json json;
    an_json_string key, value = {"", 0};
    AN_TRY_RETURN(an_lines_read(lines, record, &json));
    if (an_json_object(&json))
        while (an_json_member(&json, &key)) {
            const int column = find(cells, &key);
            if (column < 0 ? !an_json_skip(&json) : !read_value(&json, &value)) break;
            for (int i = column; i >= 0 && i < cells->columns; i++) /* it may be listed twice */
                if (!strcmp(cells->names[i], cells->names[column]))
                    AN_TRY_RETURN(an_cells_put(cells, sample, i, value.bytes, value.length));
        }
    return json.problem ? an_lines_refuse(lines, record, json.at, json.problem, "") : AN_OK;
}

/* A member that no record has is a mistake; one that some records do not have is empty there. */
static an_status check_columns(const an_cells *cells, const char *path) {
    for (int c = 0; c < cells->columns; c++) {
        int64_t sample = 0;
        while (sample < cells->samples && !an_cells_row(cells, sample)[c]) sample++;
        if (sample == cells->samples)
            return AN_ERROR(cells->ctx, AN_ERR_UNKNOWN, "%s: no record has a member '%s'", path,
                            AN_QUOTE(cells->names[c]));
    }
    return AN_OK;
}

an_status an_jsonl_read_cells(an_cells *cells, const char *path, int64_t first) {
    an_status status;
    an_context *ctx = cells->ctx;
    an_lines lines = {.first = 0};
    AN_TRY(an_lines_open(&lines, ctx, path, 0, 1));
    AN_CHECK(ctx, cells->samples <= lines.last - first, AN_ERR_FILE, "%s: the file was changed while it was read",
             path);
    for (int64_t i = 0; i < cells->samples; i++) AN_TRY(read_record(cells, &lines, first + i, i));
    AN_TRY(check_columns(cells, path));
    status = AN_OK;
fail:
    an_lines_close(&lines);
    return status;
}
