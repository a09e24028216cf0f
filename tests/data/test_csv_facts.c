/* What a table contains, before it is decided which columns are inputs. */
#include "data/support.h"

static an_csv_facts *look_at(an_context *ctx, const char *text, char delimiter) {
    an_csv_facts *facts = NULL;
    write_text("table.csv", text);
    OK(ctx, an_csv_facts_create(&facts, ctx, "table.csv", delimiter));
    return facts;
}

static an_csv_info info_of(an_context *ctx, const an_csv_facts *facts) {
    an_csv_info info;
    an_csv_info_init(&info, sizeof info);
    OK(ctx, an_csv_facts_info(facts, &info));
    return info;
}

static an_csv_column column_of(an_context *ctx, const an_csv_facts *facts, int64_t index) {
    an_csv_column column;
    an_csv_column_init(&column, sizeof column);
    OK(ctx, an_csv_facts_column(facts, index, &column));
    return column;
}

/* "a 2, b 1" */
static void check_values(const an_csv_facts *facts, int64_t index, const char *expected) {
    char text[256] = "";
    int64_t count = 0;
    const char *value;
    for (int64_t i = 0; (value = an_csv_facts_value(facts, index, i, &count)); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %d", i ? ", " : "", value, (int)count);
    assert_string_equal(text, expected);
}

static void test_cells_are_counted(void **state) {
    an_context *ctx = new_context();
    (void)state;
    const size_t before = an_context_bytes(ctx);
    an_csv_facts *facts =
        look_at(ctx, "size,\"a \"\"b\"\"\",n,\n1.5,red,3,x\n-2,?,4,y\nNA,\"red\",3,\n7,blue,3,z\n", 0);
    const an_csv_info info = info_of(ctx, facts);
    assert_int_equal(info.rows, 4);
    assert_int_equal(info.columns, 4);
    assert_int_equal(info.delimiter, ',');
    assert_true(info.header);
    an_csv_column c = column_of(ctx, facts, 0);
    assert_string_equal(c.name, "size");
    assert_int_equal(c.numbers, 3);
    assert_int_equal(c.texts, 0);
    assert_int_equal(c.missing, 1);
    assert_int_equal(c.values, 3);
    assert_true(c.minimum == -2 && c.maximum == 7 && !c.whole);
    c = column_of(ctx, facts, 1);
    assert_string_equal(c.name, "a \"b\"");
    assert_int_equal(c.texts, 3);
    assert_int_equal(c.missing, 1);
    check_values(facts, 1, "blue 1, red 2");
    c = column_of(ctx, facts, 2);
    assert_true(c.whole && c.minimum == 3 && c.maximum == 4);
    check_values(facts, 2, "3 3, 4 1");
    c = column_of(ctx, facts, 3);
    assert_null(c.name); /* an empty cell of the header is no name */
    assert_null(an_csv_facts_value(facts, 4, 0, NULL));
    assert_null(an_csv_facts_value(facts, -1, 0, NULL));
    FAILS(ctx, an_csv_facts_column(facts, 4, &c), AN_ERR_ARGUMENT, "the table has no column 4; it has 4 columns");
    an_csv_facts_destroy(&facts);
    assert_int_equal(an_context_bytes(ctx), before);
    end_context(&ctx);
}

static void test_headers(void **state) {
    static const struct {
        const char *text;
        bool header;
        int rows;
    } tables[] = {{"a,b\n1,2\n", true, 1},
                  {"1,2\n3,4\n", false, 2},
                  {"5.1,setosa\n4.9,setosa\n", false, 2},        /* a number is no name */
                  {"y,n,left\ny,y,right\nn,n,left\n", false, 3}, /* cells that appear below again */
                  {"vote,other,party\ny,y,right\nn,n,left\n", true, 2},
                  {"y,?,left\nn,n,right\n", false, 2}};
    an_context *ctx = new_context();
    (void)state;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        an_csv_facts *facts = look_at(ctx, tables[i].text, 0);
        const an_csv_info info = info_of(ctx, facts);
        if (info.header != tables[i].header || info.rows != tables[i].rows)
            fail_msg("table %d: header %d, %d rows", (int)i, info.header, (int)info.rows);
        an_csv_facts_destroy(&facts);
    }
    an_csv_facts *facts = look_at(ctx, "y,n,left\ny,y,right\nn,n,left\n", 0);
    check_values(facts, 0, "n 1, y 2"); /* the first line too */
    check_values(facts, 2, "left 2, right 1");
    an_csv_facts_destroy(&facts);
    end_context(&ctx);
}

