/* Numbers and dates as people write them: what a column becomes, what is refused, and that the encoding keeps it. */
#include <math.h>

#include "data/support.h"
#include "data/tables/encoding.h"

static an_csv_source table_in(const char *path, const char *text) {
    an_csv_source source;
    an_csv_source_init(&source, sizeof source);
    write_text(path, text);
    source.path = path;
    source.delimiter = ';';
    source.dtype = AN_DTYPE_F64;
    source.categories = AN_CSV_CATEGORIES_ONE_HOT;
    source.numbers = AN_CSV_NUMBERS_AUTO;
    source.dates = AN_CSV_DATES_AUTO;
    return source;
}

static void refuse(an_context *ctx, const an_csv_source *source, const char *words) {
    an_dataset *d = NULL;
    const size_t before = an_context_bytes(ctx);
    const an_status got = an_dataset_create_csv(&d, ctx, source);
    if (got != AN_ERR_PARSE || !strstr(an_last_error(ctx), words))
        fail_msg("'%s' was expected, not %s: %s", words, an_status_name(got), an_last_error(ctx));
    assert_int_equal(an_context_bytes(ctx), before);
}

static double number_of(an_context *ctx, an_dataset *d, int64_t row, int64_t number) {
    samples s = samples_for(d, 1);
    OK(ctx, an_dataset_read(d, 1, &row, s.fields));
    const double got = ((double *)s.fields[0])[number];
    samples_free(&s);
    return got;
}

/* ---- numbers ---- */

/* A column of these cells, between bars, is these numbers. */
static const struct {
    const char *cells;
    double numbers[4];
    const char *notation;
} written[] = {
    {"3,14|12|-0,5", {3.14, 12, -0.5}, "1234,5"},
    {"0,123|7,000|1", {0.123, 7, 1}, "1234,5"},
    {"1234,567|7,000|1", {1234.567, 7, 1}, "1234,5"},
    {"1,234,567.89|12|1,000", {1234567.89, 12, 1000}, "1,234.5"},
    {"1,234.5|2,000|7", {1234.5, 2000, 7}, "1,234.5"},
    {"1.234.567,89|1.000|-2", {1234567.89, 1000, -2}, "1.234,5"},
    {"1 234|12 345 678|9", {1234, 12345678, 9}, "1 234.5"},
    {"1\xc2\xa0"
     "234,5|1\xe2\x80\xaf"
     "000|9",
     {1234.5, 1000, 9},
     "1 234,5"},
    {"1'234.50|12'000|9", {1234.5, 12000, 9}, "1'234.5"},
    {"$1,234.50|-$3.00|$-7", {1234.5, -3, -7}, "1,234.5 $"},
    {"3,50 €|1.200,00 €|€ 7", {3.5, 1200, 7}, "1.234,5 €"},
    {"EUR 3.50|EUR 4|12.75 EUR", {3.5, 4, 12.75}, "1234.5 EUR"},
    {"12.5 %|3%|-1%", {12.5, 3, -1}, "1234.5 %"},
    {"1,5e3|2,5E-1|+4", {1500, 0.25, 4}, "1234,5"},
};

static an_dataset *open_column(an_context *ctx, const char *cells, an_csv_numbers numbers) {
    char text[512] = "x;y\n";
    an_dataset *d = NULL;
    for (const char *at = cells; *at;) {
        const int length = (int)strcspn(at, "|");
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s;1\n", length, at);
        at += length + (at[length] == '|');
    }
    an_csv_source source = table_in("table.csv", text);
    source.numbers = numbers;
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    return d;
}

