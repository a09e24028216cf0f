/* model.init: weights from files into a new run; what fits, what is renamed and converted, and every refusal. */
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "base/float16.h"
#include "exec/params.h"
#include "open/open.h"
#include "store/safetensors.h"
#include "train/trainer.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */

#define SUMS "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: sum}}\n"
#define REST "run: {steps: 3, seed: 5}\nbatch: {global: 8}\n"
#define MODEL(init) "model: {type: mlp, hidden: [4], init: " init "}\n" SUMS REST
#define FROM(path) MODEL("{from: " path "}")
#define WIDE(init)                                      \
    "model: {type: mlp, hidden: [4], init: " init "}\n" \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: sum, dtype: f64}}\n" REST

/* ---- files ---- */

enum { MOST_TENSORS = 64, MOST_BYTES = 1 << 20 };

typedef struct {
    an_safetensor tensors[MOST_TENSORS];
    size_t count;
    unsigned char *data; /* MOST_BYTES */
    int64_t bytes;
} builder;

static builder begin(void) {
    builder b = {.data = calloc(1, MOST_BYTES)};
    assert_non_null(b.data);
    return b;
}

/* Numbers that every type has: a few bits of mantissa. */
static double value_of(int64_t i) {
    return (double)(i * 7 % 61 - 30) / 16;
}

static void put(unsigned char *at, const char *type, double x) {
    const float f = (float)x;
    const uint16_t bf16 = an_f32_to_bf16(f), f16 = an_f32_to_f16(f);
    if (!strcmp(type, "F64")) memcpy(at, &x, sizeof x);
    if (!strcmp(type, "F32")) memcpy(at, &f, sizeof f);
    if (!strcmp(type, "BF16")) memcpy(at, &bf16, sizeof bf16);
    if (!strcmp(type, "F16")) memcpy(at, &f16, sizeof f16);
}

static void add(builder *b, const char *name, const char *type, int ndims, int64_t rows, int64_t columns) {
    assert_true(b->count < MOST_TENSORS);
    an_safetensor *t = &b->tensors[b->count++];
    *t = (an_safetensor){.name = name,
                         .type = an_safetensors_type_named(type),
                         .ndims = ndims,
                         .dims = {rows, columns},
                         .begin = b->bytes};
    assert_true(an_safetensor_measure(t, &t->bytes) && b->bytes + t->bytes <= MOST_BYTES);
    const int64_t size = (int64_t)t->type->size;
    for (int64_t i = 0; i < t->bytes / size; i++) put(b->data + t->begin + i * size, type, value_of(i));
    b->bytes += t->bytes;
}

static void end(builder *b, const char *path) {
    write_tensors(path, b->tensors, b->count, b->data, (size_t)b->bytes);
    free(b->data);
    b->data = NULL;
}

/* The tensors of MODEL, with something before their names. */
static void write_model(const char *path, const char *type, const char *prefix) {
    static const struct {
        const char *name;
        int ndims;
        int64_t rows, columns;
    } parts[] = {
        {"hidden.0.weight", 2, 4, 2}, {"hidden.0.bias", 1, 4, 0}, {"output.weight", 2, 1, 4}, {"output.bias", 1, 1, 0}};
    char names[4][64];
    builder b = begin();
    for (int i = 3; i >= 0; i--) { /* not in the model's order */
        snprintf(names[i], sizeof names[i], "%s%s", prefix, parts[i].name);
        add(&b, names[i], type, parts[i].ndims, parts[i].rows, parts[i].columns);
    }
    end(&b, path);
}

/* ---- models ---- */

static void assert_weight(const an_trainer *t, const char *name, int64_t element, double expected) {
    const an_params *p = t->params;
    for (size_t i = 0; i < p->entry_count; i++) {
        const an_stored *e = &p->entries[i];
        if (strcmp(e->name, name) != 0) continue;
        const char *base = (const char *)an_params_base(p, e->storage) + e->offset;
        double x = 0;
        float f;
        assert_true(element < e->elements);
        if (e->dtype == AN_DTYPE_F64) memcpy(&x, base + (size_t)element * sizeof x, sizeof x);
        if (e->dtype == AN_DTYPE_F32) {
            memcpy(&f, base + (size_t)element * sizeof f, sizeof f);
            x = (double)f;
        }
        if (x != expected) fail_msg("%s[%lld] is %g, not %g", name, (long long)element, x, expected);
        return;
    }
    fail_msg("there is no %s", name);
}