static void test_delimiters(void **state) {
    an_context *ctx = new_context();
    (void)state;
    static const struct {
        const char *text;
        char given, found;
        int columns;
    } tables[] = {{"a;b;c\n1,5;2;3\n", 0, ';', 3}, {"a\tb\n1\t2\n", 0, '\t', 2}, {"a|b\n1|2\n", 0, '|', 2},
                  {"a\n1\n", 0, ',', 1},           {"a;b\n1;2\n", ',', ',', 1},  {"a,b;c\n\"1,;\",2;3\n", 0, ',', 2}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        an_csv_facts *facts = look_at(ctx, tables[i].text, tables[i].given);
        const an_csv_info info = info_of(ctx, facts);
        if (info.delimiter != tables[i].found || info.columns != tables[i].columns)
            fail_msg("table %d: delimiter '%c', %d columns", (int)i, info.delimiter, (int)info.columns);
        an_csv_facts_destroy(&facts);
    }
    an_context_destroy(&ctx);
}

/* Memory does not grow with the different cells of a column beyond the most that are told apart. */
static void test_notations(void **state) {
    an_context *ctx = new_context();
    (void)state;
    an_csv_facts *facts =
        look_at(ctx, "1,5;17.05.2024;1,234;03/04/2024;x;$5;7\n2,5;01.02.2024;5,678;05/06/2024;y;€5;8\n", 0);
    static const struct {
        an_csv_kind kind;
        const char *notation, *example;
    } expected[] = {{AN_CSV_KIND_NUMBER, "1234,5", "1,5"},
                    {AN_CSV_KIND_DATE, "DD.MM.YYYY", "17.05.2024"},
                    {AN_CSV_KIND_UNCLEAR_NUMBER, NULL, "1,234"},
                    {AN_CSV_KIND_UNCLEAR_DATE, NULL, "03/04/2024"},
                    {AN_CSV_KIND_PLAIN, NULL, NULL},
                    {AN_CSV_KIND_MIXED, NULL, "$5"},
                    {AN_CSV_KIND_PLAIN, NULL, NULL}};
    assert_int_equal(info_of(ctx, facts).columns, 7);
    assert_false(info_of(ctx, facts).header);
    for (int64_t i = 0; i < 7; i++) {
        const an_csv_column c = column_of(ctx, facts, i);
        assert_int_equal(c.kind, expected[i].kind);
        assert_int_equal(c.numbers + c.texts, 2); /* plain numbers, and all else, as ever */
        assert_string_equal(c.notation ? c.notation : "", expected[i].notation ? expected[i].notation : "");
        assert_string_equal(c.example ? c.example : "", expected[i].example ? expected[i].example : "");
    }
    an_csv_facts_destroy(&facts);
    /* Commas of numbers are no delimiters; others are. */
    facts = look_at(ctx, "1,5;2,5\n3,5;4,5\n", 0);
    assert_int_equal(info_of(ctx, facts).delimiter, ';');
    an_csv_facts_destroy(&facts);
    facts = look_at(ctx, "a,b;c,d\ne,f;g,h\n", 0);
    assert_int_equal(info_of(ctx, facts).delimiter, ',');
    an_csv_facts_destroy(&facts);
    end_context(&ctx);
}

