/* Tables as people have them: names of classes, categories, missing cells, columns by pattern, several files; and the
 * encoding that makes other tables mean the same. */
#include <math.h>

#include "data/support.h"
#include "data/tables/encoding.h"

static an_csv_source table_in(const char *path, const char *text) {
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    write_text(path, text);
    source.path = path;
    source.categories = AN_CSV_CATEGORIES_ONE_HOT;
    return source;
}

static an_csv_source table_of(const char *text) {
    return table_in("table.csv", text);
}

static void refuse(an_context *ctx, const an_csv_source *source, an_status status, const char *words) {
    an_dataset *d = NULL;
    const size_t before = an_context_bytes(ctx);
    const an_status got = an_dataset_create_csv(&d, ctx, source);
    if (got != status || !strstr(an_last_error(ctx), words))
        fail_msg("'%s' was expected, not %s: %s", words, an_status_name(got), an_last_error(ctx));
    assert_null(d);
    assert_int_equal(an_context_bytes(ctx), before);
}

/* Inputs of all samples are these, one row after another. */
static void check_inputs(an_context *ctx, an_dataset *d, int64_t rows, int64_t width, const double *expected) {
    an_field field;
    an_field_init(&field, sizeof field);
    OK(ctx, an_dataset_field(d, 0, &field));
    assert_int_equal(an_dataset_count(d), rows);
    assert_int_equal(field.ndims, 1);
    assert_int_equal(field.dims[0], width);
    samples s = samples_for(d, 1);
    for (int64_t i = 0; i < rows; i++) {
        OK(ctx, an_dataset_read(d, 1, &i, s.fields));
        for (int64_t k = 0; k < width; k++) {
            const double got =
                field.dtype == AN_DTYPE_F64 ? ((double *)s.fields[0])[k] : (double)((float *)s.fields[0])[k];
            const double wanted =
                field.dtype == AN_DTYPE_F64 ? expected[i * width + k] : (double)(float)expected[i * width + k];
            if (got != wanted) fail_msg("sample %d, number %d: %g is not %g", (int)i, (int)k, got, wanted);
        }
    }
    samples_free(&s);
}

static void check_classes(an_context *ctx, an_dataset *d, const char *expected) {
    samples s = samples_for(d, 1);
    for (int64_t i = 0; i < an_dataset_count(d); i++) {
        OK(ctx, an_dataset_read(d, 1, &i, s.fields));
        assert_int_equal(*(int32_t *)s.fields[1], expected[i] - '0');
    }
    samples_free(&s);
}

static an_dataset *open_table(an_context *ctx, const an_csv_source *source) {
    an_dataset *d = NULL;
    OK(ctx, an_dataset_create_csv(&d, ctx, source));
    return d;
}

/* ---- classes ---- */