static void assert_loaded(const an_trainer *t) {
    for (int64_t i = 0; i < 8; i++) assert_weight(t, "hidden.0.weight", i, value_of(i));
    for (int64_t i = 0; i < 4; i++) assert_weight(t, "hidden.0.bias", i, value_of(i));
    for (int64_t i = 0; i < 4; i++) assert_weight(t, "output.weight", i, value_of(i));
    assert_weight(t, "output.bias", 0, value_of(0));
}

static void assert_loads(const char *config) {
    an_trainer *t = open_run(config);
    assert_loaded(t);
    assert_int_equal(an_trainer_next_step(t), 0);
    train(t);
    an_trainer_destroy(&t);
}

/* ---- what works ---- */

static void test_file(void **state) {
    (void)state;
    static const char *const types[] = {"F32", "F64", "F16", "BF16"};
    write_sums();
    for (size_t i = 0; i < 4; i++) {
        write_model("w.safetensors", types[i], "");
        assert_loads(FROM("w.safetensors"));
        assert_loads(WIDE("{from: w.safetensors}"));
        assert_loads(FROM("w.safetensors") "train: {precision: bf16}\n"); /* the low copies are made from it */
    }
}

/* Rounding is to nearest, and a number that fits is taken as it is. */
static void test_rounding(void **state) {
    (void)state;
    builder b = begin();
    const double tenth = 0.1;
    const float third = 1.0f / 3;
    write_sums();
    add(&b, "hidden.0.weight", "F64", 2, 4, 2);
    add(&b, "hidden.0.bias", "F32", 1, 4, 0);
    memcpy(b.data, &tenth, sizeof tenth);
    memcpy(b.data + 64, &third, sizeof third);
    end(&b, "w.safetensors");
    an_trainer *t = open_run(MODEL("{from: w.safetensors, missing: init}"));
    assert_weight(t, "hidden.0.weight", 0, (double)0.1f);
    assert_weight(t, "hidden.0.bias", 0, (double)third);
    an_trainer_destroy(&t);
    t = open_run(WIDE("{from: w.safetensors, missing: init}"));
    assert_weight(t, "hidden.0.weight", 0, 0.1);
    assert_weight(t, "hidden.0.bias", 0, (double)third);
    an_trainer_destroy(&t);
}

/* Tensors that are larger than a piece. */
static void test_pieces(void **state) {
    (void)state;
    enum { SIDE = 300 };
    static const char *const types[] = {"F64", "BF16"};
    write_sums();
    for (int k = 0; k < 2; k++) {
        builder b = begin();
        add(&b, "hidden.1.weight", types[k], 2, SIDE, SIDE);
        end(&b, "w.safetensors");
        an_trainer *t =
            open_run("model: {type: mlp, hidden: [300, 300], init: {from: w.safetensors, missing: init}}\n" SUMS REST);
        for (int64_t i = 0; i < (int64_t)SIDE * SIDE; i += 97) assert_weight(t, "hidden.1.weight", i, value_of(i));
        assert_weight(t, "hidden.1.weight", (int64_t)SIDE * SIDE - 1, value_of((int64_t)SIDE * SIDE - 1));
        an_trainer_destroy(&t);
    }
}

/* What is missing starts as it would without a file; what nobody wants is left out. */
static void test_missing_and_unexpected(void **state) {
    (void)state;
    builder b = begin();
    write_sums();
    add(&b, "hidden.0.bias", "F32", 1, 4, 0);
    add(&b, "lm_head.weight", "I64", 2, 3, 5);
    end(&b, "w.safetensors");
    an_trainer *t = open_run(MODEL("{from: w.safetensors, missing: init, unexpected: ignore}")),
               *plain = open_run("model: {type: mlp, hidden: [4]}\n" SUMS REST);
    for (int64_t i = 0; i < 4; i++) assert_weight(t, "hidden.0.bias", i, value_of(i));
    float weight[8];
    const int64_t dims[] = {4, 2};
    an_array array = array_of(weight, AN_DTYPE_F32, 2, dims);
    OK(ctx, an_params_get(plain->params, "hidden.0.weight", AN_PART_WEIGHT, &array));
    for (int64_t i = 0; i < 8; i++) assert_weight(t, "hidden.0.weight", i, (double)weight[i]);
    an_trainer_destroy(&t);
    an_trainer_destroy(&plain);
}