static void test_too_many_values(void **state) {
    an_context *ctx = new_context();
    (void)state;
    size_t bytes[2];
    for (int k = 0; k < 2; k++) {
        FILE *file = fopen("table.csv", "w");
        assert_non_null(file);
        fprintf(file, "x,y\n");
        for (int i = 0; i < (k ? 20 : 2) * AN_CSV_MOST_VALUES; i++) fprintf(file, "%d,%d\n", 100000 + i, i % 10);
        fclose(file);
        an_csv_facts *facts = NULL;
        const size_t before = an_context_bytes(ctx);
        OK(ctx, an_csv_facts_create(&facts, ctx, "table.csv", 0));
        bytes[k] = an_context_bytes(ctx) - before;
        assert_true(column_of(ctx, facts, 0).values > AN_CSV_MOST_VALUES);
        assert_null(an_csv_facts_value(facts, 0, 0, NULL));
        assert_int_equal(column_of(ctx, facts, 1).values, 10);
        an_csv_facts_destroy(&facts);
    }
    assert_int_equal(bytes[0], bytes[1]);
    end_context(&ctx);
}

static void test_several_files(void **state) {
    an_context *ctx = new_context();
    (void)state;
    an_csv_facts *facts = NULL;
    write_text("part-1.csv", "x,y\n1,a\n");
    write_text("part-2.csv", "x,y\n2,b\n3,b\n");
    OK(ctx, an_csv_facts_create(&facts, ctx, "part-*.csv", 0));
    assert_int_equal(info_of(ctx, facts).rows, 3);
    check_values(facts, 1, "a 1, b 2");
    an_csv_facts_destroy(&facts);
    end_context(&ctx);
}

static void test_mistakes(void **state) {
    static const struct {
        const char *text, *message;
    } tables[] = {{"", "table.csv: line 1: the table is empty"},
                  {"a,b\n", "the table has a header and no rows"},
                  {"a,b\n1,2\n1,2,3\n", "table.csv: line 3: this line has 3 columns, but the first line has 2"},
                  {"a,b\n1,\"2\n", "has an opening quote without a closing one"}};
    an_context *ctx = new_context();
    (void)state;
    const size_t before = an_context_bytes(ctx);
    an_csv_facts *facts = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        write_text("table.csv", tables[i].text);
        FAILS(ctx, an_csv_facts_create(&facts, ctx, "table.csv", 0), AN_ERR_PARSE, tables[i].message);
        assert_null(facts);
        assert_int_equal(an_context_bytes(ctx), before);
    }
    FAILS(ctx, an_csv_facts_create(&facts, ctx, "table.csv", '1'), AN_ERR_ARGUMENT, "cannot be a delimiter");
    FAILS(ctx, an_csv_facts_create(&facts, ctx, "", 0), AN_ERR_ARGUMENT, "has no name");
    an_context_destroy(&ctx);
}

/* Every allocation fails once: an error, and nothing is lost. */
static void test_memory(void **state) {
    an_context *ctx = NULL;
    ledger l = {0};
    (void)state;
    write_text("table.csv", "size,kind\n1.5,a\n2,b\n3,a\n4,c\n");
    assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
    const size_t before = l.held;
    an_csv_facts *facts = NULL;
    an_status status = AN_ERR_MEMORY;
    l.once = true;
    for (int n = 1; status != AN_OK; n++) {
        l.fail_at = l.calls + n;
        status = an_csv_facts_create(&facts, ctx, "table.csv", 0);
        if (status != AN_OK) assert_int_equal(l.held, before);
    }
    l.fail_at = 0;
    check_values(facts, 1, "a 2, b 1, c 1");
    an_csv_facts_destroy(&facts);
    assert_int_equal(l.held, before);
    an_context_destroy(&ctx);
    assert_int_equal(l.held, 0);
    assert_false(l.mismatch);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells_are_counted), cmocka_unit_test(test_headers),
                                       cmocka_unit_test(test_delimiters),        cmocka_unit_test(test_notations),
                                       cmocka_unit_test(test_too_many_values),   cmocka_unit_test(test_several_files),
                                       cmocka_unit_test(test_mistakes),          cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
