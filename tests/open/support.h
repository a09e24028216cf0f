/* Runs from configs, for tests: files in the test's own folder, opened, trained, refused. */
#ifndef TESTS_TRAIN_OPEN_SUPPORT_H
#define TESTS_TRAIN_OPEN_SUPPORT_H

#include <sys/stat.h>

#include "anneal/train.h"
#include "support/support.h"

static an_context *ctx;
static ledger counted;

static inline int setup(void **state) {
    (void)state;
    return context_with_ledger(&ctx, &counted, 2) != AN_OK;
}

static inline int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return counted.held != 0 || counted.mismatch;
}

static inline void write_file(const char *name, const void *bytes, size_t length) {
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *name, const char *text) {
    write_file(name, text, strlen(text));
}

static inline an_trainer *open_run(const char *config) {
    an_trainer *trainer = NULL;
    write_text("run.yaml", config);
    OK(ctx, an_trainer_open(&trainer, ctx, "run.yaml", NULL));
    return trainer;
}

/* Takes all steps; gives the last loss. */
static inline double train(an_trainer *trainer) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    while (an_trainer_next_step(trainer) < an_trainer_steps(trainer)) OK(ctx, an_trainer_step(trainer, &metrics));
    return metrics.loss;
}

static inline void refused(const char *config, an_status status, const char *words) {
    an_trainer *trainer = NULL;
    write_text("run.yaml", config);
    const an_status given = an_trainer_open(&trainer, ctx, "run.yaml", NULL);
    if (given != status) fail_msg("%s, not %s: %s", an_status_name(given), an_status_name(status), an_last_error(ctx));
    assert_null(trainer);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
}

/* Columns a, b, their sum, and 0, 1 or 2 for how large it is. */
static inline void write_sums(void) {
    enum { ROWS = 96 };
    char text[ROWS * 48] = "a,b,sum,class\n";
    size_t length = strlen(text);
    for (int i = 0; i < ROWS; i++) {
        const double a = i % 11 / 10.0, b = i % 7 / 6.0;
        length += (size_t)snprintf(text + length, sizeof text - length, "%.3f,%.3f,%.3f,%d\n", a, b, a + b,
                                   a + b < 0.7   ? 0
                                   : a + b < 1.3 ? 1
                                                 : 2);
    }
    write_file("sums.csv", text, length);
}

/* Images of 6 × 6 in which class c has line c bright. */
static inline void write_images(void) {
    enum { IMAGES = 40, SIDE = 6, HEAD = 16 };
    unsigned char images[HEAD + IMAGES * SIDE * SIDE] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    unsigned char labels[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    for (int i = 0; i < IMAGES; i++) {
        labels[8 + i] = (unsigned char)(i % 4);
        for (int k = 0; k < SIDE; k++) images[HEAD + (i * SIDE + i % 4) * SIDE + k] = (unsigned char)(200 + i);
    }
    write_file("images.idx", images, sizeof images);
    write_file("labels.idx", labels, sizeof labels);
}

/* x.npy, an array of six numbers, and x.jsonl, four records. */
static inline void write_array(void) {
    enum { HEAD = 10, TEXT = 118 }; /* 128 together */
    char file[HEAD + TEXT + 1 + 6 * sizeof(double)] = "\x93NUMPY\1\0v";
    const double numbers[6] = {0.1, 1.0 / 3, 1e-300, -2, 7, 1e10};
    snprintf(file + HEAD, TEXT + 1, "%-117s\n", "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }");
    memcpy(file + HEAD + TEXT, numbers, sizeof numbers);
    write_file("x.npy", file, HEAD + TEXT + sizeof numbers);
    write_text("x.jsonl",
               "{\"a\": 0.1, \"b\": 3e-9}\n{\"a\": 0.3, \"b\": 7}\n{\"a\": 1e-40, \"b\": 2}\n{\"a\": 5, \"b\": 1}\n");
}

/* A folder of two classes, each with two PNG files of 2 × 2 grey pixels. */
static inline void write_pictures(void) {
    static const unsigned char picture[] = {
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
        0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00, 0x00, 0x57, 0xdd, 0x52, 0xf8, 0x00, 0x00, 0x00,
        0x0e, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x10, 0x68, 0x60, 0xf8, 0xef, 0x00, 0x00, 0x04, 0x94, 0x01,
        0xd0, 0x84, 0x76, 0x96, 0x78, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
    mkdir("pictures", 0777);
    mkdir("pictures/a", 0777);
    mkdir("pictures/b", 0777);
    write_file("pictures/a/1.png", picture, sizeof picture);
    write_file("pictures/a/2.png", picture, sizeof picture);
    write_file("pictures/b/1.png", picture, sizeof picture);
    write_file("pictures/b/2.png", picture, sizeof picture);
}

#endif
