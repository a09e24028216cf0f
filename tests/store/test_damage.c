/* Damage is seen: every single bit of a checkpoint that is another one, every length that is shorter, files that are
 * missing, swapped, of another step or too many. Each is refused when the checkpoint is verified and when it is loaded,
 * and the message names the file.
 *     test_store_damage [STRIDE [NUMBERS]]     every STRIDEth bit and length only; of the numbers of tensors, whose
 *     bytes are hashed and not
 *                                              looked at, every NUMBERSth */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "open/support.h"

/* 64 KiB in all, the moments of AdamW included. */
#define CONFIG(dir)                                                                            \
    "run: {dir: " dir ", steps: 8, seed: 5}\nmodel: {type: mlp, hidden: [62, 62]}\n"           \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n" \
    "batch: {global: 8}\ntrain: {precision: f32}\nsave: {writers: 3}\n"
enum { LEAST_BITS = 524288, MOST_FILES = 16, PATH = 256, FIRST = 3, SECOND = 5 };

static const char first[] = "damage/checkpoints/step-00000003-1-at-3",
                  second[] = "damage/checkpoints/step-00000005-1-at-5";
static char state_at_first[AN_HASH_TEXT];
static an_trainer *reader;
static size_t stride = 1, number_stride = 1;

typedef struct {
    char path[PATH];
    const char *name; /* in it */
    unsigned char *bytes;
    size_t size;
} kept_file;

static kept_file files[MOST_FILES];
static size_t file_count;

/* ---- a run with two checkpoints, and a trainer that reads ---- */

static void join(char path[PATH], const char *folder, const char *name) {
    assert_true(snprintf(path, PATH, "%s/%s", folder, name) < PATH);
}

static void keep_files(void) {
    DIR *folder = opendir(first);
    const struct dirent *entry;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        if (*entry->d_name == '.') continue;
        assert_true(file_count < MOST_FILES);
        kept_file *f = &files[file_count++];
        struct stat found;
        join(f->path, first, entry->d_name);
        f->name = strrchr(f->path, '/') + 1;
        assert_int_equal(stat(f->path, &found), 0);
        f->size = (size_t)found.st_size;
        f->bytes = malloc(f->size);
        assert_non_null(f->bytes);
        FILE *file = fopen(f->path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(f->bytes, 1, f->size, file), f->size);
        fclose(file);
    }
    closedir(folder);
}

static an_trainer *open_fresh(const char *text) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    options.file = "run.yaml";
    options.text = text;
    options.length = strlen(text);
    open.fresh = true;
    OK(ctx, an_config_create(&config, ctx, &options));
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, &open));
    an_config_destroy(&config);
    return trainer;
}

static int make_checkpoints(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    if (setup(state)) return 1;
    if (system("rm -rf damage other") != 0) return 1; /* NOLINT(cert-env33-c): the test's own folder */
    write_sums();
    an_trainer *trainer = open_fresh(CONFIG("damage"));
    for (int i = 1; i <= SECOND; i++) {
        OK(ctx, an_trainer_step(trainer, &metrics));
        if (i != FIRST && i != SECOND) continue;
        if (i == FIRST) OK(ctx, an_trainer_state_hash(trainer, state_at_first));
        OK(ctx, an_trainer_save(trainer, i));
    }
    an_trainer_destroy(&trainer);
    keep_files();
    reader = open_fresh(CONFIG("other"));
    return 0;
}

static int remove_all(void **state) {
    an_trainer_destroy(&reader);
    for (size_t i = 0; i < file_count; i++) free(files[i].bytes);
    return teardown(state);
}

/* ---- what is asked of every damage ---- */

static void check_message(an_status status, const char *path, const char *what, size_t at) {
    const char *message = an_last_error(ctx);
    const size_t length = strlen(path);
    if (status != AN_ERR_DAMAGED)
        fail_msg("%s, %s %zu: %s: %s", path, what, at, an_status_name(status), status == AN_OK ? "accepted" : message);
    if (strncmp(message, path, length) != 0 || message[length] != ':')
        fail_msg("%s, %s %zu: the message does not begin with the file: %s", path, what, at, message);
}

static void is_refused(const char *path, const char *what, size_t at) {
    check_message(an_checkpoint_verify(ctx, first), path, what, at);
    check_message(an_trainer_load(reader, first), path, what, at);
}

/* Of the two parts that are swapped the first that is read is named. */
static void one_is_refused(const char *path, const char *other) {
    const an_status verified = an_checkpoint_verify(ctx, first);
    check_message(verified, strncmp(an_last_error(ctx), other, strlen(other)) != 0 ? path : other, "swapped", 0);
    const an_status loaded = an_trainer_load(reader, first);
    check_message(loaded, strncmp(an_last_error(ctx), other, strlen(other)) != 0 ? path : other, "swapped", 0);
}

/* Also that what was put back is good, so that nothing was refused for another reason. */
static void is_good(void) {
    char hash[AN_HASH_TEXT];
    OK(ctx, an_checkpoint_verify(ctx, first));
    OK(ctx, an_checkpoint_verify(ctx, "damage"));
    an_trainer *trainer = open_fresh(CONFIG("other"));
    OK(ctx, an_trainer_load(trainer, first));
    OK(ctx, an_trainer_state_hash(trainer, hash));
    assert_string_equal(hash, state_at_first);
    an_trainer_destroy(&trainer);
}

static size_t stride_of(const kept_file *f, size_t at) {
    enum { HEADER = 1024 }; /* at most, of a file of tensors; it is text */
    return at < HEADER || strncmp(f->name, "part-", 5) != 0 ? stride : number_stride;
}

