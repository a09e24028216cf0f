/* Manifests that are made to do harm: each has a correct hash of its own, as a hash is no signature. What is refused
 * is refused by the rule that it breaks, naming a file; nothing stays open, nothing stays allocated, and memory
 * stays below twice the files. */
#include <xxhash.h>

#include "store/manifest.h"
#include "store/manifest_support.h"

static char body[MOST_TEXT]; /* what a test makes of all that comes before the manifest's hash */

/* ---- crafting ---- */

/* The text up to its hash. */
static void begin_body(void) {
    strcpy(body, good);
    char *hash = strstr(body, "\n\"hash\": ");
    assert_non_null(hash);
    *hash = 0;
}

static void replace(const char *from, const char *to) {
    static char rest[MOST_TEXT];
    char *at = strstr(body, from);
    if (!at) fail_msg("the manifest has no %s", from);
    strcpy(rest, at + strlen(from));
    assert_true((size_t)(at - body) + strlen(to) + strlen(rest) < sizeof body);
    strcpy(at, to);
    strcat(at, rest);
}

static void write_sealed(void) {
    static char text[MOST_TEXT + 64];
    char digits[AN_HASH_DIGITS + 1] = "";
    const int head = snprintf(text, sizeof text, "%s\n\"hash\": \"", body);
    const XXH128_hash_t hash = XXH3_128bits(text, (size_t)head);
    an_hash_write(digits, (const uint64_t[]){hash.low64, hash.high64});
    const int tail = snprintf(text + head, sizeof text - (size_t)head, "%s\"\n}\n", digits);
    write_file(manifest_path, text, (size_t)head + (size_t)tail);
}

static void write_good(void) {
    unlink(manifest_path);
    write_file(manifest_path, good, good_length);
}

static void manifest_is_refused(int from, const char *words, const char *what) {
    write_sealed();
    for (int i = OPEN; i < from; i++) OK(ctx, tries[i]());
    check_refused(from, TRIES, folder_bytes + strlen(body), words, what);
}

/* Accepted, and the run goes on. */
static void is_harmless(void) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    write_sealed();
    for (int i = 0; i < TRIES; i++) OK(ctx, tries[i]());
    OK(ctx, an_trainer_step(reader, &metrics));
    renew_reader();
}

/* ---- single places ---- */

#define BASE ", \"base\": \"x\""
#define ADAPTER(rank, alpha, dropout, base)                                                                           \
    "\"adapter\": {\"rank\": " rank ", \"alpha\": " alpha ", \"dropout\": " dropout ", \"rslora\": false, \"hash\": " \
    "\"00000000000000000000000000000000\"" base "}, "

