/* Fuzzes tables: with a header and without, by names, numbers and patterns of columns, with text and missing cells,
 * plain and compressed. Cells are counted, whether or not the table can be read. What was read must be read again in
 * the same way with the encoding that it gave, after that was written and parsed. Memory is proportional to the file: a
 * column, which may be one byte of it, has some 500 bytes of names, uses and statistics. */
#include "anneal/graph.h"
#include "fuzz_data.h"
#include "fuzz_peak.h"

/* Bytes of all fields of a sample. */
static size_t sample_bytes(const an_dataset *d, int field) {
    an_field about;
    an_field_init(&about, sizeof about);
    if (an_dataset_field(d, field, &about)) broken("a field that is not there");
    size_t bytes = an_dtype_size(about.dtype);
    for (int i = 0; i < about.ndims; i++) bytes *= (size_t)about.dims[i];
    return bytes;
}

static void check_same(an_dataset *a, an_dataset *b) {
    enum { FIELDS = 2, MOST = 32 };
    void *memory[2][FIELDS] = {{NULL}};
    const int fields = an_dataset_field_count(a);
    if (an_dataset_count(a) != an_dataset_count(b) || fields != an_dataset_field_count(b))
        broken("another number of samples with its own encoding");
    for (int f = 0; f < fields; f++) {
        if (sample_bytes(a, f) != sample_bytes(b, f)) broken("another size with its own encoding");
        for (int k = 0; k < 2; k++)
            if (!(memory[k][f] = malloc(sample_bytes(a, f)))) abort();
    }
    for (int64_t i = 0; i < an_dataset_count(a) && i < MOST; i++) {
        if (an_dataset_read(a, 1, &i, memory[0]) || an_dataset_read(b, 1, &i, memory[1]))
            broken("a sample is not read");
        for (int f = 0; f < fields; f++)
            if (memcmp(memory[0][f], memory[1][f], sample_bytes(a, f))) broken("another sample with its own encoding");
    }
    for (int k = 0; k < 2; k++)
        for (int f = 0; f < fields; f++) free(memory[k][f]);
}

static void read_again(an_dataset *d, an_csv_source source) {
    an_encoding *encoding = NULL;
    an_dataset *again = NULL;
    char *text = NULL;
    if (an_encoding_write(an_dataset_encoding(d), &text)) broken("an encoding is not written");
    if (an_encoding_parse(&encoding, context, text, strlen(text))) broken("an encoding is not read");
    source.encoding = encoding;
    if (an_dataset_create_csv(&again, context, &source)) broken("a table is not read with its own encoding");
    check_same(d, again);
    an_dataset_destroy(&again);
    an_encoding_destroy(&encoding);
    an_string_release(context, &text);
}

/* Whatever a table contains, its cells are counted: every column has as many as there are rows. */
static void count_cells(const char *path, char delimiter) {
    an_csv_facts *facts = NULL;
    an_csv_info info;
    an_csv_info_init(&info, sizeof info);
    if (an_csv_facts_create(&facts, context, path, delimiter)) return;
    if (an_csv_facts_info(facts, &info)) broken("nothing is known of a table");
    for (int64_t i = 0; i < info.columns; i++) {
        an_csv_column column;
        an_csv_column_init(&column, sizeof column);
        int64_t cells = 0, count = 0;
        if (an_csv_facts_column(facts, i, &column)) broken("nothing is known of a column");
        if (column.numbers + column.texts + column.missing != info.rows) broken("cells are not all counted");
        for (int64_t k = 0; an_csv_facts_value(facts, i, k, &count); k++) cells += count;
        if (column.values <= AN_CSV_MOST_VALUES && cells + column.missing != info.rows)
            broken("different cells are not all counted");
    }
    an_csv_facts_destroy(&facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static memory_file file;
    static const char *const names[] = {"a", "2"}, *const patterns[] = {"a*", "!?d"};
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    if (size < 2 || size > 1 << 15) return 0;
    need_context();
    const size_t bytes = an_context_bytes(context);
    const int options = data[0], more = data[1];
    const bool is_gzip = size > 3 && data[2] == 0x1f && data[3] == 0x8b; /* which may become 1,032 times as long */
    fill_either(&file, options, data + 2, size - 2);
    source.path = file.path;
    source.header = (an_csv_header)(options >> 1 & 3) == 3 ? AN_CSV_HEADER_AUTO : (an_csv_header)(options >> 1 & 3);
    source.classes = options & 8;
    source.dtype = options & 16 ? AN_DTYPE_F64 : AN_DTYPE_NONE;
    if (options & 32) source.delimiter = '\t';
    source.inputs = more & 8 ? patterns : names;
    source.target_count = options >> 6 & 1;
    source.targets = names + 1;
    source.input_count = (options >> 7) * (more & 8 ? 2 : 1);
    source.missing = (an_csv_missing)(more & 3);
    source.categories = (an_csv_categories)(more >> 2 & 1);
    source.numbers = (an_csv_numbers)(more >> 5 & 3);
    source.dates = more >> 7 ? AN_CSV_DATES_AUTO : AN_CSV_DATES_TEXT;
    source.group = more & 16 ? "2" : NULL;
    peak_begin();
    count_cells(file.path, options & 32 ? '\t' : 0);
    const an_status status = an_dataset_create_csv(&d, context, &source);
    if (!is_gzip) peak_check(1 << 20, 1024, size);
    if (status == AN_OK) read_again(d, source);
    finish(status, &d, bytes);
    return 0;
}