static int open_file(const kept_file *f) {
    const int file = open(f->path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0);
    return file;
}

static void write_back(const kept_file *f, int file) {
    assert_int_equal(pwrite(file, f->bytes, f->size, 0), f->size);
    assert_int_equal(ftruncate(file, (off_t)f->size), 0);
    assert_int_equal(close(file), 0);
}

/* ---- bits and lengths ---- */

static void test_every_bit(void **state) {
    size_t bits = 0, tried = 0;
    (void)state;
    is_good();
    for (size_t i = 0; i < file_count; i++) {
        const kept_file *f = &files[i];
        const int file = open_file(f);
        for (size_t at = 0; at < f->size; at++)
            for (unsigned bit = 0; bit < 8; bit++, bits++) {
                if (bits % stride_of(f, at)) continue;
                tried++;
                const unsigned char flipped = (unsigned char)(f->bytes[at] ^ 1U << bit);
                assert_int_equal(pwrite(file, &flipped, 1, (off_t)at), 1);
                is_refused(f->path, "bit", at * 8 + bit);
                assert_int_equal(pwrite(file, &f->bytes[at], 1, (off_t)at), 1);
            }
        write_back(f, file);
    }
    is_good();
    print_message("%zu of %zu bits in %zu files\n", tried, bits, file_count);
    assert_true(bits >= LEAST_BITS);
}

static void test_every_length(void **state) {
    (void)state;
    for (size_t i = 0; i < file_count; i++) {
        const kept_file *f = &files[i];
        const int file = open_file(f);
        for (size_t length = f->size; length-- > 0;) {
            if (length % stride_of(f, length)) continue;
            assert_int_equal(ftruncate(file, (off_t)length), 0);
            is_refused(f->path, "length", length);
        }
        assert_int_equal(pwrite(file, f->bytes, f->size, 0), f->size);
        assert_int_equal(pwrite(file, "\n", 1, (off_t)f->size), 1); /* and one byte more */
        is_refused(f->path, "length", f->size + 1);
        write_back(f, file);
    }
    is_good();
}

/* ---- files ---- */

static void test_every_missing_file(void **state) {
    (void)state;
    for (size_t i = 0; i < file_count; i++) {
        assert_int_equal(rename(files[i].path, "aside"), 0);
        is_refused(files[i].path, "missing", 0);
        assert_int_equal(rename("aside", files[i].path), 0);
    }
    is_good();
}

static void test_swapped_parts(void **state) {
    (void)state;
    for (size_t i = 0; i < file_count; i++)
        for (size_t k = i + 1; k < file_count; k++) {
            if (strncmp(files[i].name, "part-", 5) != 0 || strncmp(files[k].name, "part-", 5) != 0) continue;
            assert_int_equal(rename(files[i].path, "aside"), 0);
            assert_int_equal(rename(files[k].path, files[i].path), 0);
            assert_int_equal(rename("aside", files[k].path), 0);
            one_is_refused(files[i].path, files[k].path);
            assert_int_equal(rename(files[i].path, "aside"), 0);
            assert_int_equal(rename(files[k].path, files[i].path), 0);
            assert_int_equal(rename("aside", files[k].path), 0);
        }
    is_good();
}

/* Of another step of the same run, so that only the bytes tell. Where both have the same there is nothing to tell; a
 * manifest is good by itself and does not fit the files that it finds. */
static void test_files_of_another_step(void **state) {
    size_t replaced = 0;
    (void)state;
    for (size_t i = 0; i < file_count; i++) {
        const kept_file *f = &files[i];
        char path[PATH];
        if (!strcmp(f->name, "config.yaml") || !strcmp(f->name, "graph.ang")) continue;
        const bool is_manifest = !strcmp(f->name, "manifest.json");
        join(path, second, f->name);
        assert_int_equal(rename(f->path, "aside"), 0);
        assert_int_equal(link(path, f->path), 0);
        if (is_manifest) {
            assert_int_equal(an_checkpoint_verify(ctx, first), AN_ERR_DAMAGED);
            assert_non_null(strstr(an_last_error(ctx), first));
            assert_int_equal(an_trainer_load(reader, first), AN_ERR_DAMAGED);
        } else {
            is_refused(f->path, "of another step", 0);
        }
        assert_int_equal(rename("aside", f->path), 0);
        replaced++;
    }
    assert_int_equal(replaced, 5); /* three parts, metrics and the manifest */
    is_good();
}

/* What was not written by us is no part of it; what a file system keeps of removed files is nobody's. */
static void test_something_else_in_the_folder(void **state) {
    static const char *const names[] = {"part-00003.safetensors", "manifest.json~", ".hidden", "x"};
    char path[PATH];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        join(path, first, names[i]);
        write_text(path, "");
        check_message(an_checkpoint_verify(ctx, first), path, "a file more", 0);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkdir(path, 0777), 0);
        check_message(an_checkpoint_verify(ctx, first), path, "a folder more", 0);
        assert_int_equal(rmdir(path), 0);
    }
    join(path, first, ".nfs0000000000000001");
    write_text(path, "");
    OK(ctx, an_checkpoint_verify(ctx, first));
    assert_int_equal(unlink(path), 0);
    is_good();
}

int main(int count, char **arguments) {
    if (count > 1) stride = number_stride = strtoul(arguments[1], NULL, 10);
    if (count > 2) number_stride = strtoul(arguments[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_every_missing_file),
        cmocka_unit_test(test_swapped_parts),
        cmocka_unit_test(test_files_of_another_step),
        cmocka_unit_test(test_something_else_in_the_folder),
    };
    return cmocka_run_group_tests(tests, make_checkpoints, remove_all);
}
