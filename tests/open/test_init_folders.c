/* model.init: weights from folders into a new run, those of Hugging Face and checkpoints. */
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/checkpoint.h"

#include "open/init_model.h" /* last, as its ctx would be shadowed */

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
    {"{\"weight_map\": {\"a\": \"no\\u001b[2Jwhere\"}}", AN_ERR_FILE, "hub/no?[2Jwhere: cannot be opened: "},
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

/* ---- checkpoints ---- */

/* The weights of a run, by its folder and by that of one checkpoint; moments are not asked for. What is
 * damaged is no beginning. */
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
        cmocka_unit_test_setup_teardown(test_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_indices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_checkpoint, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