static void test_numbers(void **state) {
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        an_dataset *d = open_column(ctx, written[i].cells, AN_CSV_NUMBERS_AUTO), *again = NULL;
        char described[AN_NOTATION_BYTES], *text = NULL;
        const an_column *column = an_dataset_encoding(d)->columns[AN_ENCODED_INPUTS];
        assert_int_equal(column->kind, AN_COLUMN_NUMBER);
        an_notation_describe(&column->notation, described, sizeof described);
        assert_string_equal(described, written[i].notation);
        for (int64_t row = 0; row < 3; row++)
            if (number_of(ctx, d, row, 0) != written[i].numbers[row])
                fail_msg("%s: row %d is %.17g", written[i].cells, (int)row, number_of(ctx, d, row, 0));
        /* The encoding says it to other tables, also after it was written and read. */
        an_encoding *e = NULL;
        OK(ctx, an_encoding_write(an_dataset_encoding(d), &text));
        OK(ctx, an_encoding_parse(&e, ctx, text, strlen(text)));
        assert_true(an_encoding_agrees(e, an_dataset_encoding(d)));
        assert_false(an_encoding_is_plain(e));
        assert_non_null(strstr(text, "\"version\": 2"));
        an_csv_source source;
        an_csv_source_init(&source, sizeof source);
        source.path = "table.csv";
        source.delimiter = ';';
        source.dtype = AN_DTYPE_F64;
        source.encoding = e;
        OK(ctx, an_dataset_create_csv(&again, ctx, &source));
        for (int64_t row = 0; row < 3; row++) assert_true(number_of(ctx, again, row, 0) == written[i].numbers[row]);
        an_dataset_destroy(&again);
        an_encoding_destroy(&e);
        an_string_release(ctx, &text);
        an_dataset_destroy(&d);
    }
    end_context(&ctx);
}

/* Tables of plain numbers are what they were, and so are their encodings. */
static void test_plain(void **state) {
    an_context *ctx = new_context();
    (void)state;
    an_dataset *d = open_column(ctx, "1.234|5.678|900", AN_CSV_NUMBERS_AUTO);
    assert_true(number_of(ctx, d, 0, 0) == 1.234);
    assert_true(an_encoding_is_plain(an_dataset_encoding(d)));
    char *text = NULL;
    OK(ctx, an_encoding_write(an_dataset_encoding(d), &text));
    assert_non_null(strstr(text, "\"version\": 1"));
    assert_null(strstr(text, "notation"));
    an_string_release(ctx, &text);
    an_dataset_destroy(&d);
    /* Without being asked to, nothing is read in another way than before; the notice says how to ask. */
    d = open_column(ctx, "3,14|2,5|3,14", AN_CSV_NUMBERS_PLAIN);
    assert_int_equal(an_dataset_encoding(d)->columns[AN_ENCODED_INPUTS]->kind, AN_COLUMN_CATEGORY);
    assert_non_null(an_dataset_notice(d));
    assert_non_null(strstr(an_dataset_notice(d), "column 1 ('x'): cells such as '3,14' are read as categories; to read "
                                                 "them as numbers or dates, set data.train.numbers"));
    an_dataset_destroy(&d);
    end_context(&ctx);
}

static void test_unclear_numbers(void **state) {
    an_context *ctx = new_context();
    (void)state;
    an_csv_source source = table_in("table.csv", "x;y\n12;1\n1,234;1\n7;2\n");
    refuse(ctx, &source,
           "table.csv: column 1 ('x'): the decimal mark of numbers such as '1,234' could be a point or a comma; set "
           "data.train.numbers to point or comma");
    an_dataset *d = open_column(ctx, "12|1,234", AN_CSV_NUMBERS_POINT);
    assert_true(number_of(ctx, d, 1, 0) == 1234);
    an_dataset_destroy(&d);
    d = open_column(ctx, "12|1,234", AN_CSV_NUMBERS_COMMA);
    assert_true(number_of(ctx, d, 1, 0) == 1.234);
    an_dataset_destroy(&d);
    /* What the cells say, no option changes. */
    d = open_column(ctx, "12|1,5", AN_CSV_NUMBERS_POINT);
    assert_true(number_of(ctx, d, 1, 0) == 1.5);
    an_dataset_destroy(&d);
    d = open_column(ctx, "1.234|900", AN_CSV_NUMBERS_COMMA);
    assert_true(number_of(ctx, d, 0, 0) == 1234);
    an_dataset_destroy(&d);
    /* A plain column in a table with decimal commas, and one of prices. */
    source = table_in("table.csv", "x;z;y\n1.234;0,5;1\n2.500;1,75;1\n");
    refuse(ctx, &source, "column 1 ('x'): the decimal mark of numbers such as '1.234' could be");
    source = table_in("table.csv", "x;y\n€1.234;1\n€2.500;1\n");
    refuse(ctx, &source, "could be a point or a comma");
    end_context(&ctx);
}