static void test_names_of_classes(void **state) {
    an_context *ctx = new_context();
    an_field field;
    an_field_init(&field, sizeof field);
    (void)state;
    /* The numbering is that of the sorted names, whatever the order of rows; bytes are compared, so capitals go
     * first. */
    an_csv_source source = table_of("x,kind\n1,setosa\n2,virginica\n3,\"a \"\"b\"\"\"\n4,Zebra\n5,setosa\n");
    source.classes = true;
    an_dataset *d = open_table(ctx, &source);
    check_classes(ctx, d, "23102");
    OK(ctx, an_dataset_field(d, 1, &field));
    assert_int_equal(field.limit, 4);
    assert_int_equal(field.ndims, 0);
    const an_encoding *e = an_dataset_encoding(d);
    assert_string_equal(an_encoding_class(e, 0), "Zebra");
    assert_string_equal(an_encoding_class(e, 1), "a \"b\"");
    assert_string_equal(an_encoding_class(e, 3), "virginica");
    assert_null(an_encoding_class(e, 4));
    assert_null(an_encoding_class(e, -1));
    /* Other tables have these numbers, with their columns in any order. */
    an_csv_source other = table_in("other.csv", "kind,extra,x\nvirginica,?,7\nsetosa,,8\n");
    other.encoding = e;
    an_dataset *evaluation = open_table(ctx, &other);
    check_classes(ctx, evaluation, "32");
    check_inputs(ctx, evaluation, 2, 1, (double[]){7, 8});
    assert_ptr_equal(an_dataset_encoding(evaluation), e);
    an_dataset_destroy(&evaluation);
    other = table_in("other.csv", "x,kind\n7,setsoa\n");
    other.encoding = e;
    refuse(ctx, &other, AN_ERR_PARSE,
           "other.csv: line 2, column 2: 'setsoa' is a class that the training data does not have; did you mean "
           "'setosa'? the classes are 'Zebra', 'a \"b\"', 'setosa', 'virginica'");
    other = table_in("other.csv", "1,2,setosa\n");
    other.header = AN_CSV_HEADER_NO;
    other.encoding = e;
    refuse(ctx, &other, AN_ERR_SHAPE, "line 1: there are 2 columns for inputs, but the model was trained with 1");
    an_dataset_destroy(&d);
    /* Numbers are numbers as long as there is no text; one wrong cell does not make names of them. */
    source = table_of("x,kind\n1,2\n2,0\n3,1\n");
    source.classes = true;
    d = open_table(ctx, &source);
    check_classes(ctx, d, "201");
    assert_null(an_encoding_class(an_dataset_encoding(d), 0));
    an_dataset_destroy(&d);
    source = table_of("x,kind\n1,2\n2,0\n3,l\n");
    source.classes = true;
    refuse(ctx, &source, AN_ERR_PARSE,
           "table.csv: line 4, column 2: 'l' is not a number, but most cells of the column");
    source = table_of("x,kind\n1,a\n");
    refuse(ctx, &source, AN_ERR_PARSE, "'a' is not a number; if the targets are classes, set data.train.classes to on");
    source = table_of("x,k,l\n1,a,b\n");
    source.classes = true;
    source.target_count = 2;
    source.targets = (const char *const[]){"k", "l"};
    refuse(ctx, &source, AN_ERR_PARSE, "'a' is not a number");
    source = table_of("x,kind\n1,\xff\n");
    source.classes = true;
    refuse(ctx, &source, AN_ERR_PARSE, "is a name that is not UTF-8");
    end_context(&ctx);
}

static void test_too_many_names(void **state) {
    enum { MANY = 10001, LINE = 16 };
    an_context *ctx = new_context();
    char *text = malloc((MANY + 1) * LINE);
    (void)state;
    assert_non_null(text);
    for (int limit = 1000; limit <= 10000; limit += 9000)
        for (int count = limit; count <= limit + 1; count++) {
            size_t used = (size_t)sprintf(text, "x,k\n");
            for (int i = 0; i < count; i++)
                used += (size_t)sprintf(text + used, limit == 1000 ? "v%d,1\n" : "1,v%d\n", (i * 7919) % count);
            an_csv_source source = table_of(text);
            source.classes = limit == 10000;
            if (count > limit) {
                refuse(ctx, &source, AN_ERR_PARSE,
                       limit == 1000 ? "at most 1,000 different cells; leave" : "at most 10,000");
                continue;
            }
            an_dataset *d = open_table(ctx, &source);
            assert_int_equal(field_bytes(d, 0), limit == 1000 ? 4 * 1000 : 4);
            an_dataset_destroy(&d);
        }
    free(text);
    end_context(&ctx);
}

/* ---- categories ---- */