static const struct {
    const char *from, *to, *words;
} places[] = {
    /* the head */
    {"\"version\": 1", "\"version\": 0", "version"},
    {"\"version\": 1", "\"version\": 3", "a newer version of anneal wrote it"},
    {"\"version\": 1", "\"version\": 2", "version 2 is that of a checkpoint with an adapter"},
    {"\"optimizer\": {", ADAPTER("4", "8", "0", BASE) "\"optimizer\": {",
     "version 2 is that of a checkpoint with an adapter"},
    {"\"version\": 1", "\"adapter\": {}, \"version\": 2",
     "the adapter needs rank, alpha, dropout, rslora, base and hash"},
    {"\"version\": 1", ADAPTER("4", "8", "0", "") "\"version\": 2",
     "the adapter needs rank, alpha, dropout, rslora, base and hash"},
    {"\"version\": 1", ADAPTER("0", "8", "0", BASE) "\"version\": 2",
     "rank, alpha or dropout of the adapter is out of range"},
    {"\"version\": 1", ADAPTER("9223372036854775807", "8", "0", BASE) "\"version\": 2",
     "rank, alpha or dropout of the adapter is out of range"},
    {"\"version\": 1", ADAPTER("4", "-8", "0", BASE) "\"version\": 2",
     "rank, alpha or dropout of the adapter is out of range"},
    {"\"version\": 1", ADAPTER("4", "null", "0", BASE) "\"version\": 2",
     "rank, alpha or dropout of the adapter is out of range"},
    {"\"version\": 1", ADAPTER("4", "8", "1", BASE) "\"version\": 2",
     "rank, alpha or dropout of the adapter is out of range"},
    {"\"version\": 1", ADAPTER("4", "8", "0", BASE BASE) "\"version\": 2", "a member of the adapter appears twice"},
    {"\"version\": 1", "\"version\": -1", "without a sign"},
    {"\"version\": 1", "\"version\": 1.0", "a whole number"},
    {"\"version\": 1", "\"version\": 1e0", "a whole number"},
    {"\"version\": 1", "\"version\": \"1\"", "a number is expected"},
    {"\"version\": 1", "\"version\": 18446744073709551615", "64 bits"},
    {"\"version\": 1", "\"version\": 01", "a number has a leading zero"},
    {"anneal checkpoint", "other checkpoint", "not the manifest"},
    {"\"format\": \"anneal checkpoint\",\n", "", "a member is missing"},
    {"\"step\": 6", "\"step\": 6, \"step\": 6", "appears twice"},
    {"\"step\": 6", "\"st\\u0065p\": 6, \"step\": 6", "appears twice"},
    {"\"step\": 6", "\"step\": 7", "two steps differ"},
    {"\"step\": 6", "\"step\": -6", "without a sign"},
    {"\"step\": 6", "\"step\": 9223372036854775808", "64 bits"},
    {"\"step\": 6", "\"step\": 18446744073709551622", "64 bits"},
    {"\"generation\": 1,\n", "", "a member is missing"},
    {"\"generation\": 1", "\"generation\": -1", "without a sign"},
    {"\"kept\": true", "\"kept\": 1", "true or false"},
    {"\"data\": \"", "\"data\": \"0", "32 digits"},
    {"\"data\": \"", "\"data\": \"A", "32 digits"},
    {"\"bits\": {", "\"bits\": [{", "an object is expected"},
    {"\"leaves\": ", "\"leaves\": -", "without a sign"},
    {"\"leaves\": ", "\"leaves\": 9223372036854775808, \"x\": ", "64 bits"},
    {"\"leaves\": ", "\"since\": -1, \"leaves\": ", "without a sign"},
    {"\"leaves\": ", "\"since\": 1, \"since\": 1, \"leaves\": ", "twice"},
    {"\"leaves\": ", "\"kernels\": 3, \"leaves\": ", "a string is expected"},
    {"\"leaves\": ", "\"kernels\": \"\", \"kernels\": \"\", \"leaves\": ", "twice"},
    {"\"isa\": \"", "\"isa\": \"0123456789012345678901234567890123456789012345678901234567890123", "too long"},
    {"\"isa\": ", "\"isb\": ", "the bits need"},
    {"\"isa\": ", "\"isa\": \"\", \"isa\": ", "appears twice"},
    {"\"optimizer\": {", "\"optimizer\": [{", "an object is expected"},
    {"\"optimizer\": {", "\"optimizer\": {}, \"x\": {", "the optimizer needs name and version"},
    {"\"optimizer\": {", "\"optimizer\": {\"name\": \"adamw\", ", "the optimizer is there twice"},
    {"\"optimizer\": {", "\"optimizer\": {\"name\": \"adamw\", \"version\": 1}, \"optimizer\": {",
     "a member appears twice"},
    {"\"name\": \"adamw\"", "\"name\": \"\"", "no name of one"},
    {"\"name\": \"adamw\"", "\"name\": \"Adam W\"", "no name of one"},
    {"\"name\": \"adamw\"", "\"name\": \"a2345678901234567890123456789012\"", "no name of one"},
    {"\"name\": \"adamw\"", "\"name\": 3", "a string is expected"},
    {"\"name\": \"adamw\", \"version\": 1", "\"name\": \"adamw\", \"version\": 0", "a version below 1"},
    {"\"name\": \"adamw\", \"version\": 1", "\"name\": \"adamw\", \"version\": -1", "without a sign"},
    {"\"name\": \"adamw\", \"version\": 1", "\"name\": \"adamw\"", "the optimizer needs name and version"},
    {"\"prediction\": {", "\"origin\": [], \"prediction\": {", "an object is expected"},
    {"\"prediction\": {", "\"origin\": {\"path\": \"a\", \"step\": 3}, \"prediction\": {",
     "the origin needs path, step and hash"},
    {"\"prediction\": {", "\"origin\": {\"path\": \"a\", \"path\": \"a\"}, \"prediction\": {",
     "the origin appears twice"},
    {"\"prediction\": {", "\"origin\": {\"step\": -1}, \"prediction\": {", ""},
    {"\"prediction\": {", "\"origin\": {\"hash\": \"0\"}, \"prediction\": {", "a hash of 32 digits was expected"},
    {"\"prediction\": {", "\"prediction\": [{", "an object is expected"},
    {"\"prediction\": {", "\"prediction\": {}, \"x\": {", "the prediction needs f32_storage and sizes"},
    {"\"prediction\": {", "\"prediction\": {\"sizes\": {}, ", "the prediction is there twice"},
    {"\"prediction\": {", "\"prediction\": {\"f32_storage\": true, ", "the prediction is there twice"},
    {"\"prediction\": {", "\"prediction\": {\"f32_storage\": true, \"sizes\": {}}, \"prediction\": {",
     "a member appears twice"},
    {"\"f32_storage\": false", "\"f32_storage\": 0", "true or false"},
    {"\"f32_storage\": false, ", "", "the prediction needs f32_storage and sizes"},
    {"\"sizes\": {}", "\"sizes\": []", "an object is expected"},
    {"\"sizes\": {}", "\"sizes\": {\"a\": 0}", "the size of a symbol is below 1"},
    {"\"sizes\": {}", "\"sizes\": {\"a\": -1}", "without a sign"},
    {"\"sizes\": {}", "\"sizes\": {\"a\": 9223372036854775808}", "64 bits"},
    {"\"sizes\": {}", "\"sizes\": {\"a\": \"1\"}", "a number is expected"},
    {"\"sizes\": {}", "\"sizes\": {\"a\": 1, \"\\u0061\": 1}", "the size of a symbol is there twice"},
    {"\"sizes\": {}",
     "\"sizes\": {\"a\": 1, \"b\": 1, \"c\": 1, \"d\": 1, \"e\": 1, \"f\": 1, \"g\": 1, \"h\": 1, \"i\": 1}",
     "sizes of too many symbols"},
    {"{\n\"format\"", "[\n\"format\"", "an object is expected"},
    {"{\n\"format\"", "{},{\n\"format\"", "a member is missing"},
    {"{\n\"format\"", "{,\n\"format\"", "a string is expected"},
    {"\"kept\": true,", "\"kept\": true,,", "a string is expected"},
    {"\"kept\": true,", "\"kept\": true, /* */", "a string is expected"},
    {"\"kept\": true,", "\"kept\": true, \"hash\": \"\",", "appears twice"},
    {"\"kept\": true,", "\"kept\": true, \"\\ud800\": 1,", "surrogate"},
    {"\"kept\": true,", "\"kept\": true, \"x\": \"\\udc00\\ud800\",", "surrogate"},
    {"\"kept\": true,", "\"kept\": true, \"x\\u0000\": 1,", "U+0000"},
    {"\"kept\": true,", "\"kept\": true, \"x\": \"\xff\",", "UTF-8"},
    {"\"kept\": true,", "\"kept\": true, \"x\": \"\n\",", "control character"},
    {"\"kept\": true,", "\"kept\": true, \"x\": NaN,", "a value is expected"},
    /* the state */
    {"\"chain\": ", "\"chains\": ", "state is missing"},
    {"\"chain\": \"", "\"chain\": \"0", "32 digits"},
    {"\"skips\": 0", "\"skips\": 0, \"skips\": 0", "a member of the state appears twice"},
    {"\"schedule_steps\": 8, \"step\": 6", "\"schedule_steps\": 8, \"step\": -6", "without a sign"},
    {"\"schedule_steps\": 8, \"step\": 6", "\"schedule_steps\": 8, \"step\": 9223372036854775807", "out of range"},
    {"\"schedule_steps\": 8, \"step\": 6", "\"schedule_steps\": 8, \"step\": 6.5", "a whole number"},
    {"\"schedule_steps\": 8, \"step\": 6", "\"schedule_steps\": 8, \"step\": null", "a number is expected"},
    {"\"steps\": 8", "\"steps\": 5", "out of range"},
    {"\"steps\": 8", "\"steps\": -8", "out of range"},
    {"\"updates\": 6", "\"updates\": -1", "without a sign"},
    {"\"updates\": 6", "\"updates\": 9223372036854775807", "out of range"},
    {"\"schedule_step\": 6", "\"schedule_step\": -1", "without a sign"},
    {"\"schedule_step\": 6", "\"schedule_step\": 9223372036854775807", "out of range"},
    {"\"taken\": 6", "\"taken\": 9223372036854775807", "out of range"},
    {"\"taken\": 6", "\"taken\": -1", "without a sign"},
    {"\"skips\": 0", "\"skips\": 9223372036854775807", "out of range"},
    {"\"good_steps\": 0", "\"good_steps\": -1", "without a sign"},
    {"\"good_steps\": 0", "\"good_steps\": 9223372036854775807", "out of range"},
    {"\"without\": 0", "\"without\": 9223372036854775807", "out of range"},
    {"\"scale\": 0", "\"scale\": \"infinity\"", "a number was expected"},
    {"\"scale\": 0", "\"scale\": 1e999", "too large for a double"},
    {"\"scale\": 0", "\"scale\": true", "a number is expected"},
    {"\"has_best\": false", "\"has_best\": 0", "true or false"},
    {"\"state\": {", "\"state\": {}, \"x\": {", "state is missing"},
    {"\"state\": {", "\"state\": {\"own_metrics\": 3, ", "an object is expected"},
    {"\"state\": {", "\"state\": {\"own_metrics\": {}, \"own_metrics\": {}, ", "state is there twice"},
    {"\"state\": {", "\"state\": {\"own_metrics\": {\"x\": 1}, ", "has no name of one"},
    {"\"state\": {", "\"state\": {\"own_metrics\": {\"val_\": 1}, ", "has no name of one"},
    {"\"state\": {", "\"state\": {\"own_metrics\": {\"val_a2345678901234567890123456789012\": 1}, ",
     "has no name of one"},
    {"\"state\": {", "\"state\": {\"own_metrics\": {\"val_a\": 1, \"val_a\": 2}, ", "a metric is there twice"},
    {"\"state\": {", "\"state\": {\"own_metrics\": {\"val_a\": \"1\"}, ", "a number was expected"},
    {"\"state\": {",
     "\"state\": {\"own_metrics\": {\"val_a\": 1, \"val_b\": 1, \"val_c\": 1, \"val_d\": 1, \"val_e\": 1, \"val_f\": "
     "1, \"val_g\": 1, "
     "\"val_h\": 1, \"val_i\": 1, \"val_j\": 1, \"val_k\": 1, \"val_l\": 1, \"val_m\": 1, \"val_n\": 1, \"val_o\": 1, "
     "\"val_p\": 1, "
     "\"val_q\": 1}, ",
     "too many metrics"},
    /* files */
    {"\"config.yaml\"", "\"../config.yaml\"", "a file name is not valid"},
    {"\"config.yaml\"", "\"/etc/passwd\"", "a file name is not valid"},
    {"\"config.yaml\"", "\"a/../config.yaml\"", "a file name is not valid"},
    {"\"config.yaml\"", "\"\\u002e\\u002e\\u002fconfig.yaml\"", "a file name is not valid"},
    {"\"config.yaml\"", "\".\"", "a file name is not valid"},
    {"\"config.yaml\"", "\"..\"", "a file name is not valid"},
    {"\"config.yaml\"", "\".hidden\"", "a file name is not valid"},
    {"\"config.yaml\"", "\"\"", "a file name is not valid"},
    {"\"config.yaml\"", "\"manifest.json\"", "a file name is not valid"},
    {"\"config.yaml\"", "\"a234567890123456789012345678901234567890123456789012345678901234\"",
     "a file name is not valid"},
    {"\"config.yaml\"", "\"a\\u0000b\"", "U+0000"},
    {"\"config.yaml\"", "\"a\\ud800\"", "surrogate"},
    {"\"config.yaml\"", "\"a\xc0\xaf\"", "UTF-8"},
    {"\"config.yaml\"", "\"config.yam\"", "config.yam: is missing"},
    {"\"config.yaml\"", "\"zzz\"", "not sorted"},
    {"\"config.yaml\"", "\"graph.ang\"", "not sorted"},
    {"\"config.yaml\"", "7", "a string is expected"},
    {"{\"name\": \"config.yaml\",", "{\"name\": \"config.yaml\", \"name\": \"config.yaml\",", "file appears twice"},
    {"{\"name\": \"config.yaml\",", "{", "a file needs"},
    {"{\"name\": \"config.yaml\",", "{\"name\": \"config.yaml\", \"bytes\": 0,", "file appears twice"},
    {"\"bytes\": ", "\"bytes\": -", "without a sign"},
    {"\"bytes\": ", "\"bytes\": 9223372036854775807, \"x\": ", "9223372036854775807 were written"},
    {"\"bytes\": ", "\"bytes\": 9223372036854775808, \"x\": ", "64 bits"},
    {"\"bytes\": ", "\"bytes\": 18446744073709551615, \"x\": ", "64 bits"},
    {"\"bytes\": ", "\"bytes\": 0, \"x\": ", "but 0 were written"},
    {"\"xxh3\": \"", "\"xxh3\": \"0", "32 digits"},
    {"\"xxh3\": \"", "\"xxh3\": \"\", \"x\": \"", "32 digits"},
    {"\"files\": [", "\"files\": [1, ", "an object is expected"},
    {"\"files\": [", "\"files\": [[{}], ", "an object is expected"},
    {"\"files\": [", "\"files\": [], \"more\": [", "there are no files"},
    {"\"files\": [", "\"files\": {}, \"more\": [", "there are no files"},
    {"\"files\": [", "\"tensors\": [], \"files\": [", "after the files"},
    {"\"files\": [", "\"files\": 0, \"more\": [", "an array is expected"},
    /* tensors; hidden.0.weight has shape [5, 2] */
    {"\"f32\"", "\"f31\"", "a type"},
    {"\"f32\"", "\"\"", "a type"},
    {"\"dtype\": \"f32\", ", "", "a tensor needs"},
    {"\"dtype\": \"f32\", ", "\"dtype\": \"f32\", \"dtype\": \"f32\", ", "tensor appears twice"},
    {"\"shape\": [5, 2]", "\"shape\": [5, 2], \"shape\": [5, 2]", "tensor appears twice"},
    {"\"shape\": [5, 2]", "\"shape\": [1, 1, 1, 1, 1, 1, 5, 1, 2]", "more than 8"},
    {"\"shape\": [5, 2]", "\"shape\": [4294967296, 4294967296]", "too many elements"},
    {"\"shape\": [5, 2]", "\"shape\": [9223372036854775807, 2]", "too many elements"},
    {"\"shape\": [5, 2]", "\"shape\": [18446744073709551615, 10]", "64 bits"},
    {"\"shape\": [5, 2]", "\"shape\": [-5, -2]", "without a sign"},
    {"\"shape\": [5, 2]", "\"shape\": [2305843009213693952, 2]", "do not reach its end"},
    {"\"shape\": [5, 2]", "\"shape\": [0]", "gap or overlap"},
    {"\"shape\": [5, 2]", "\"shape\": []", "gap or overlap"},
    {"\"shape\": [5, 2]", "\"shape\": 10", "an array is expected"},
    {"\"shape\": [5, 2]", "\"shape\": [5, [2]]", "a number is expected"},
    {"\"name\": \"hidden.0.weight\"", "\"name\": \"hidden.0.bias\"", "tensor appears twice"},
    {"\"name\": \"hidden.0.weight\"", "\"name\": \"hidden.0.bi\\u0061s\"", "tensor appears twice"},
    {"\"name\": \"hidden.0.weight\"", "\"name\": \"\"", "a tensor has no name"},
    {"\"name\": \"hidden.0.weight\"", "\"name\": \"hidden.0.weight\\u0000\"", "U+0000"},
    {"\"tensors\": [", "\"tensors\": [1, ", "an object is expected"},
    {"\"tensors\": [", "\"tensors\": [{}, ", "a tensor needs"},
    {"\"tensors\": [", "\"tensors\": {}, \"more\": [", "an array is expected"},
    {"\"tensors\": [", "\"tensors\": [], \"tensors\": [", "appears twice"},
};