static void test_run_states(void **state) {
    (void)state;
    builder b = begin();
    write_sums();
    add(&b, "hidden.0.norm.running_mean", "F32", 1, 4, 0);
    end(&b, "w.safetensors");
    an_trainer *t =
        open_run("model: {type: mlp, hidden: [4], batch_norm: on, init: {from: w.safetensors, missing: init}}\n" SUMS
                 "run: {steps: 3}\nbatch: {global: 16}\n");
    for (int64_t i = 0; i < 4; i++) assert_weight(t, "hidden.0.norm.running_mean", i, value_of(i));
    assert_weight(t, "hidden.0.norm.running_var", 0, 1);
    an_trainer_destroy(&t);
}

static void test_rename(void **state) {
    (void)state;
    write_sums();
    write_model("w.safetensors", "F32", "transformer.x.");
    assert_loads(MODEL("{from: w.safetensors, rename: {'^transformer\\.': '', 'x\\.': ''}}"));
    /* in their order, with groups, all places of a name */
    assert_loads(MODEL("{from: w.safetensors, rename: {'^transformer\\.(.)\\.(.*)$': '$2~$1', '~x': ''}}"));
    assert_loads(MODEL("{from: w.safetensors, rename: {'(transformer|x)\\.': ''}}"));
    begin_hearing();
    assert_loads(MODEL("{from: w.safetensors, rename: {'(transformer|x)\\.': '', '^module\\.': ''}}"));
    if (!strstr(heard, "'^module\\.' matches no tensor of w.safetensors")) fail_msg("heard: %s", heard);
    write_model("w.safetensors", "BF16", "");
    begin_hearing();
    assert_loads(FROM("w.safetensors"));
    if (!strstr(heard, "4 tensors have a different type than the model and were converted"))
        fail_msg("heard: %s", heard);
    write_model("w.safetensors", "F32", "");
    begin_hearing();
    assert_loads(FROM("w.safetensors"));
    assert_string_equal(heard, "");
}

/* A path is relative to the config, not to where the command runs. */
static void test_path(void **state) {
    (void)state;
    an_trainer *t = NULL;
    write_sums();
    mkdir("inside", 0777);
    write_model("inside/w.safetensors", "F32", "");
    write_text("inside/run.yaml", "model: {type: mlp, hidden: [4], init: {from: w.safetensors}}\n"
                                  "data: {train: {type: csv, path: ../sums.csv, inputs: [a, b], targets: sum}}\n" REST);
    OK(ctx, an_trainer_open(&t, ctx, "inside/run.yaml"));
    assert_loaded(t);
    an_trainer_destroy(&t);
}

/* A plan needs no weights. */
static void test_plan(void **state) {
    (void)state;
    an_trainer *t = NULL;
    an_config *c = NULL;
    an_config_options from;
    an_config_options_init(&from, sizeof from);
    an_open_options options;
    an_open_options_init(&options, sizeof options);
    from.file = "run.yaml";
    options.purpose = AN_OPEN_PLAN;
    write_sums();
    write_text("run.yaml", FROM("nowhere.safetensors"));
    OK(ctx, an_config_create(&c, ctx, &from));
    OK(ctx, an_trainer_open_with(&t, ctx, c, &options));
    an_trainer_destroy(&t);
    an_config_destroy(&c);
}

/* ---- what does not fit ---- */

static void test_all_are_listed(void **state) {
    (void)state;
    static const char *const lines[] = {
        "run.yaml:1:46: model.init: w.safetensors does not fit the model:\n",
        "\n  missing: output.weight [1, 4]\n",
        "\n  missing: output.bias [1]\n",
        "\n  unexpected: lm_head.weight [3, 5]\n",
        "\n  unexpected: h.0.attn.bias, renamed to h0.attn.bias, []\n",
        "\n  shape: hidden.0.weight [2, 4], in the model [4, 2]\n",
        "\n  type: hidden.0.bias is I64; weights are F32, F64, F16 or BF16\n",
        "\n  twice: x.hidden.0.weight, renamed to hidden.0.weight, has the same name as hidden.0.weight\n",
        "use rename to change the names in the file, missing: init to accept missing tensors",
        "and unexpected: ignore to accept unexpected ones",
    };
    builder b = begin();
    write_sums();
    add(&b, "hidden.0.weight", "F32", 2, 2, 4);
    add(&b, "hidden.0.bias", "I64", 1, 4, 0);
    add(&b, "x.hidden.0.weight", "F32", 2, 4, 2);
    add(&b, "lm_head.weight", "F32", 2, 3, 5);
    add(&b, "h.0.attn.bias", "F32", 0, 0, 0);
    end(&b, "w.safetensors");
    static const char config[] = MODEL("{from: w.safetensors, rename: {'^x\\.': '', '^h\\.(\\d)': h$1}}");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) refused(config, AN_ERR_ARGUMENT, lines[i]);
    /* what is accepted is not listed */
    refused(MODEL("{from: w.safetensors, missing: init, unexpected: ignore, rename: {'^x\\.': ''}}"), AN_ERR_ARGUMENT,
            "does not fit the model:\n  shape: ");
    assert_null(strstr(an_last_error(ctx), "lm_head"));
    assert_null(strstr(an_last_error(ctx), "output"));
}

