/* Tables: numbers to the last bit in any locale, columns by name and number, and a place for
 * everything that is wrong. */
#include <locale.h>

#include "base/text/number.h"
#include "data/support.h"

static an_csv_source table_of(const char *text) {
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    write_text("table.csv", text);
    source.path = "table.csv";
    return source;
}

static void refuse(an_context *ctx, const an_csv_source *source, an_status status, const char *words) {
    an_dataset *d = NULL;
    const an_status got = an_dataset_create_csv(&d, ctx, source);
    if (got != status || !strstr(an_last_error(ctx), words))
        fail_msg("'%s' was expected, not %s: %s", words, an_status_name(got), an_last_error(ctx));
    assert_null(d);
    assert_int_equal(an_context_bytes(ctx), context_bytes);
}

static void check_table(an_context *ctx, const an_csv_source *source, int64_t rows, int inputs, const double *expected,
                        const double *targets) {
    an_dataset *d = NULL;
    OK(ctx, an_dataset_create_csv(&d, ctx, source));
    assert_int_equal(an_dataset_count(d), rows);
    samples s = samples_for(d, 1);
    assert_int_equal(field_bytes(d, 0), (size_t)inputs * (source->dtype == AN_DTYPE_F64 ? 8 : 4));
    for (int64_t i = 0; i < rows; i++) {
        OK(ctx, an_dataset_read(d, 1, &i, s.fields));
        for (int k = 0; k < inputs; k++)
            assert_true(source->dtype == AN_DTYPE_F64 ? ((double *)s.fields[0])[k] == expected[i * inputs + k]
                                                      : ((float *)s.fields[0])[k] == (float)expected[i * inputs + k]);
        if (source->classes)
            assert_int_equal(*(int32_t *)s.fields[1], (int32_t)targets[i]);
        else if (source->dtype == AN_DTYPE_F64)
            assert_true(*(double *)s.fields[1] == targets[i]);
        else
            assert_true(*(float *)s.fields[1] == (float)targets[i]);
    }
    samples_free(&s);
    an_dataset_destroy(&d);
}

static const double cells[] = {1, 2.5, -3, 1e-3}, last[] = {7, 0};

static void test_forms(void **state) {
    static const char *const forms[] = {"1,2.5,7\n-3,1e-3,0\n",
                                        "1,2.5,7\n-3,1e-3,0",
                                        "a,b,c\r\n1,2.5,7\r\n-3,1e-3,0\r\n",
                                        "\357\273\277a,b,c\n1,2.5,7\n-3,1e-3,0\n",
                                        "a,b,c\r1,2.5,7\r-3,1e-3,0",
                                        "\n\na,,c\n\n 1 ,\t+2.50 ,07\n\n-3.,.001,0e5\n\n\n",
                                        "\"a\",\"b,\n\"\"b\",c\n\"1\", \"2.5\" ,7\n-3,1E-3,0\n"};
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        an_csv_source source = table_of(forms[i]);
        check_table(ctx, &source, 2, 2, cells, last);
        source.dtype = AN_DTYPE_F64;
        check_table(ctx, &source, 2, 2, cells, last);
        source.classes = true;
        check_table(ctx, &source, 2, 2, cells, last);
        append_gzip("table.gz", "wb", forms[i], strlen(forms[i]));
        source.path = "table.gz";
        check_table(ctx, &source, 2, 2, cells, last);
    }
    an_csv_source source = table_of("1;2.5;7\n-3;1e-3;0\n");
    source.delimiter = ';';
    check_table(ctx, &source, 2, 2, cells, last);
    source = table_of("1\t2.5\t7\n-3\t1e-3\t0\n");
    source.delimiter = '\t';
    check_table(ctx, &source, 2, 2, cells, last);
    end_context(&ctx);
}