/* Good by themselves, and not of this model. */
static const struct {
    const char *from, *to, *words;
} other_models[] = {
    {"\"dtype\": \"f32\"", "\"dtype\": \"f64\"", "has a different shape or type"},
    {"\"name\": \"adamw\"", "\"name\": \"adam\"", "and this trainer has 'adamw'"},
    {"\"name\": \"adamw\"", "\"name\": \"mine\"", "optimizer 'mine' of another program"},
    {"\"name\": \"adamw\", \"version\": 1", "\"name\": \"adamw\", \"version\": 7",
     "with version 7 of the optimizer 'adamw'"},
    {"\"shape\": [5, 2]", "\"shape\": [2, 5]", "has a different shape or type"},
    {"\"shape\": [5, 2]", "\"shape\": [10]", "has a different shape or type"},
    {"\"moment_1/hidden.0.weight\"", "\"moment_3/hidden.0.weight\"", "is missing"},
    {"\"name\": \"hidden.0.weight\"", "\"name\": \"../../etc/passwd\"", "'hidden.0.weight' is missing"},
    {"\"tensors\": [", "\"tensors\": [], \"more\": [", "is missing"},
};

static void test_places(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        begin_body();
        replace(places[i].from, places[i].to);
        manifest_is_refused(OPEN, places[i].words, places[i].to);
    }
    for (size_t i = 0; i < sizeof other_models / sizeof *other_models; i++) {
        begin_body();
        replace(other_models[i].from, other_models[i].to);
        manifest_is_refused(LOAD, other_models[i].words, other_models[i].to);
    }
    write_good();
    is_good();
}