static void test_other_notations(void **state) {
    an_context *ctx = new_context();
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"x;y\n3,14;1\n2.5;1\n",
         "line 3, column 1: '2.5' is not written as other cells of the column are, such as '3,14'"},
        {"x;y\n$5;1\n€5;1\n", "line 3, column 1: '€5' is not written as other cells of the column are, such as '$5'"},
        {"x;y\n5%;1\n0.05;1\n", "line 3, column 1: '0.05' is not written as"},
        {"x;y\n3,14;1\n2,5;1\nmany;1\n", "line 4, column 1: 'many' is not a number, but most cells of the column are"},
        {"x;y\n2024-05-17;1\n17.05.2024;1\n", "line 3, column 1: '17.05.2024' is not written as"},
        {"x;y\n2024-05-17;1\n2024-05-17 10:00;1\n", "line 3, column 1: '2024-05-17 10:00' is not written as"},
        {"x;y\n2024-05-17;1\n5;1\n", "line 3, column 1: '5' is not written as"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const an_csv_source source = table_in("table.csv", bad[i].text);
        refuse(ctx, &source, bad[i].message);
    }
    /* Another table in another notation is refused, and never a wrong number. */
    an_dataset *d = open_column(ctx, "3,50 €|1.200,00 €", AN_CSV_NUMBERS_AUTO);
    static const char *const cells[] = {"3,50", "3.50 €", "$3,50", "1,200.00 €", "3,50 €€"};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        char text[64], message[128];
        snprintf(text, sizeof text, "x;y\n%s;1\n", cells[i]);
        snprintf(message, sizeof message, "other.csv: line 2, column 1: '%s' is not written as in the training data",
                 cells[i]);
        an_csv_source source = table_in("other.csv", text);
        source.encoding = an_dataset_encoding(d);
        refuse(ctx, &source, message);
    }
    an_dataset_destroy(&d);
    /* Words with digits stay categories, and classes are names. */
    d = open_column(ctx, "1.2.3|12 kg|a1", AN_CSV_NUMBERS_AUTO);
    assert_int_equal(an_dataset_encoding(d)->columns[AN_ENCODED_INPUTS]->kind, AN_COLUMN_CATEGORY);
    an_dataset_destroy(&d);
    an_csv_source source = table_in("table.csv", "x;y\n1;5%\n2;10%\n");
    source.classes = true;
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    assert_string_equal(an_encoding_class(an_dataset_encoding(d), 0), "10%");
    an_dataset_destroy(&d);
    /* A first line of numbers is a row, also of other tables. */
    source = table_in("table.csv", "1,5;1\n2,5;2\n");
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    assert_int_equal(an_dataset_count(d), 2);
    an_csv_source other = table_in("other.csv", "1,5;1\n2,5;2\n3,5;2\n");
    other.numbers = AN_CSV_NUMBERS_PLAIN;
    other.encoding = an_dataset_encoding(d);
    an_dataset *next = NULL;
    OK(ctx, an_dataset_create_csv(&next, ctx, &other));
    assert_int_equal(an_dataset_count(next), 3);
    an_dataset_destroy(&next);
    an_dataset_destroy(&d);
    /* Targets that are measurements have notations too, but are no dates. */
    source = table_in("table.csv", "x;y\n1;1,5\n2;2,5\n");
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    assert_int_equal(an_dataset_encoding(d)->columns[AN_ENCODED_TARGETS]->notation.kind, AN_NOTATION_NUMBER);
    an_dataset_destroy(&d);
    source = table_in("table.csv", "x;y\n1;2024-05-17\n2;2024-05-18\n");
    refuse(ctx, &source, "line 2, column 2: '2024-05-17' is not a number");
    end_context(&ctx);
}