static void test_columns(void **state) {
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    (void)state;
    an_csv_source source = table_of("name,y,b,a,\"q\"\"1\"\nBob,7,2.5,1,x\n\"Al\nice\",0,1e-3,-3,\n");
    source.input_count = 2;
    source.inputs = (const char *const[]){"a", "b"};
    source.target_count = 1;
    source.targets = (const char *const[]){"y"};
    check_table(ctx, &source, 2, 2, cells, last);
    source.inputs = (const char *const[]){"4", "3"};
    source.targets = (const char *const[]){"2"};
    check_table(ctx, &source, 2, 2, cells, last);
    source.targets = (const char *const[]){"q\"1"};
    refuse(ctx, &source, AN_ERR_PARSE, "table.csv: line 2, column 5: 'x' is not a number");
    source.targets = (const char *const[]){"yy"};
    refuse(ctx, &source, AN_ERR_UNKNOWN, ": line 1: there is no column 'yy'; did you mean 'y'?");
    source.targets = (const char *const[]){"6"};
    refuse(ctx, &source, AN_ERR_UNKNOWN, "'6'");
    source.targets = (const char *const[]){"0"};
    refuse(ctx, &source, AN_ERR_UNKNOWN, "'0'");
    source.targets = (const char *const[]){"99999999999999999999"};
    refuse(ctx, &source, AN_ERR_UNKNOWN, "'99999999999999999999'");
    source.targets = (const char *const[]){"a"};
    refuse(ctx, &source, AN_ERR_ARGUMENT, ": column 4 is listed twice");
    /* Places count lines as an editor does, also behind a cell of two lines, and limits know them too. */
    source.targets = (const char *const[]){"y"};
    source.classes = true;
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    OK(ctx, an_dataset_set_limit(d, "targets", 7));
    FAILS(ctx, read_all(d), AN_ERR_PARSE, "table.csv: line 2, column 2: the value 7 in field 'targets'");
    an_dataset_destroy(&d);
    source = table_of("name,x,y\n\"Al\r\nice\",1,2\n\n\"B\rob\",3,4\nEve,5,z\n");
    source.input_count = 1;
    source.inputs = (const char *const[]){"x"};
    refuse(ctx, &source, AN_ERR_PARSE, "table.csv: line 7, column 3: 'z' is not a number");
    source = table_of("1,2\n3,4\n");
    source.has_targets = false; /* for prediction */
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    assert_int_equal(an_dataset_field_count(d), 1);
    float row[2];
    OK(ctx, an_dataset_read(d, 1, (int64_t[]){1}, (void *const[]){row}));
    assert_true(row[0] == 3 && row[1] == 4);
    an_dataset_destroy(&d);
    source.target_count = 1;
    source.targets = (const char *const[]){"y"};
    refuse(ctx, &source, AN_ERR_ARGUMENT, "has_targets is false, but there are 1 targets");
    source.has_targets = true;
    refuse(ctx, &source, AN_ERR_UNKNOWN, "the file has no header, so choose columns by number, starting at 1");
    source.targets = (const char *const[]){"1"};
    check_table(ctx, &source, 2, 1, (double[]){2, 4}, (double[]){1, 3});
    end_context(&ctx);
}

static void test_mistakes(void **state) {
    static const struct {
        const char *text, *words;
    } cases[] = {{"", "line 1: the table is empty"},
                 {"\n\n\r\n", "the table is empty"},
                 {"a,b\n", ": line 2: there are no rows of numbers"},
                 {"1,2\n3\n", ": line 2: this line has 1 columns, but the first line has 2"},
                 {"1,2\n3,4,5\n", ": line 2: this line has 3 columns, but the first line has 2"},
                 {"1,2\n\n3,x\n", "line 3, column 2: 'x' is not a number"},
                 {"1,2\n3,\n", "line 2, column 2: '' is an empty cell"},
                 {"1,2\n3,nan\n", "'nan' is not a number"},
                 {"1,2\n3,inf\n", "'inf' is not a number"},
                 {"1,2\n3,0x10\n", "'0x10' is not a number"},
                 {"1,2\n3,1e\n", "'1e' is not a number"},
                 {"1,2\n3,1e999\n", "does not fit in a number of 64 bits"},
                 {"1,2\n3,1e39\n", "does not fit in f32"},
                 {"1,2\n3,3.4028236e38\n", "does not fit in f32"},
                 {"1,2\n3,1 2\n", "'1 2' is not a number"},
                 {"1,2\n3,\"4\n", "has an opening quote without a closing one"},
                 {"1,2\n3,\"4\"5\n", "has more text after its closing quote"},
                 {"1,setosa\n2,virginica\n",
                  ": line 1: this line has both numbers and words; set data.train.header to on or off"},
                 {"1,2\n3,4\x01\x1f\n", "'4?\?' is not a number"}};
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_csv_source source = table_of(cases[i].text);
        refuse(ctx, &source, AN_ERR_PARSE, cases[i].words);
    }
    static const char *const classes[] = {"1,-1\n", "1,0.5\n", "1,2147483647\n", "1,1e300\n", "1,-2147483649\n"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        an_csv_source source = table_of(classes[i]);
        source.classes = true;
        refuse(ctx, &source, AN_ERR_PARSE, "line 1, column 2: '");
    }
    an_csv_source source = table_of("1\n2\n");
    refuse(ctx, &source, AN_ERR_ARGUMENT, "in total, and none left for inputs");
    source = table_of("1,2\n");
    source.delimiter = '.';
    refuse(ctx, &source, AN_ERR_ARGUMENT, ": '.' cannot be a delimiter");
    source.delimiter = 0;
    refuse(ctx, &source, AN_ERR_ARGUMENT, "table.csv: '"); /* NUL ends the message */
    source.delimiter = ',';
    source.dtype = AN_DTYPE_I32;
    refuse(ctx, &source, AN_ERR_DTYPE, "f32 or f64");
    source.dtype = AN_DTYPE_NONE;
    source.input_count = 1;
    refuse(ctx, &source, AN_ERR_ARGUMENT, "input_count or target_count does not match the lists of columns");
    end_context(&ctx);
}

