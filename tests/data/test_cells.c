/* Texts of samples: cells of tables and members of JSON lines come back as they are written, beside the right
 * sample. */
#include "data/pictures.h"

static an_context *ctx;

static int setup(void **state) {
    (void)state;
    ctx = new_context();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    end_context(&ctx);
    return 0;
}

/* `expected` has the texts of the samples, one after another, each with a bar behind it. */
static void check(an_dataset *d, int count, const char *const *columns, const char *expected) {
    char text[512] = "";
    an_cells *cells = NULL;
    OK(ctx, an_cells_create(&cells, d, count, columns));
    for (int64_t i = 0; i < an_dataset_count(d); i++)
        for (int c = 0; c < count; c++) {
            const size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "%s|", an_cells_get(cells, i, c));
        }
    assert_string_equal(text, expected);
    assert_null(an_cells_get(cells, an_dataset_count(d), 0));
    assert_null(an_cells_get(cells, 0, count));
    assert_null(an_cells_get(cells, -1, 0));
    an_cells_destroy(&cells);
}

static void refuse(an_dataset *d, const char *column, an_status status, const char *words) {
    an_cells *cells = NULL;
    FAILS(ctx, an_cells_create(&cells, d, 1, &column), status, words);
    assert_null(cells);
}

static an_csv_source table_of(const char *path) {
    static const char *const inputs[] = {"x"}, *const targets[] = {"y"};
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    source.path = path;
    source.inputs = inputs;
    source.input_count = 1;
    source.targets = targets;
    source.target_count = 1;
    return source;
}

/* Quotes, line ends in quotes, empty lines, rows that are left out, blanks; twice and by number. */
static void test_tables(void **state) {
    static const char *const columns[] = {"id", "note", "1", "y"};
    an_dataset *d = NULL;
    (void)state;
    write_text("a.csv", "id,x,note,y\n007,1,\"a, \"\"b\"\"\nc\",1\n\n8,,dropped,2\n  9 ,3,,03\r\n010,4,d,4\n");
    an_csv_source source = table_of("a.csv");
    source.missing = AN_CSV_MISSING_DROP;
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    check(d, 4, columns, "007|a, \"b\"\nc|007|1|9||9|03|010|d|010|4|");
    an_cells *cells = NULL;
    OK(ctx, an_cells_create(&cells, d, 4, columns));
    assert_string_equal(an_cells_name(cells, 1), "note");
    assert_string_equal(an_cells_name(cells, 2), "id");
    assert_null(an_cells_name(cells, 4));
    an_cells_destroy(&cells);
    refuse(d, "ids", AN_ERR_UNKNOWN, "a.csv: line 1: there is no column 'ids'; did you mean 'id'?");
    refuse(d, "", AN_ERR_ARGUMENT, "column 0 has no name");
    FAILS(ctx, an_cells_create(&cells, d, 0, columns), AN_ERR_ARGUMENT, "count is 0; it must be from 1 to 4096");
    write_text("a.csv", "id,x,note,y\n007,1,,1\n");
    refuse(d, "id", AN_ERR_FILE, "a.csv: the file was changed while it was read");
    an_dataset_destroy(&d);
    write_text("a.csv", "id,x,y\n1,1,1\n2,2,2\n3,3,3\n4,4,4\n");
    source.begin = 0.5;
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    check(d, 1, columns, "3|4|");
    an_dataset_destroy(&d);
}

static void test_several_tables(void **state) {
    static const char *const paths[] = {"b.csv.gz", "c.csv"}, *const columns[] = {"1"};
    an_dataset *d = NULL;
    (void)state;
    append_gzip("b.csv.gz", "wb", "one;1;2\ntwo;3;4\n", 16);
    write_text("c.csv", "three;5;6\n");
    an_csv_source source = table_of(NULL);
    source.inputs = (const char *const[]){"2"};
    source.targets = (const char *const[]){"3"};
    source.header = AN_CSV_HEADER_NO;
    source.delimiter = ';';
    source.paths = paths;
    source.path_count = 2;
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    check(d, 1, columns, "one|two|three|");
    an_dataset_destroy(&d);
}

static void test_json_lines(void **state) {
    static const char *const columns[] = {"id", "n", "id"}, *const inputs[] = {"inputs"},
                             *const targets[] = {"targets"};
    an_dataset *d = NULL;
    an_jsonl_source source;
    an_jsonl_source_init(&source, sizeof source);
    (void)state;
    write_text("x.jsonl", "{\"inputs\": [1, 2], \"targets\": 3, \"id\": \"a\\u0041\\n\", \"n\": 1.50, \"more\": {}}\n\n"
                          "{\"n\": true, \"inputs\": [1, 2], \"targets\": 3}\n");
    source.path = "x.jsonl";
    source.inputs = inputs;
    source.targets = targets;
    source.input_count = source.target_count = 1;
    OK(ctx, an_dataset_create_jsonl(&d, ctx, &source));
    check(d, 3, columns, "aA\n|1.50|aA\n||true||");
    refuse(d, "name", AN_ERR_UNKNOWN, "x.jsonl: no record has a member 'name'");
    refuse(d, "inputs", AN_ERR_PARSE, "only a text, a number or a word can be kept");
    an_dataset_destroy(&d);
}

#ifdef AN_HAVE_PNG
static void test_images(void **state) {
    static const char *const columns[] = {"file"};
    static const unsigned char pixel = 7;
    unsigned char png[256];
    an_dataset *d = NULL;
    an_images_source source;
    an_images_source_init(&source, sizeof source);
    (void)state;
    const size_t size = make_png(png, 1, 1, PNG_GREY, 8, &pixel, NULL, 0);
    mkdir("images", 0777);
    mkdir("images/cat", 0777);
    mkdir("images/dog", 0777);
    write_file("images/cat/2.png", png, size);
    write_file("images/cat/1.png", png, size);
    write_file("images/dog/a.png", png, size);
    source.path = "images";
    OK(ctx, an_dataset_create_images(&d, ctx, &source));
    check(d, 1, columns, "images/cat/1.png|images/cat/2.png|images/dog/a.png|");
    refuse(d, "id", AN_ERR_UNKNOWN, "images: images have no column 'id'; they have 'file'");
    an_dataset_destroy(&d);
}
#endif

static void test_data_without_texts(void **state) {
    an_dataset *d = NULL;
    an_text_source source;
    an_text_source_init(&source, sizeof source);
    (void)state;
    write_text("t.txt", "hello world");
    source.path = "t.txt";
    source.context = 2;
    OK(ctx, an_dataset_create_text(&d, ctx, &source));
    refuse(d, "id", AN_ERR_UNSUPPORTED, "the samples of this data have no columns of text");
    an_dataset_destroy(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_several_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_lines, setup, teardown),
#ifdef AN_HAVE_PNG
        cmocka_unit_test_setup_teardown(test_images, setup, teardown),
#endif
        cmocka_unit_test_setup_teardown(test_data_without_texts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