/* ---- dates ---- */

static const struct {
    const char *cells; /* two of them */
    int64_t width;
    double days[2];
    const char *notation;
} dates[] = {
    {"1970-01-01|2024-05-17", 5, {0, 19860}, "YYYY-MM-DD"},
    {"1969-12-31|2000-02-29", 5, {-1, 11016}, "YYYY-MM-DD"},
    {"2024/05/17|2024/5/7", 5, {19860, 19850}, "YYYY/MM/DD"},
    {"17.05.2024|7.5.2024", 5, {19860, 19850}, "DD.MM.YYYY"},
    {"05/17/2024|01/02/2024", 5, {19860, 19724}, "MM/DD/YYYY"},
    {"17/05/2024|01/02/2024", 5, {19860, 19754}, "DD/MM/YYYY"},
    {"2024-05-17T12:00:00|2024-05-17 06:00", 7, {19860.5, 19860.25}, "YYYY-MM-DD hh:mm"},
    {"2024-05-17T12:00:00.5Z|2024-05-17T02:00+02:00", 7, {19860.5, 19860}, "YYYY-MM-DD hh:mm zone"},
};

static void test_dates(void **state) {
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        an_dataset *d = open_column(ctx, dates[i].cells, AN_CSV_NUMBERS_PLAIN);
        char described[AN_NOTATION_BYTES];
        an_field field;
        an_field_init(&field, sizeof field);
        const an_column *column = an_dataset_encoding(d)->columns[AN_ENCODED_INPUTS];
        assert_int_equal(column->kind, AN_COLUMN_DATE);
        an_notation_describe(&column->notation, described, sizeof described);
        assert_string_equal(described, dates[i].notation);
        OK(ctx, an_dataset_field(d, 0, &field));
        assert_int_equal(field.dims[0], dates[i].width);
        for (int64_t row = 0; row < 2; row++)
            if (number_of(ctx, d, row, 0) != dates[i].days[row])
                fail_msg("%s: row %d is %.17g", dates[i].cells, (int)row, number_of(ctx, d, row, 0));
        an_dataset_destroy(&d);
    }
    /* Friday, day 137 of 366, at 18:00. */
    an_dataset *d = open_column(ctx, "2024-05-17 18:00|2024-05-18 00:00", AN_CSV_NUMBERS_AUTO);
    const double turn = 6.283185307179586,
                 expected[] = {
                     19860.75, sin(turn * 137 / 366), cos(turn * 137 / 366), sin(turn * 4 / 7), cos(turn * 4 / 7), -1,
                     0};
    for (int64_t k = 0; k < 7; k++) assert_true(fabs(number_of(ctx, d, 0, k) - expected[k]) < 1e-12);
    an_dataset_destroy(&d);
    end_context(&ctx);
}