/* Which of them is meant cannot be known, unless they are named by number. */
static void test_columns_of_one_name(void **state) {
    static const char *const name[] = {"a"}, *const numbers[] = {"1", "3"};
    an_context *ctx = new_context();
    an_dataset *d = NULL;
    (void)state;
    an_csv_source source = table_of("a,y,a\n1,2,3\n4,5,6\n");
    refuse(ctx, &source, AN_ERR_ARGUMENT, "line 1: two columns are called 'a'; rename one");
    source.targets = name;
    source.target_count = 1;
    refuse(ctx, &source, AN_ERR_ARGUMENT, "two columns are called 'a'");
    source.inputs = numbers + 1;
    source.input_count = 1;
    refuse(ctx, &source, AN_ERR_ARGUMENT, "line 1: columns 1 and 3 are both called 'a'; rename one");
    source = table_of("a,a,y\n1,2,3\n4,5,6\n");
    source.inputs = numbers;
    source.input_count = 1;
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* Cut and damaged at every byte: read or refused, with all memory given back. */
static void test_hostile(void **state) {
    static const char text[] = "a,\"b\"\"\",c\r\n1.5,-2e3,\"0\"\n\n.5,4.,1\n";
    an_context *ctx = new_context();
    char bad[sizeof text];
    (void)state;
    for (size_t cut = 0; cut < sizeof text; cut++)
        for (int value = -1; value < 256; value += value < 0 ? 1 : 9) {
            an_csv_source source;
            an_csv_source_init(&source, sizeof source);
            an_dataset *d = NULL;
            memcpy(bad, text, sizeof text);
            if (value >= 0 && cut < sizeof text - 1) bad[cut] = (char)value;
            write_file("table.csv", bad, value < 0 ? cut : sizeof text - 1);
            source.path = "table.csv";
            if (an_dataset_create_csv(&d, ctx, &source) == AN_OK)
                OK(ctx, read_all(d));
            else
                assert_non_null(strstr(an_last_error(ctx), "table.csv: "));
            an_dataset_destroy(&d);
            assert_int_equal(an_context_bytes(ctx), context_bytes);
        }
    /* Many columns and many lines do not make memory of their product. */
    enum { MANY = 200000 };
    char *big = malloc(2 * MANY);
    assert_non_null(big);
    memset(big, ',', MANY);
    memset(big + MANY, '\n', MANY);
    write_file("table.csv", big, 2 * MANY);
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    source.path = "table.csv";
    refuse(ctx, &source, AN_ERR_PARSE, "column 1: '' is an empty cell");
    free(big);
    end_context(&ctx);
}

/* As strtod of the C locale, whatever the locale is. */
static void test_numbers(void **state) {
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1",
                                        "0.1",
                                        "123456789012345678",
                                        "9007199254740993",
                                        "1e22",
                                        "1e23",
                                        "1e-22",
                                        "1e-23",
                                        "4.9e-324",
                                        "2.5e-324",
                                        "1.7976931348623157e308",
                                        "2.2250738585072014e-308",
                                        "0.30000000000000004",
                                        "179769313486231580793728971405303415079934132710037826936e251",
                                        "3.14159265358979323846264338327950288",
                                        "1e-400",
                                        "8.5e+2",
                                        "000000000000000000000000001"};
    static const char *const wrong[] = {"",    "+",  "-",  ".",     "e5",  "1e",  "1e+",   "--1", "1.2.3",
                                        "1,5", " 1", "1 ", "0x1p3", "nan", "inf", "1_000", "1f",  "1e5.0"};
    char noise_text[64];
    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            double number = 7;
            setlocale(LC_ALL, "C");
            const double expected = strtod(texts[i], NULL);
            if (pass) setlocale(LC_ALL, "de_DE.UTF-8"); /* if there is one */
            assert_int_equal(an_number_read(texts[i], strlen(texts[i]), &number), AN_NUMBER_OK);
            assert_memory_equal(&number, &expected, sizeof number);
        }
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            double number;
            if (an_number_read(wrong[i], strlen(wrong[i]), &number) != AN_NUMBER_TEXT) fail_msg("'%s'", wrong[i]);
        }
    }
    setlocale(LC_ALL, "C");
    for (uint64_t i = 0; i < 100000; i++) {
        double number, expected = noise(2 * i) * pow(10, 40 * noise(2 * i + 1));
        snprintf(noise_text, sizeof noise_text, "%.*g", 1 + (int)(i % 17), expected);
        expected = strtod(noise_text, NULL);
        assert_int_equal(an_number_read(noise_text, strlen(noise_text), &number), AN_NUMBER_OK);
        assert_memory_equal(&number, &expected, sizeof number);
    }
}