static void test_missing_alone(void **state) {
    (void)state;
    builder b = begin();
    write_sums();
    end(&b, "w.safetensors");
    refused(FROM("w.safetensors"), AN_ERR_ARGUMENT, "does not fit the model:\n  missing: hidden.0.weight [4, 2]\n");
    an_trainer *t = open_run(MODEL("{from: w.safetensors, missing: init}"));
    an_trainer_destroy(&t);
}

/* More than a message has room for: each kind says how many more there are. */
static void test_many(void **state) {
    (void)state;
    char names[MOST_TENSORS][64];
    builder b = begin();
    write_sums();
    for (int i = 0; i < MOST_TENSORS; i++) {
        snprintf(names[i], sizeof names[i], "transformer.h.%d.attn.c_attn.weight", i);
        add(&b, names[i], "F32", 1, 1, 0);
    }
    end(&b, "w.safetensors");
    refused(FROM("w.safetensors"), AN_ERR_ARGUMENT, "\n  unexpected: transformer.h.0.attn.c_attn.weight [1]\n");
    const char *message = an_last_error(ctx), *more = strstr(message, "\n  unexpected: and ");
    int lines = 0;
    assert_non_null(more);
    for (const char *c = message; (c = strstr(c, "\n  unexpected: transformer")); c++) lines++;
    assert_true(lines >= 5 && lines <= 20);
    assert_int_equal(strtol(more + strlen("\n  unexpected: and "), NULL, 10), MOST_TENSORS - lines);
    assert_non_null(strstr(message, "\n  missing: output.bias [1]\n"));
    assert_non_null(strstr(message, "use rename to change the names in the file, missing: init to accept missing "
                                    "tensors, and unexpected: ignore to accept unexpected ones"));
}

static void test_bad_renames(void **state) {
    (void)state;
    write_sums();
    write_model("w.safetensors", "F32", "");
    refused(MODEL("{from: w.safetensors, rename: {'(': a}}"), AN_ERR_ARGUMENT,
            "run.yaml:1:46: model.init: the pattern '(' of rename is not a valid regular expression:");
    refused(MODEL("{from: w.safetensors, rename: {hidden: $9}}"), AN_ERR_ARGUMENT,
            "model.init: renaming 'hidden.0.bias' by 'hidden: $9' failed:");
    write_model("w.safetensors", "F32", "a.name.that.takes.long.");
    refused(MODEL("{from: w.safetensors, rename: {'(.+)+[~!]': a}}"), AN_ERR_ARGUMENT, "match limit exceeded");
    char config[2048] = "model: {type: mlp, hidden: [4], init: {from: w.safetensors, rename: {'.': '";
    for (int i = 0; i < 300; i++) strcat(config, "long");
    strcat(config, "'}}}\n" SUMS REST);
    refused(config, AN_ERR_ARGUMENT, "the name would be too long");
    /* a name that is longer than any of a model */
    char name[2000];
    builder b = begin();
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    add(&b, name, "F32", 1, 1, 0);
    end(&b, "w.safetensors");
    refused(MODEL("{from: w.safetensors, rename: {n: ''}}"), AN_ERR_ARGUMENT, "\n  unexpected: nnnnn");
    an_trainer *t = open_run(MODEL("{from: w.safetensors, unexpected: ignore, missing: init, rename: {n: ''}}"));
    an_trainer_destroy(&t);
}

/* ---- files that are none ---- */