static void test_dates_with_gaps(void **state) {
    an_context *ctx = new_context();
    (void)state;
    /* A missing date is the mean of the days, and none of the seasons and weekdays. */
    an_csv_source source = table_in("table.csv", "a;when;y\nu;2024-05-17;1\nv;;2\nu;2024-05-19;3\n");
    source.missing = AN_CSV_MISSING_MEAN;
    an_dataset *d = NULL, *other = NULL;
    OK(ctx, an_dataset_create_csv(&d, ctx, &source));
    assert_true(number_of(ctx, d, 1, 2) == 19861);
    for (int64_t k = 3; k < 7; k++) assert_true(number_of(ctx, d, 1, k) == 0);
    assert_true(number_of(ctx, d, 1, 1) == 1);
    char *text = NULL;
    an_encoding *e = NULL;
    OK(ctx, an_encoding_write(an_dataset_encoding(d), &text));
    OK(ctx, an_encoding_parse(&e, ctx, text, strlen(text)));
    an_csv_source next = table_in("other.csv", "when;a\n2024-06-01;v\n;u\n");
    next.has_targets = false;
    next.encoding = e;
    OK(ctx, an_dataset_create_csv(&other, ctx, &next));
    assert_true(number_of(ctx, other, 0, 2) == 19875 && number_of(ctx, other, 1, 2) == 19861);
    an_dataset_destroy(&other);
    next = table_in("other.csv", "when;a\n01.06.2024;v\n");
    next.has_targets = false;
    next.encoding = e;
    refuse(ctx, &next,
           "other.csv: line 2, column 1: '01.06.2024' is not written as in the training data, where the cells of this "
           "column are like YYYY-MM-DD");
    an_encoding_destroy(&e);
    an_string_release(ctx, &text);
    an_dataset_destroy(&d);
    source = table_in("table.csv", "when;y\n03/04/2024;1\n05/06/2024;2\n");
    refuse(ctx, &source,
           "table.csv: column 1 ('when'): dates such as '03/04/2024' could begin with the day or with the month; set "
           "data.train.dates to day_first or month_first");
    for (int order = AN_CSV_DATES_DAY_FIRST; order <= AN_CSV_DATES_MONTH_FIRST; order++) {
        source.dates = (an_csv_dates)order;
        OK(ctx, an_dataset_create_csv(&d, ctx, &source));
        assert_true(number_of(ctx, d, 0, 0) == (order == AN_CSV_DATES_DAY_FIRST ? 19816 : 19786));
        an_dataset_destroy(&d);
    }
    static const char *const none[] = {"2023-02-29",       "2024-13-01",  "24-05-17",   "17.05.24",
                                       "2024-05-17 25:00", "2024-05-17x", "0000-01-01", "2024-05"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        bool has_time, has_zone;
        assert_int_equal(an_date_styles(none[i], strlen(none[i]), &has_time, &has_zone), 0);
    }
    end_context(&ctx);
}

/* ---- encodings ---- */

static void test_encodings(void **state) {
    an_context *ctx = new_context();
    (void)state;
    static const struct {
        const char *columns, *message;
    } bad[] = {
        {"{\"kind\": \"number\", \"notation\": \"1234.5\"}", "does not know the notation"},
        {"{\"kind\": \"number\", \"notation\": \"YYYY-MM-DD\"}", "a notation of another kind"},
        {"{\"kind\": \"date\"}", "a notation of another kind"},
        {"{\"kind\": \"category\", \"names\": [\"a\"], \"notation\": \"1234,5\"}", "a notation of another kind"},
        {"{\"kind\": \"date\", \"notation\": \"YYYY-MM-DD\", \"names\": [\"a\"]}", "has names"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        an_encoding *e = NULL;
        char text[256];
        snprintf(text, sizeof text,
                 "{\"format\": \"anneal encoding\", \"version\": 2, \"inputs\": [%s], \"targets\": []}",
                 bad[i].columns);
        assert_int_equal(an_encoding_parse(&e, ctx, text, strlen(text)), AN_ERR_PARSE);
        if (!strstr(an_last_error(ctx), bad[i].message)) fail_msg("%s: %s", bad[i].columns, an_last_error(ctx));
    }
    end_context(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),         cmocka_unit_test(test_plain), cmocka_unit_test(test_unclear_numbers),
        cmocka_unit_test(test_other_notations), cmocka_unit_test(test_dates), cmocka_unit_test(test_dates_with_gaps),
        cmocka_unit_test(test_encodings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