static void test_categories(void **state) {
    an_context *ctx = new_context();
    (void)state;
    /* A number among names is a name. */
    an_csv_source source = table_of("color,x,size,y\nred,1.5,L,0\nblue,2,7,1\nred,3,XL,2\n");
    for (int wide = 0; wide < 2; wide++) {
        source.dtype = wide ? AN_DTYPE_F64 : AN_DTYPE_F32;
        an_dataset *d = open_table(ctx, &source);
        check_inputs(ctx, d, 3, 6, (double[]){0, 1, 1.5, 0, 1, 0, 1, 0, 2, 1, 0, 0, 0, 1, 3, 0, 0, 1});
        assert_null(an_dataset_notice(d));
        an_csv_source other = table_in("other.csv", "x,size,color\n4,XL,green\n5,M,blue\n");
        other.encoding = an_dataset_encoding(d);
        other.has_targets = false;
        other.dtype = source.dtype;
        an_dataset *unseen = open_table(ctx, &other);
        check_inputs(ctx, unseen, 2, 6, (double[]){0, 0, 4, 0, 0, 1, 1, 0, 5, 0, 0, 0});
        assert_non_null(
            strstr(an_dataset_notice(unseen), "2 cells have a category that the training data does not have"));
        assert_non_null(strstr(an_dataset_notice(unseen), "the first is 'green' in line 2, column 3"));
        an_dataset_destroy(&unseen);
        an_dataset_destroy(&d);
    }
    source.categories = AN_CSV_CATEGORIES_REFUSE;
    refuse(ctx, &source, AN_ERR_PARSE, "line 2, column 1: 'red' is not a number");
    source = table_of("x,y\n1,1\n2,1\n3,1\n4..5,1\n");
    refuse(ctx, &source, AN_ERR_PARSE, "line 5, column 1: '4..5' is not a number, but most cells of the column are");
    /* One category is a constant, and still a number. */
    source = table_of("c,y\na,1\na,2\n");
    an_dataset *d = open_table(ctx, &source);
    check_inputs(ctx, d, 2, 1, (double[]){1, 1});
    an_dataset_destroy(&d);
    /* Places are of the column, however many numbers the ones before it have. */
    source = table_of("c,k\na,x\nb,y\nc,x\n");
    source.classes = true;
    d = open_table(ctx, &source);
    OK(ctx, an_dataset_set_limit(d, "targets", 1));
    FAILS(ctx, read_all(d), AN_ERR_PARSE, "table.csv: line 3, column 2: the value 1");
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* ---- encodings ---- */

static void test_encodings_as_text(void **state) {
    an_context *ctx = new_context();
    an_encoding *e = NULL;
    char *text = NULL, *again = NULL;
    (void)state;
    an_csv_source source = table_of("color,x,\xff,kind\nred,1,4,b\nblue,?,5,a\nred,0.2,6,\"c, \xc3\xa4\"\n");
    source.classes = true;
    source.missing = AN_CSV_MISSING_MEAN;
    an_dataset *d = open_table(ctx, &source);
    OK(ctx, an_encoding_write(an_dataset_encoding(d), &text));
    OK(ctx, an_encoding_parse(&e, ctx, text, strlen(text)));
    OK(ctx, an_encoding_write(e, &again));
    assert_string_equal(text, again);
    assert_true(an_encoding_agrees(e, an_dataset_encoding(d)));
    assert_string_equal(an_encoding_class(e, 2), "c, \xc3\xa4");
    an_encoding_destroy(&e);
    /* Cut and damaged at every byte: read or refused, with all memory given back. */
    const size_t length = strlen(text), before = an_context_bytes(ctx);
    for (size_t i = 0; i < length; i++)
        for (int value = -1; value < 256; value += 17) {
            const char kept = again[i];
            if (value >= 0) again[i] = (char)value;
            const an_status status = an_encoding_parse(&e, ctx, again, value < 0 ? i : length);
            if (status != AN_OK) assert_non_null(strstr(an_last_error(ctx), "the encoding of the data: byte "));
            an_encoding_destroy(&e);
            assert_int_equal(an_context_bytes(ctx), before);
            again[i] = kept;
        }
    static const char *const wrong[] = {
        "{\"format\": \"anneal encoding\", \"version\": 3, \"inputs\": [], \"targets\": []}",
        "{\"format\": \"other\", \"version\": 1, \"inputs\": [], \"targets\": []}",
        "{\"format\": \"anneal encoding\", \"version\": 1, \"inputs\": []}",
        "{\"format\": \"anneal encoding\", \"version\": 1, \"inputs\": [{\"kind\": \"class\", \"names\": [\"a\"]}], "
        "\"targets\": []}",
        "{\"format\": \"anneal encoding\", \"version\": 1, \"inputs\": [{\"kind\": \"category\", \"names\": [\"b\", "
        "\"a\"]}], "
        "\"targets\": []}",
        "{\"format\": \"anneal encoding\", \"version\": 1, \"inputs\": [{\"kind\": \"category\"}], \"targets\": []}",
        "{\"format\": \"anneal encoding\", \"version\": 1, \"inputs\": [{\"kind\": \"number\", \"fill\": null}], "
        "\"targets\": []}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        FAILS(ctx, an_encoding_parse(&e, ctx, wrong[i], strlen(wrong[i])), AN_ERR_PARSE, "the encoding of the data");
    an_string_release(ctx, &text);
    an_string_release(ctx, &again);
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* ---- missing cells ---- */

static void test_missing(void **state) {
    static const char text[] = "c,x,y\na,1,1\n,2,2\nb,NA,3\na,?,4\nb,4.5,5\n";
    an_context *ctx = new_context();
    (void)state;
    an_csv_source source = table_of(text);
    refuse(ctx, &source, AN_ERR_PARSE,
           "line 3, column 1: '' is an empty cell, not a number; to accept such cells, set data.missing to drop");
    source = table_of("x,y\n1,1\nnull,2\n");
    refuse(ctx, &source, AN_ERR_PARSE, "'null' is not a number; if it stands for a missing cell, set data.missing");
    source = table_of(text);
    source.missing = AN_CSV_MISSING_DROP;
    an_dataset *d = open_table(ctx, &source);
    check_inputs(ctx, d, 2, 3, (double[]){1, 0, 1, 0, 1, 4.5});
    assert_non_null(strstr(an_dataset_notice(d), "3 of 5 rows have a missing cell and are left out"));
    an_dataset_destroy(&d);
    source.missing = AN_CSV_MISSING_CONSTANT;
    source.constant = -1;
    d = open_table(ctx, &source);
    check_inputs(ctx, d, 5, 3, (double[]){1, 0, 1, 0, 0, 2, 0, 1, -1, 1, 0, -1, 0, 1, 4.5});
    an_dataset_destroy(&d);
    source.missing = AN_CSV_MISSING_MEAN;
    d = open_table(ctx, &source);
    check_inputs(ctx, d, 5, 3, (double[]){1, 0, 1, 0, 0, 2, 0, 1, 2.5, 1, 0, 2.5, 0, 1, 4.5});
    /* The mean is that of the training data, also where other tables are said to refuse such cells. */
    an_csv_source other = table_in("other.csv", "x,c,y\n100,a,1\nNaN,b,2\n1,,3\n");
    other.encoding = an_dataset_encoding(d);
    an_dataset *evaluation = open_table(ctx, &other);
    check_inputs(ctx, evaluation, 3, 3, (double[]){1, 0, 100, 0, 1, 2.5, 0, 0, 1});
    assert_null(an_dataset_notice(evaluation));
    an_dataset_destroy(&evaluation);
    an_dataset_destroy(&d);
    source = table_of("x,y\n1,\n2,1\n");
    source.missing = AN_CSV_MISSING_MEAN;
    refuse(ctx, &source, AN_ERR_PARSE, "line 2, column 2: '' is a missing target; only inputs can be filled in");
    source = table_of("x,z,y\n,1,1\n?,2,1\n");
    source.missing = AN_CSV_MISSING_MEAN;
    refuse(ctx, &source, AN_ERR_PARSE, "column 1 has no number in this part of the data, and so no mean");
    source.missing = AN_CSV_MISSING_DROP;
    refuse(ctx, &source, AN_ERR_PARSE, "every row has a missing cell, so data.missing: drop leaves none");
    /* A row that is left out gives no category and no class. */
    source = table_of("c,x,k\na,1,u\nb,,v\na,2,w\n");
    source.missing = AN_CSV_MISSING_DROP;
    source.classes = true;
    d = open_table(ctx, &source);
    check_inputs(ctx, d, 2, 2, (double[]){1, 1, 1, 2});
    assert_string_equal(an_encoding_class(an_dataset_encoding(d), 1), "w");
    an_dataset_destroy(&d);
    /* Of the part alone, and of the part's rows. */
    source = table_of("x,y\n1,1\n,1\n3,1\n100,1\n");
    source.missing = AN_CSV_MISSING_MEAN;
    source.end = 0.75;
    d = open_table(ctx, &source);
    check_inputs(ctx, d, 3, 1, (double[]){1, 2, 3});
    an_dataset_destroy(&d);
    source.missing = (an_csv_missing)4;
    refuse(ctx, &source, AN_ERR_ARGUMENT, "missing is 4");
    source.missing = AN_CSV_MISSING_CONSTANT;
    source.constant = (double)NAN;
    refuse(ctx, &source, AN_ERR_ARGUMENT, "the constant for missing cells");
    end_context(&ctx);
}

/* ---- columns ---- */

static void test_patterns(void **state) {
    static const char text[] = "id,x1,x10,x2,y*,z\n7,1,10,2,3,0\n";
    static const struct {
        const char *inputs[3];
        int count, width;
        double expected[4];
    } cases[] = {{{"x*"}, 1, 3, {1, 10, 2}},          {{"x?"}, 1, 2, {1, 2}},           {{"!x*", "!id"}, 2, 1, {3}},
                 {{"x*", "!x10"}, 2, 2, {1, 2}},      {{"x2", "x*"}, 2, 3, {2, 1, 10}}, {{"y*"}, 1, 1, {3}},
                 {{"*", "!*d", "!x1*"}, 3, 2, {2, 3}}};
    an_context *ctx = new_context();
    (void)state;
    an_csv_source source = table_of(text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        source.inputs = cases[i].inputs;
        source.input_count = cases[i].count;
        an_dataset *d = open_table(ctx, &source);
        check_inputs(ctx, d, 1, cases[i].width, cases[i].expected);
        an_dataset_destroy(&d);
    }
    source.input_count = 1;
    source.inputs = (const char *const[]){"w*"};
    refuse(ctx, &source, AN_ERR_UNKNOWN, "there is no column 'w*'");
    source.inputs = (const char *const[]){"!w"};
    refuse(ctx, &source, AN_ERR_UNKNOWN, "there is no column 'w'");
    source.inputs = (const char *const[]){"!*"};
    refuse(ctx, &source, AN_ERR_ARGUMENT, "none left for inputs");
    source = table_of("1,2\n");
    source.input_count = 1;
    source.inputs = (const char *const[]){"x*"};
    refuse(ctx, &source, AN_ERR_UNKNOWN, "the file has no header");
    end_context(&ctx);
}

static void test_columns_of_an_encoding(void **state) {
    an_context *ctx = new_context();
    (void)state;
    an_csv_source source = table_of("a,b,c,y\n1,2,3,4\n");
    source.input_count = 2;
    source.inputs = (const char *const[]){"c", "a"};
    an_dataset *d = open_table(ctx, &source);
    const an_encoding *e = an_dataset_encoding(d);
    /* By name, in any order; what was not read in training is not read. */
    an_csv_source other = table_in("other.csv", "b,y,a,c,more\n1,2,3,4,5\n");
    other.encoding = e;
    an_dataset *named = open_table(ctx, &other);
    check_inputs(ctx, named, 1, 2, (double[]){4, 3});
    an_dataset_destroy(&named);
    other = table_in("other.csv", "b,y,A,c\n1,2,3,4\n");
    other.encoding = e;
    refuse(ctx, &other, AN_ERR_UNKNOWN, "there is no column 'a', which the model was trained with");
    /* A file without names is read by position, and one with other names too. */
    other = table_in("other.csv", "5,6,7\n");
    other.encoding = e;
    named = open_table(ctx, &other);
    check_inputs(ctx, named, 1, 2, (double[]){5, 6});
    an_dataset_destroy(&named);
    an_dataset_destroy(&d);
    end_context(&ctx);
}

static void test_mixtures(void **state) {
    an_context *ctx = new_context();
    an_dataset *parts[2] = {NULL}, *d = NULL;
    an_mixture_source mixture;
    an_mixture_source_init(&mixture, sizeof mixture);
    (void)state;
    an_csv_source source = table_of("x,k\n1,a\n2,b\n");
    source.classes = true;
    parts[0] = open_table(ctx, &source);
    source = table_in("other.csv", "x,k\n3,b\n4,c\n");
    source.classes = true;
    parts[1] = open_table(ctx, &source);
    mixture.sources = parts;
    mixture.source_count = 2;
    FAILS(ctx, an_dataset_create_mixture(&d, ctx, &mixture), AN_ERR_ARGUMENT,
          "source 1 of the mixture has other categories, classes");
    an_dataset_destroy(&parts[1]);
    source = table_in("other.csv", "x,k\n3,b\n4,b\n");
    source.encoding = an_dataset_encoding(parts[0]);
    parts[1] = open_table(ctx, &source);
    OK(ctx, an_dataset_create_mixture(&d, ctx, &mixture));
    check_inputs(ctx, d, 4, 1, (double[]){3, 1, 4, 2});
    check_classes(ctx, d, "1011");
    assert_ptr_equal(an_dataset_encoding(d), an_dataset_encoding(parts[0]));
    an_dataset_destroy(&d);
    an_dataset_destroy(&parts[1]);
    an_dataset_destroy(&parts[0]);
    end_context(&ctx);
}

/* ---- several files ---- */

static void test_several_files(void **state) {
    an_context *ctx = new_context();
    (void)state;
    write_text("rows-10.csv", "x,k\n3,c\n4,a\n");
    write_text("rows-2.csv", "\"x\", k\r\n5,b");
    append_gzip("rows-1.csv", "wb", "x,k\n1,b\n2,a\n", 12);
    an_csv_source source = table_of("");
    source.path = "rows-*.csv";
    source.classes = true;
    an_dataset *d = open_table(ctx, &source);
    check_inputs(ctx, d, 5, 1, (double[]){1, 2, 3, 4, 5}); /* as bytes, "rows-1." is before "rows-10" */
    check_classes(ctx, d, "10201");
    OK(ctx, an_dataset_set_limit(d, "targets", 2));
    FAILS(ctx, read_all(d), AN_ERR_PARSE, "rows-10.csv: line 2, column 2: the value 2");
    an_dataset_destroy(&d);
    write_text("rows-2.csv", "x,j\n5,b\n");
    refuse(ctx, &source, AN_ERR_PARSE,
           "rows-2.csv: line 1: the first line does not have the column names of rows-1.csv");
    write_text("rows-2.csv", "x,k\n5,b,1\n");
    refuse(ctx, &source, AN_ERR_PARSE, "rows-2.csv: line 2: this line has 3 columns");
    write_text("rows-2.csv", "");
    refuse(ctx, &source, AN_ERR_PARSE, "rows-2.csv: line 1: the table is empty");
    source.path = "none-*.csv";
    refuse(ctx, &source, AN_ERR_FILE, "none-*.csv: no file fits this pattern");
    /* A file that is called so goes first. */
    write_text("rows-?.csv", "x,k\n9,q\n8,r\n");
    source.path = "rows-?.csv";
    d = open_table(ctx, &source);
    check_inputs(ctx, d, 2, 1, (double[]){9, 8});
    an_dataset_destroy(&d);
    assert_int_equal(unlink("rows-?.csv"), 0);
    /* Many small ones: memory grows, and all rows stay. */
    for (int i = 0; i < 40; i++) {
        char path[32], text[32];
        snprintf(path, sizeof path, "small-%02d.csv", i);
        snprintf(text, sizeof text, "%d,0\n%d,1\n", 2 * i, 2 * i + 1);
        write_text(path, text);
    }
    source = table_of("");
    source.path = "small-*.csv";
    d = open_table(ctx, &source);
    double expected[80];
    for (int i = 0; i < 80; i++) expected[i] = i;
    check_inputs(ctx, d, 80, 1, expected);
    an_dataset_destroy(&d);
    end_context(&ctx);
}

/* Names that a checkpoint could not hold make no encoding, and are no error: the run has them as long as it lives. */
static void test_classes_without_columns(void **state) {
    an_context *ctx = new_context();
    (void)state;
    static char longest[AN_NAME_BYTES + 2];
    memset(longest, 'x', AN_NAME_BYTES + 1);
    static const char *const lists[][2] = {{"cat", "\xff"}, {"dog", "cat"}, {"cat", "cat"}, {"cat", longest}};
    an_encoding *encoding = NULL;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        OK(ctx, an_encoding_of_classes(&encoding, ctx, "kind", lists[i], 2));
        assert_null(encoding);
    }
    longest[AN_NAME_BYTES] = 0;
    OK(ctx, an_encoding_of_classes(&encoding, ctx, "kind", lists[3], 2));
    assert_string_equal(an_encoding_class(encoding, 1), longest);
    an_csv_source source = table_of("x,kind\n1,cat\n");
    source.encoding = encoding;
    source.classes = true;
    refuse(ctx, &source, AN_ERR_ARGUMENT, "table.csv: the model was trained on data that is no table");
    an_encoding_destroy(&encoding);
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_of_classes),
        cmocka_unit_test(test_too_many_names),
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_encodings_as_text),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_columns_of_an_encoding),
        cmocka_unit_test(test_several_files),
        cmocka_unit_test(test_mixtures),
        cmocka_unit_test(test_classes_without_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