static void test_no_files(void **state) {
    (void)state;
    write_sums();
    refused(FROM("nowhere"), AN_ERR_FILE, "run.yaml:1:46: model.init: nowhere: cannot be opened:");
    write_text("w.safetensors", "{}");
    refused(FROM("w.safetensors"), AN_ERR_DAMAGED, "run.yaml:1:46: model.init: w.safetensors: byte 0: ");
    mkdir("empty", 0777);
    refused(FROM("empty"), AN_ERR_FILE,
            "model.init: empty: has neither model.safetensors nor model.safetensors.index.json");
    unlink("pipe");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    refused(FROM("pipe"), AN_ERR_FILE, "pipe: is a pipe, not a file");
}

/* ---- folders of Hugging Face ---- */

static void write_index(const char *text) {
    write_text("hub/model.safetensors.index.json", text);
}

static void test_folder(void **state) {
    (void)state;
    write_sums();
    mkdir("single", 0777);
    write_model("single/model.safetensors", "F16", "");
    assert_loads(FROM("single"));
    assert_loads(FROM("single/"));
    mkdir("hub", 0777);
    builder b = begin();
    add(&b, "hidden.0.weight", "F32", 2, 4, 2);
    add(&b, "output.bias", "BF16", 1, 1, 0);
    end(&b, "hub/model-00001-of-00002.safetensors");
    b = begin();
    add(&b, "hidden.0.bias", "F32", 1, 4, 0);
    add(&b, "output.weight", "F64", 2, 1, 4);
    end(&b, "hub/model-00002-of-00002.safetensors");
    write_index("{\"metadata\": {\"total_size\": 58}, \"weight_map\": {"
                "\"hidden.0.bias\": \"model-00002-of-00002.safetensors\", "
                "\"hidden.0.weight\": \"model-00001-of-00002.safetensors\", "
                "\"output.bias\": \"model-00001-of-00002.safetensors\", "
                "\"output.weight\": \"model-00002-of-00002.safetensors\"}}\n");
    assert_loads(FROM("hub"));
}