/* A column of weights is a field of its own, and no input or target; bad cells are refused with their place. */
static void test_weights(void **state) {
    static const double rows[] = {1, 2, 3, 4}, targets[] = {5, 6}, wanted[] = {0.1, 0};
    static const char *const forms[] = {"a,w,b,y\n1,0.1,2,5\n3,0,4,6\n", "a,b,y,w\n1,2,5,0.1\n3,4,6,0\n"};
    static const struct {
        const char *cell, *words;
    } mistakes[] = {
        {"-1", "table.csv: line 3, column 2: '-1' is not a weight: weights are finite numbers that are 0 or more"},
        {"inf", "line 3, column 2: 'inf' is not a weight"},
        {"1e999", "line 3, column 2: '1e999' is not a weight"},
        {"heavy", "line 3, column 2: 'heavy' is not a weight"},
        {"", "line 3, column 2: '' is not a weight"}};
    an_context *ctx = new_context();
    an_dataset *d = NULL, *other = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        an_csv_source source = table_of(forms[i]);
        source.weights = "w";
        check_table(ctx, &source, 2, 2, rows, targets);
        OK(ctx, an_dataset_create_csv(&d, ctx, &source));
        assert_int_equal(an_dataset_field_count(d), 3);
        samples s = samples_for(d, 1);
        for (int64_t row = 0; row < 2; row++) {
            OK(ctx, an_dataset_read(d, 1, &row, s.fields));
            assert_true(*(double *)s.fields[2] == wanted[row]);
        }
        samples_free(&s);
        /* A table that is read with the encoding of this one may be without weights. */
        an_csv_source without = table_of("b,a,y\n2,1,5\n4,3,6\n");
        without.weights = "w";
        FAILS(ctx, an_dataset_create_csv(&other, ctx, &without), AN_ERR_UNKNOWN, "there is no column 'w'");
        without.encoding = an_dataset_encoding(d);
        OK(ctx, an_dataset_create_csv(&other, ctx, &without));
        assert_int_equal(an_dataset_field_count(other), 2);
        an_dataset_destroy(&other);
        an_dataset_destroy(&d);
    }
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        char text[64];
        snprintf(text, sizeof text, "a,w,b,y\n1,2,3,4\n1,%s,3,4\n", mistakes[i].cell);
        an_csv_source source = table_of(text);
        source.weights = "w";
        refuse(ctx, &source, AN_ERR_PARSE, mistakes[i].words);
    }
    an_csv_source dropped = table_of("a,w,b,y\n1,0.1,2,5\n1,,3,4\n3,0,4,6\n");
    dropped.weights = "w";
    dropped.missing = AN_CSV_MISSING_DROP;
    check_table(ctx, &dropped, 2, 2, rows, targets);
    end_context(&ctx);
}

/* Several files, in the order in which they are given. */
static void test_paths(void **state) {
    static const double rows[] = {5, 6, 1, 2, 3, 4}, targets[] = {3, 1, 2};
    an_context *ctx = new_context();
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    (void)state;
    write_text("b.csv", "u,v,y\n5,6,3\n");
    write_text("a-1.csv", "u,v,y\n1,2,1\n");
    write_text("a-2.csv", "u,v,y\n3,4,2\n");
    source.paths = (const char *const[]){"b.csv", "a-*.csv"};
    source.path_count = 2;
    check_table(ctx, &source, 3, 2, rows, targets);
    source.paths = (const char *const[]){"b.csv", "none.csv"};
    refuse(ctx, &source, AN_ERR_FILE, "none.csv: ");
    source.paths = (const char *const[]){"b.csv", ""};
    refuse(ctx, &source, AN_ERR_ARGUMENT, "a file of the data has no name");
    source.path = "b.csv";
    refuse(ctx, &source, AN_ERR_ARGUMENT, "or there is a single path too");
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),   cmocka_unit_test(test_columns), cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_numbers), cmocka_unit_test(test_columns_of_one_name),
        cmocka_unit_test(test_weights), cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