/* ---- slices ---- */

static void test_slices(void **state) {
    static const struct {
        const char *slices, *words;
    } cases[] = {
        {"[[3, 0, 4, 4096], [3, 5, 10, 4116]]", "gap or overlap"},
        {"[[3, 0, 6, 4096], [3, 5, 10, 4116]]", "gap or overlap"},
        {"[[3, 5, 10, 4116], [3, 0, 5, 4096]]", "gap or overlap"},
        {"[[3, 1, 10, 4096]]", "gap or overlap"},
        {"[[3, 0, 11, 4096]]", "gap or overlap"},
        {"[[3, 0, 9, 4096]]", "do not reach its end"},
        {"[]", "do not reach its end"},
        {"[[3, 0, 10, 4096], [3, 10, 10, 4096]]", "a slice is empty"},
        {"[[3, 0, 0, 4096], [3, 0, 10, 4096]]", "a slice is empty"},
        {"[[3, 0, 9223372036854775807, 4096]]", "gap or overlap"},
        {"[[3, 9223372036854775807, 10, 4096]]", "gap or overlap"},
        {"[[3, 0, 18446744073709551615, 4096]]", "64 bits"},
        {"[[5, 0, 10, 0]]", "a slice is in a file that does not exist"},
        {"[[9223372036854775807, 0, 10, 0]]", "a slice is in a file that does not exist"},
        {"[[-1, 0, 10, 0]]", "without a sign"},
        {"[[3, 0, 10, -4]]", "without a sign"},
        {"[[3, 0, 10, 4181]]", "a slice is outside its file"},
        {"[[3, 0, 10, 9223372036854775807]]", "a slice is outside its file"},
        {"[[3, 0, 10, 9223372036854775767]]", "a slice is outside its file"},
        {"[[3, 0, 10]]", "a slice"},
        {"[[3, 0, 10, 4096, 0]]", "a slice"},
        {"[3, 0, 10, 4096]", "an array is expected"},
        {"[\"[3, 0, 10, 4096]\"]", "an array is expected"},
        {"[[\"3\", 0, 10, 4096]]", "a number is expected"},
        {"[[3, 0, 10.0, 4096]]", "a whole number"},
        {"[[3, 0, 10, 4096],]", "comma"},
        {"{}", "an array is expected"},
        {"null", "an array is expected"},
        {"[[3, 0, 1, 4096], [3, 1, 2, 4100], [3, 2, 3, 4104], [3, 3, 4, 4108], [3, 4, 5, 4112], [3, 5, 6, 4116], "
         "[3, 6, 7, 4120], [3, 7, 10, 4124]]",
         "more slices than"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_body();
        replace("[[3, 0, 10, 4096]]", cases[i].slices);
        manifest_is_refused(OPEN, cases[i].words, cases[i].slices);
    }
    begin_body(); /* only who loads them all sees that two are in one place */
    replace("[[3, 0, 10, 4096]]", "[[3, 0, 10, 4100]]");
    manifest_is_refused(LOAD, "two tensors overlap in this file", "shared bytes");
    begin_body();
    replace("[[3, 0, 10, 4096]]", "[[3, 0, 5, 4096], [3, 5, 10, 4096]]");
    manifest_is_refused(LOAD, "two tensors overlap in this file", "a slice twice");
    write_good();
    is_good();
}

/* ---- large ones ---- */

/* `piece` as often as it fits, in the place of the first `from`. */
static void replace_by_many(const char *from, const char *piece, size_t times, const char *last) {
    static char many[MOST_TEXT];
    size_t length = 0;
    for (size_t i = 0; i < times; i++, length += strlen(piece)) strcpy(many + length, piece);
    strcpy(many + length, last);
    replace(from, many);
}

static void test_large_ones(void **state) {
    static const struct {
        const char *from, *piece;
        size_t times;
        const char *last, *words;
    } cases[] = {
        {"\"kept\": true,", "[", 200, "", "a string is expected"},
        {"\"kept\": true,", "\"kept\": true, \"x\": [", 1, "", "expected here"},
        {"\"files\": [", "\"files\": [{},", 1, "", "a file needs"},
        {"\"files\": [\n", "{},", 1, "", "a string is expected"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_body();
        replace_by_many(cases[i].from, cases[i].piece, cases[i].times, cases[i].last);
        manifest_is_refused(OPEN, cases[i].words, cases[i].piece);
    }
    begin_body(); /* deeper than any reader goes */
    replace_by_many("\"kept\": true,", "[", 100000, "");
    replace("[[[[", "\"kept\": true, \"x\": [[[[");
    manifest_is_refused(OPEN, "nested deeper than 64", "depth");
    begin_body(); /* tables are not made for what only looks like objects */
    replace_by_many("\"files\": [\n", "{},", 200000, "");
    replace("{},{},", "\"files\": [{},");
    manifest_is_refused(OPEN, "too many", "objects that are no files");
    begin_body();
    replace_by_many("\"tensors\": [\n", "{},", 200000, "");
    replace("{},{},", "\"tensors\": [{},");
    manifest_is_refused(OPEN, "tensors must appear once, after the files, and each must be an object",
                        "objects that are no tensors");
    begin_body();
    replace_by_many("[[3, 0, 10, 4096]]", "[3,0,0,0],", 80000, "[3,0,0,0]]");
    replace("[3,0,0,0],", "[[3,0,0,0],");
    manifest_is_refused(OPEN, "a slice is empty", "empty slices");
    begin_body(); /* what is not known is skipped, whatever it is */
    replace_by_many("\"kept\": true,", "{\"a\": [1, null, \"\\ud83d\\ude00\"]},", 10000, "");
    replace("{\"a\": [1", "\"kept\": true, \"later\": [{\"a\": [1");
    replace("]},\n\"data\"", "]}],\n\"data\"");
    is_harmless();
    write_good();
}

static void test_harmless(void **state) {
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"\"kept\": true,", "\"kept\": true, \"later\": {\"x\": [{}]},"},
        {"\"kept\": true", "\"kept\": false"},
        {"\"skips\": 0", "\"skips\": 0, \"later\": -0.5e-3"},
        {"\"scale\": 0", "\"scale\": \"nan\""},
        {"\"user_step\": 6", "\"user_step\": -9223372036854775808"},
        {"\"updates\": 6", "\"updates\": 4611686018427387904"},
        {"\"taken\": 6", "\"taken\": 4611686018427387904"},
        {"\"evaluated\": -1", "\"evaluated\": -9223372036854775808"},
        {"\"steps\": 8, \"schedule_steps\": 8", "\"steps\": 9223372036854775807, \"schedule_steps\": -1"},
        {"{\"name\": \"config.yaml\",", "{\"later\": [], \"n\\u0061me\": \"config.yaml\","},
        {"\"generation\": 1", "\"generation\": 9223372036854775807"},
        {"{\n\"format\"", " \r\n\t{\n\"format\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_body();
        replace(cases[i].from, cases[i].to);
        is_harmless();
    }
    write_good();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_large_ones),
        cmocka_unit_test(test_harmless),
    };
    return cmocka_run_group_tests(tests, make_checkpoint, remove_all);
}