static const struct {
    const char *index;
    an_status status;
    const char *words;
} bad_indices[] = {
    {"", AN_ERR_DAMAGED, "hub/model.safetensors.index.json: byte 0: "},
    {"[]", AN_ERR_DAMAGED, "index.json: byte 0: "},
    {"{}", AN_ERR_DAMAGED, "index.json: has no weight_map"},
    {"{\"weight_map\": 3}", AN_ERR_DAMAGED, "index.json: byte 15: "},
    {"{\"weight_map\": {\"a\": 3}}", AN_ERR_DAMAGED, "index.json: byte 21: "},
    {"{\"weight_map\": {}} x", AN_ERR_DAMAGED, "index.json: byte 19: "},
    {"{\"weight_map\": {}, \"weight_map\": {}}", AN_ERR_DAMAGED, "weight_map appears twice"},
    {"{\"weight_map\": {\"a\": \"../w\"}}", AN_ERR_DAMAGED,
     ": names the file '../w', but the files of an index must be in the same folder"},
    {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", AN_ERR_DAMAGED, "names the file '/etc/passwd'"},
    {"{\"weight_map\": {\"a\": \"..\"}}", AN_ERR_DAMAGED, "names the file '..'"},
    {"{\"weight_map\": {\"a\": \".\"}}", AN_ERR_DAMAGED, "names the file '.'"},
    {"{\"weight_map\": {\"a\": \"\"}}", AN_ERR_DAMAGED, "names the file ''"},
    {"{\"weight_map\": {\"a\": \"nowhere\"}}", AN_ERR_FILE, "hub/nowhere: cannot be opened: "},
    {"{\"weight_map\": {\"a\": \"link\"}}", AN_ERR_FILE, "hub/link: cannot be opened: it is a link"},
    {"{\"weight_map\": {\"a\": \"pipe\"}}", AN_ERR_FILE, "hub/pipe: is not a file"},
    {"{\"weight_map\": {\"a\": \"folder\"}}", AN_ERR_FILE, "hub/folder: is not a file"},
    {"{\"weight_map\": {\"a\": \"part\"}}", AN_ERR_DAMAGED, "says that 'a' is in part, but that file does not have it"},
    {"{\"weight_map\": {\"hidden.0.bias\": \"part\", \"hidden.0.bias\": \"other\"}}", AN_ERR_ARGUMENT,
     "\n  twice: hidden.0.bias has the same name as hidden.0.bias"},
};

static void test_bad_indices(void **state) {
    (void)state;
    write_sums();
    mkdir("hub", 0777);
    for (int i = 0; i < 2; i++) {
        builder b = begin();
        add(&b, "hidden.0.bias", "F32", 1, 4, 0);
        end(&b, i ? "hub/other" : "hub/part");
    }
    unlink("hub/link");
    unlink("hub/pipe");
    assert_int_equal(symlink("../sums.csv", "hub/link"), 0);
    assert_int_equal(mkfifo("hub/pipe", 0600), 0);
    mkdir("hub/folder", 0777);
    for (size_t i = 0; i < sizeof bad_indices / sizeof *bad_indices; i++) {
        write_index(bad_indices[i].index);
        refused(FROM("hub"), bad_indices[i].status, bad_indices[i].words);
    }
    /* as many files as it likes are not opened */
    char *many = calloc(1, 1 << 16);
    size_t used = (size_t)snprintf(many, 1 << 16, "{\"weight_map\": {");
    for (int i = 0; i < 600; i++) {
        char name[32];
        snprintf(name, sizeof name, "hub/many-%d", i);
        builder b = begin();
        add(&b, "a", "F32", 1, 1, 0);
        end(&b, name);
        used += (size_t)snprintf(many + used, (1 << 16) - used, "%s\"a\": \"many-%d\"", i ? ", " : "", i);
    }
    snprintf(many + used, (1 << 16) - used, "}}");
    write_index(many);
    free(many);
    refused(FROM("hub"), AN_ERR_UNSUPPORTED, "names more than 512 files");
    write_index("");
    assert_int_equal(truncate("hub/model.safetensors.index.json", 100000001), 0);
    refused(FROM("hub"), AN_ERR_UNSUPPORTED, "an index of tensors has at most 100000000");
    unlink("hub/model.safetensors.index.json");
}

/* Every allocation may fail, and all is given back. */
static void test_memory(void **state) {
    (void)state;
    an_config *c = NULL;
    write_sums();
    write_model("w.safetensors", "F64", "x.");
    an_trainer *t = open_with_config(MODEL("{from: w.safetensors, rename: {'^x\\.': ''}}"), &c);
    init_without_memory(t, c, AN_OK, 100);
    assert_loaded(t);
    an_trainer_destroy(&t);
    an_config_destroy(&c);
}

/* ---- checkpoints ---- */

/* The weights of a run, by its folder and by that of one checkpoint; moments are not asked for. What is damaged is no beginning. */
static void test_checkpoint(void **state) {
    (void)state;
    char folder[] = "saved-XXXXXX", config[1024], place[512], byte;
    an_checkpoint *checkpoint = NULL;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    write_sums();
    write_model("w.safetensors", "F32", "");
    assert_non_null(mkdtemp(folder));
    snprintf(config, sizeof config,
             "run: {dir: %s, steps: 3, seed: 5}\nbatch: {global: 8}\noptimizer: {lr: 0}\nsave: {writers: 3}\n" SUMS
             "model: {type: mlp, hidden: [4], init: {from: w.safetensors}}\n",
             folder);
    an_trainer *t = open_run(config);
    train(t); /* by nothing */
    OK(ctx, an_trainer_save(t, 7));
    an_trainer_destroy(&t);
    OK(ctx, an_checkpoint_open(&checkpoint, ctx, folder));
    OK(ctx, an_checkpoint_info_get(checkpoint, &info));
    assert_int_equal(info.tensors, 12);
    snprintf(place, sizeof place, "%s", info.path);
    an_checkpoint_close(&checkpoint);
    snprintf(config, sizeof config, "model: {type: mlp, hidden: [4], init: {from: %s}}\n" SUMS REST, folder);
    assert_loads(config);
    snprintf(config, sizeof config, "model: {type: mlp, hidden: [4], init: {from: %s}}\n" SUMS REST, place);
    assert_loads(config);
    snprintf(place + strlen(place), sizeof place - strlen(place), "/part-00001.safetensors");
    FILE *file = fopen(place, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -1, SEEK_END) | (fread(&byte, 1, 1, file) != 1) | fseek(file, -1, SEEK_END), 0);
    byte = (char)(byte ^ 1);
    assert_int_equal(fwrite(&byte, 1, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    refused(config, AN_ERR_DAMAGED, place);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rounding, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_and_unexpected, setup, teardown),
        cmocka_unit_test_setup_teardown(test_run_states, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rename, setup, teardown),
        cmocka_unit_test_setup_teardown(test_path, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plan, setup, teardown),
        cmocka_unit_test_setup_teardown(test_all_are_listed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_renames, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_indices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_checkpoint, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
