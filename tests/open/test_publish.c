/* Language models for other programs: folders and GGUF files are read again by our own readers, in every type, and
 * compared with where they came from. tests/store/compare-export compares them with transformers and llama.cpp. */
#include <stdlib.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/pretrained.h"
#include "base/convert.h"
#include "base/float16.h"
#include "formats/gguf.h"
#include "interchange/publish.h"
#include "pretrained/weights.h"
#include "store/open_weights.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */
#include "support/export_as.h"

#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/pretrained/"
#define TOKENIZER ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe"
enum { MOST = 1 << 16 }; /* elements of a tensor here */

static void forget(const char *paths) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", paths);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own files */
}

static const an_dtype types[] = {AN_DTYPE_F32, AN_DTYPE_F16, AN_DTYPE_BF16, AN_DTYPE_Q8_0};

static an_export_options options_of(an_dtype type) {
    an_export_options o;
    an_export_options_init(&o, sizeof o);
    o.dtype = type;
    return o;
}

static an_status export_to(const char *from, const char *to, bool folder, const an_export_options *options) {
    an_checkpoint *c = NULL;
    an_export_options o = options ? *options : options_of(AN_DTYPE_NONE);
    o.format = folder ? AN_EXPORT_HUGGINGFACE : AN_EXPORT_GGUF;
    OK(ctx, an_checkpoint_open(&c, ctx, from));
    const an_status status = an_checkpoint_export(c, to, &o);
    an_checkpoint_close(&c);
    return status;
}

/* ---- what is read again ---- */

/* A model as the library reads it: its weights by its own names. */
typedef struct {
    an_pretrained *published;
    an_graph *graph;
    an_weights weights;
} reading;

static void read_model(reading *r, const char *path) {
    *r = (reading){.published = NULL};
    OK(ctx, an_pretrained_open(&r->published, ctx, path));
    OK(ctx, an_pretrained_graph(r->published, &r->graph, NULL));
    OK(ctx, an_weights_open(&r->weights, ctx, path, AN_MODEL_WEIGHTS_AUTO));
    if (an_weights_gguf(&r->weights)) OK(ctx, an_weights_rename_gguf(&r->weights, path));
    OK(ctx, an_model_weights_view(&r->weights, r->graph, path, true));
}

static void close_model(reading *r) {
    an_weights_close(&r->weights);
    an_graph_destroy(&r->graph);
    an_pretrained_close(&r->published);
}

static int64_t read_tensor(const an_weights *w, int64_t index, double *numbers, an_safetensor *tensor) {
    OK(ctx, w->get(w, index, tensor));
    const int64_t count = tensor->bytes / (int64_t)tensor->type->size;
    assert_true(count <= MOST);
    OK(ctx, w->read(w, index, tensor, 0, count, numbers));
    an_convert_to_f64(tensor->type->dtype, count, numbers);
    return count;
}

/* What becomes of a number, without the code that is tested. Rows of these models are no blocks of Q8_0. */
static double rounded(double x, an_dtype type, bool folder, const an_safetensor *tensor) {
    const bool keeps = !folder && (tensor->ndims < 2 || strstr(tensor->name, "wpe."));
    if (type == AN_DTYPE_F32 || keeps) return x;
    if (type == AN_DTYPE_BF16) return (double)an_bf16_to_f32(an_f32_to_bf16((float)x));
    return (double)an_f16_to_f32(an_f32_to_f16((float)x));
}

static void assert_same_weights(const char *from, const char *to, an_dtype type, bool folder) {
    static double expected[MOST], found[MOST];
    reading a, b;
    an_safetensor tensor, other;
    read_model(&a, from);
    read_model(&b, to);
    assert_int_equal(a.weights.count, b.weights.count);
    for (int64_t i = 0; i < a.weights.count; i++) {
        const int64_t count = read_tensor(&a.weights, i, expected, &tensor);
        assert_int_equal(read_tensor(&b.weights, i, found, &other), count);
        assert_string_equal(tensor.name, other.name);
        for (int64_t k = 0; k < count; k++) {
            const double wanted = rounded(expected[k], type, folder, &tensor);
            if (found[k] != wanted) fail_msg("%s: %s[%d]: %g, not %g", to, tensor.name, (int)k, found[k], wanted);
        }
    }
    close_model(&a);
    close_model(&b);
}

static void assert_same_model(const char *from, const char *to) {
    an_pretrained *p = NULL, *q = NULL;
    an_pretrained_info a, b;
    an_pretrained_info_init(&a, sizeof a);
    an_pretrained_info_init(&b, sizeof b);
    OK(ctx, an_pretrained_open(&p, ctx, from));
    OK(ctx, an_pretrained_open(&q, ctx, to));
    OK(ctx, an_pretrained_info_get(p, &a));
    OK(ctx, an_pretrained_info_get(q, &b));
    b.path = a.path;
    b.is_gguf = a.is_gguf;
    if (strcmp(a.family, "mistral") == 0) b.family = a.family; /* llama in GGUF */
    assert_string_equal(a.family, b.family);
    b.family = a.family;
    assert_memory_equal(&a, &b, sizeof a);
    an_pretrained_close(&p);
    an_pretrained_close(&q);
}

/* Folder in, folder out: names, shapes and numbers of the files themselves. */
static void assert_same_files(const char *from, const char *to) {
    static double expected[MOST], found[MOST];
    an_weights a, b;
    an_safetensor tensor, other;
    OK(ctx, an_weights_open_files(&a, ctx, from));
    OK(ctx, an_weights_open_files(&b, ctx, to));
    assert_int_equal(a.count, b.count);
    for (int64_t i = 0; i < a.count; i++) {
        int64_t at = 0;
        const int64_t count = read_tensor(&a, i, expected, &tensor);
        for (; at < b.count; at++) {
            OK(ctx, b.get(&b, at, &other));
            if (!strcmp(tensor.name, other.name)) break;
        }
        if (at == b.count) fail_msg("%s: has no '%s'", to, tensor.name);
        assert_int_equal(read_tensor(&b, at, found, &other), count);
        assert_int_equal(tensor.ndims, other.ndims);
        assert_memory_equal(tensor.dims, other.dims, (size_t)tensor.ndims * sizeof *tensor.dims);
        assert_memory_equal(expected, found, (size_t)count * sizeof *found);
    }
    an_weights_close(&a);
    an_weights_close(&b);
}

static void test_every_family(void **state) {
    (void)state;
    static const char *const names[] = {"gpt2", "llama", "mistral", "qwen2", "qwen2-window", "qwen3", "smollm2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < 4; k++) {
            char from[512];
            const an_export_options o = options_of(types[k]);
            snprintf(from, sizeof from, GOLDEN "%s", names[i]);
            forget("hf m.gguf again");
            if (types[k] != AN_DTYPE_Q8_0) {
                OK(ctx, export_to(from, "hf", true, &o));
                assert_same_model(from, "hf");
                assert_same_weights(from, "hf", types[k], true);
                if (types[k] == AN_DTYPE_F32) assert_same_files(from, "hf");
            }
            OK(ctx, export_to(from, "m.gguf", false, &o));
            if (!strcmp(names[i], "llama"))
                continue; /* its scaling is not that of Llama 3.1, which is all that GGUF can be read with */
            assert_same_model(from, "m.gguf");
            assert_same_weights(from, "m.gguf", types[k], false);
            OK(ctx, export_to("m.gguf", "again", true, NULL));
            assert_same_model(from, "again");
            assert_same_weights("m.gguf", "again", AN_DTYPE_F32, true);
        }
}

/* The scaling of rotary positions is a tensor in GGUF. */
static void test_scaling(void **state) {
    (void)state;
    static double divisors[MOST];
    an_weights w;
    an_safetensor tensor;
    forget("m.gguf");
    OK(ctx, export_to(GOLDEN "llama", "m.gguf", false, NULL));
    OK(ctx, an_weights_open_gguf(&w, ctx, "m.gguf"));
    assert_int_equal(read_tensor(&w, 0, divisors, &tensor), 3);
    assert_string_equal(tensor.name, "rope_freqs.weight");
    /* base 50, heads of 6, factor 4, factors 1 and 4 of 16 positions: waves of 2 pi, 23.1 and 85.2 */
    assert_true(divisors[0] > 1.57 && divisors[0] < 1.572);
    assert_true(divisors[1] == 4 && divisors[2] == 4);
    an_weights_close(&w);
}

/* ---- blocks ---- */

static void test_blocks(void **state) {
    (void)state;
    /* both of the gguf package for Python: numbers of all sizes, and halves, which are rounded away from zero */
    static const unsigned char mixed[] = {0x53, 0x20, 0x7f, 0x0c, 0xd5, 0xbe, 0xe9, 0x35, 0x04, 0xc7, 0x12, 0x4a,
                                          0x27, 0xf0, 0x89, 0x04, 0xcd, 0xcf, 0xe1, 0x2d, 0x14, 0x42, 0x0a, 0x5a,
                                          0x1f, 0xe7, 0x9a, 0xfc, 0xc5, 0xdf, 0xd9, 0x25, 0x25, 0x39};
    static const unsigned char halves[] = {0x00, 0x3c, 0x7f, 0x81, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8,
                                           0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff, 0x01, 0x02, 0x03, 0x04, 0x05,
                                           0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f};
    const an_gguf_type *type = an_gguf_type_named("Q8_0");
    float numbers[32];
    unsigned char block[34];
    assert_non_null(type);
    for (int i = 0; i < 32; i++) numbers[i] = (float)(((i * 37) % 64 - 31) * 0.0173 * (i % 3 ? 1 : -2));
    an_gguf_narrow(type, numbers, 32, block);
    assert_memory_equal(block, mixed, sizeof mixed);
    for (int i = 0; i < 32; i++) numbers[i] = i < 2 ? (i ? -127.0F : 127.0F) : (float)(i - 17) + 0.5F;
    an_gguf_narrow(type, numbers, 32, block);
    assert_memory_equal(block, halves, sizeof halves);
    for (int i = 0; i < 32; i++) numbers[i] = 0;
    an_gguf_narrow(type, numbers, 32, block);
    for (int i = 0; i < 34; i++) assert_int_equal(block[i], 0);
}

/* ---- runs ---- */

#define REST                                                                                               \
    "data: {train: {type: tokens, path: tokens.bin}}\nbatch: {global: 2}\ntrain: {precision: f32}\nsave: " \
    "{every: off}\nrun: {dir: run, steps: 2}\noptimizer: {type: adamw, lr: 0.1}\n"
#define LLAMA                                                                                                \
    "model: {type: llama, layers: 2, heads: 2, kv_heads: 1, width: 32, hidden: 64, context: 8, vocabulary: " \
    "300}\n" REST
#define GPT2 "model: {type: gpt2, layers: 1, heads: 2, width: 32, context: 8, vocabulary: 300}\n" REST

static void make_run(const char *config) {
    unsigned short tokens[64];
    for (int i = 0; i < 64; i++) tokens[i] = (unsigned short)(i * 7 % 24);
    write_file("tokens.bin", tokens, sizeof tokens);
    forget("run");
    an_trainer *t = open_run(config);
    train(t);
    OK(ctx, an_trainer_save(t, 1));
    an_trainer_destroy(&t);
}

/* The weights of a run by their names, as an exported model has them. */
static void assert_run_weights(const char *to, double limit) {
    static double expected[MOST], found[MOST];
    reading r;
    an_weights saved;
    an_safetensor tensor, other;
    read_model(&r, to);
    OK(ctx, an_weights_open(&saved, ctx, "run", AN_MODEL_WEIGHTS_AUTO));
    assert_int_equal(saved.count, r.weights.count);
    for (int64_t i = 0; i < r.weights.count; i++) {
        int64_t at = 0;
        const int64_t count = read_tensor(&r.weights, i, found, &other);
        for (; at < saved.count; at++) {
            OK(ctx, saved.get(&saved, at, &tensor));
            if (!strcmp(tensor.name, other.name)) break;
        }
        assert_true(at < saved.count);
        assert_int_equal(read_tensor(&saved, at, expected, &tensor), count);
        for (int64_t k = 0; k < count; k++) {
            const double difference = expected[k] - found[k];
            double maximum = 0; /* of its block */
            for (int64_t n = k / 32 * 32; n < k / 32 * 32 + 32 && n < count; n++)
                if (expected[n] > maximum || -expected[n] > maximum)
                    maximum = expected[n] < 0 ? -expected[n] : expected[n];
            if (difference > limit * maximum || -difference > limit * maximum)
                fail_msg("%s: %s[%d]: %g, not %g", to, other.name, (int)k, found[k], expected[k]);
        }
    }
    an_weights_close(&saved);
    close_model(&r);
}

static void test_runs(void **state) {
    (void)state;
    static const char *const configs[] = {LLAMA, GPT2};
    const double half = 0.5 / 127 + 1.0 / 2048; /* of a step, and what f16 takes of the scale */
    for (int i = 0; i < 2; i++) {
        const an_export_options o = options_of(AN_DTYPE_Q8_0);
        an_pretrained_info info;
        an_pretrained_info_init(&info, sizeof info);
        an_pretrained *p = NULL;
        make_run(configs[i]);
        forget("hf m.gguf q.gguf");
        OK(ctx, export_to("run", "hf", true, NULL));
        assert_run_weights("hf", 0);
        OK(ctx, export_to("run", "m.gguf", false, NULL));
        assert_run_weights("m.gguf", 0);
        OK(ctx, export_to("run", "q.gguf", false, &o));
        assert_run_weights("q.gguf", half);
        OK(ctx, an_pretrained_open(&p, ctx, "hf"));
        OK(ctx, an_pretrained_info_get(p, &info));
        assert_string_equal(info.family, i ? "gpt2" : "llama");
        assert_int_equal(info.context, 8);
        an_pretrained_close(&p);
    }
}

/* An adapter goes along as the change of the weights. */
static void test_adapter(void **state) {
    (void)state;
    static double expected[MOST], found[MOST];
    an_checkpoint *c = NULL;
    reading r;
    an_weights merged;
    an_safetensor tensor, other;
    int changed = 0;
    make_run("model: {from: " GOLDEN "smollm2, context: 8}\nlora: {targets: [q_proj, down_proj], rank: 2}\n" REST);
    forget("hf m.gguf m.safetensors");
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    OK(ctx, export_as(c, "m.safetensors", AN_EXPORT_MERGED));
    an_checkpoint_close(&c);
    OK(ctx, export_to("run", "hf", true, NULL));
    OK(ctx, export_to("run", "m.gguf", false, NULL));
    assert_same_model(GOLDEN "smollm2", "hf");
    assert_same_weights("hf", "m.gguf", AN_DTYPE_F32, true);
    read_model(&r, "hf");
    OK(ctx, an_weights_open(&merged, ctx, "m.safetensors", AN_MODEL_WEIGHTS_AUTO));
    OK(ctx, an_model_weights_view(&merged, r.graph, "m.safetensors", true));
    for (int64_t i = 0; i < r.weights.count; i++) {
        const int64_t count = read_tensor(&r.weights, i, found, &tensor);
        assert_int_equal(read_tensor(&merged, i, expected, &other), count);
        assert_memory_equal(found, expected, (size_t)count * sizeof *found);
    }
    an_weights_close(&merged);
    OK(ctx, an_weights_open(&merged, ctx, GOLDEN "smollm2", AN_MODEL_WEIGHTS_AUTO));
    OK(ctx, an_model_weights_view(&merged, r.graph, "smollm2", true));
    for (int64_t i = 0; i < r.weights.count; i++) {
        const int64_t count = read_tensor(&r.weights, i, found, &tensor);
        read_tensor(&merged, i, expected, &other);
        changed += memcmp(found, expected, (size_t)count * sizeof *found) != 0;
    }
    assert_int_equal(changed, 4); /* two layers */
    an_weights_close(&merged);
    close_model(&r);
}

/* ---- several files ---- */

static void test_split(void **state) {
    (void)state;
    an_export_options o = options_of(AN_DTYPE_F32);
    forget("hf");
    o.max_bytes = 3000; /* the largest tensor has 2,304 bytes */
    OK(ctx, export_to(GOLDEN "smollm2", "hf", true, &o));
    assert_int_equal(access("hf/model.safetensors.index.json", F_OK), 0);
    assert_int_not_equal(access("hf/model.safetensors", F_OK), 0);
    assert_same_weights(GOLDEN "smollm2", "hf", AN_DTYPE_F32, true);
}

/* ---- tokenizers ---- */

static void assert_tokens(const char *path) {
    static const char text[] = "<|im_start|>user\nWhat's 2024, or caf\xc3\xa9?  <|im_end|>";
    an_tokenizer *a = NULL, *b = NULL;
    an_encoder *e = NULL, *f = NULL;
    an_tokenizer_info one, two;
    const int32_t *expected, *found;
    int64_t count, other;
    an_tokenizer_info_init(&one, sizeof one);
    an_tokenizer_info_init(&two, sizeof two);
    OK(ctx, an_pretrained_tokenizer(&a, ctx, TOKENIZER));
    OK(ctx, an_pretrained_tokenizer(&b, ctx, path));
    OK(ctx, an_tokenizer_info_get(a, &one));
    OK(ctx, an_tokenizer_info_get(b, &two));
    assert_int_equal(one.eos, two.eos);
    assert_int_equal(one.bos, two.bos);
    assert_int_equal(one.pad, two.pad);
    OK(ctx, an_encoder_create(&e, a));
    OK(ctx, an_encoder_create(&f, b));
    assert_int_equal(an_encoder_run(e, text, sizeof text - 1, NULL, &expected, &count), AN_OK);
    assert_int_equal(an_encoder_run(f, text, sizeof text - 1, NULL, &found, &other), AN_OK);
    assert_int_equal(count, other);
    assert_memory_equal(expected, found, (size_t)count * sizeof *found);
    an_encoder_destroy(&e);
    an_encoder_destroy(&f);
    an_tokenizer_destroy(&a);
    an_tokenizer_destroy(&b);
}

/* A folder says where a text ends. */
static void assert_end(const char *path, int32_t end) {
    an_pretrained *p = NULL;
    an_pretrained_sampling s;
    an_pretrained_sampling_init(&s, sizeof s);
    OK(ctx, an_pretrained_open(&p, ctx, path));
    OK(ctx, an_pretrained_sampling_get(p, &s));
    an_pretrained_close(&p);
    assert_int_equal(s.stop_count, 1);
    assert_int_equal(s.stop_tokens[0], end);
    assert_true(s.temperature == -1 && s.top_k == -1 && s.repetition_penalty == -1);
    assert_string_equal(s.ignored, "");
}

static void test_tokenizer(void **state) {
    (void)state;
    an_export_options o = options_of(AN_DTYPE_F32);
    an_tokenizer *t = NULL;
    an_tokenizer_info info;
    char config[1024];
    an_tokenizer_info_init(&info, sizeof info);
    OK(ctx, an_tokenizer_open(&t, ctx, TOKENIZER));
    OK(ctx, an_tokenizer_info_get(t, &info));
    an_tokenizer_destroy(&t);
    /* rows without a token, as many published models have */
    snprintf(config, sizeof config,
             "model: {type: llama, layers: 1, heads: 2, width: 16, hidden: 16, context: 8, vocabulary: %d}\n" REST,
             (int)info.count + 3);
    make_run(config);
    forget("hf m.gguf again n.gguf");
    o.tokenizer = TOKENIZER;
    OK(ctx, export_to("run", "hf", true, &o));
    assert_tokens("hf");
    assert_end("hf", info.eos);
    OK(ctx, export_to("run", "m.gguf", false, &o));
    assert_tokens("m.gguf");
    assert_end("m.gguf", info.eos);
    OK(ctx, export_to("m.gguf", "again", true, NULL));
    assert_tokens("again");
    assert_end("again", info.eos);
    /* what the folder says goes along as it is */
    write_text("again/generation_config.json", "{\"eos_token_id\": [1, 0], \"do_sample\": true, \"new\": 7}");
    forget("third");
    OK(ctx, export_to("again", "third", true, NULL));
    an_pretrained *p = NULL;
    an_pretrained_sampling s;
    an_pretrained_sampling_init(&s, sizeof s);
    OK(ctx, an_pretrained_open(&p, ctx, "third"));
    OK(ctx, an_pretrained_sampling_get(p, &s));
    an_pretrained_close(&p);
    assert_true(s.stop_count == 2 && s.stop_tokens[0] == 1 && s.temperature == 1 && s.top_k == 50);
    assert_string_equal(s.ignored, "new");
    OK(ctx, export_to("hf", "n.gguf", false, NULL)); /* from the folder's own */
    assert_tokens("n.gguf");
    OK(ctx, an_pretrained_tokenizer(&t, ctx, "n.gguf"));
    OK(ctx, an_tokenizer_info_get(t, &info));
    an_tokenizer_destroy(&t);
    forget("small.gguf");
    FAILS(ctx, export_to(GOLDEN "smollm2", "small.gguf", false, &o), AN_ERR_UNSUPPORTED, "so it is not its tokenizer");
    assert_int_not_equal(access("small.gguf", F_OK), 0);
    o.tokenizer = ANNEAL_SOURCE_DIR "/tests/golden/tokenizers/bert.json";
    FAILS(ctx, export_to(GOLDEN "smollm2", "small.gguf", false, &o), AN_ERR_UNSUPPORTED,
          "GGUF has names for four kinds of tokenizers");
}

/* ---- refusals ---- */

static void copy_changed(const char *from, const char *to, float number) {
    static char bytes[MOST];
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    const size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (number != 0) memcpy(bytes + length - sizeof number, &number, sizeof number);
    write_file(to, bytes, length);
}

static void test_refusals(void **state) {
    (void)state;
    an_export_options o = options_of(AN_DTYPE_Q8_0);
    an_checkpoint *c = NULL;
    forget("hf m.gguf large run");
    FAILS(ctx, export_to(GOLDEN "gpt2", "hf", true, &o), AN_ERR_UNSUPPORTED, "safetensors has no type Q8_0");
    assert_int_not_equal(access("hf", F_OK), 0);
    OK(ctx, export_to(GOLDEN "gpt2", "hf", true, NULL));
    FAILS(ctx, export_to(GOLDEN "gpt2", "hf", true, NULL), AN_ERR_FILE, "remove that folder, or name another");
    FAILS(ctx, export_to(GOLDEN "gpt2/model.safetensors", "m.gguf", false, NULL), AN_ERR_FILE,
          "is neither a folder with config.json nor a GGUF file");
    /* a number that f16 does not have */
    mkdir("large", 0777);
    copy_changed(GOLDEN "smollm2/config.json", "large/config.json", 0);
    copy_changed(GOLDEN "smollm2/model.safetensors", "large/model.safetensors", 1e6F);
    o.dtype = AN_DTYPE_F16;
    FAILS(ctx, export_to("large", "large/out", true, &o), AN_ERR_NONFINITE, "which the type F16 cannot hold");
    assert_int_not_equal(access("large/out/model.safetensors", F_OK), 0);
    assert_int_not_equal(access("large/out/model.safetensors.new", F_OK), 0);
    /* a model of no family */
    write_sums();
    an_trainer *t =
        open_run("model: {type: mlp, hidden: [4]}\ndata: {train: {type: csv, path: sums.csv, targets: [sum]}}\n"
                 "run: {dir: run, steps: 1}\nsave: {every: off}\n");
    OK(ctx, an_trainer_save(t, 1));
    an_trainer_destroy(&t);
    FAILS(ctx, export_to("run", "m.gguf", false, NULL), AN_ERR_UNSUPPORTED, "export it with --to onnx or --to torch");
    /* a run that began with another model than it says */
    o = options_of(AN_DTYPE_F32);
    o.from = GOLDEN "smollm2";
    make_run(LLAMA);
    FAILS(ctx, export_to("run", "m.gguf", false, &o), AN_ERR_UNSUPPORTED, "its model is not the one that");
    o.from = NULL;
    o.dtype = (an_dtype)7;
    OK(ctx, an_checkpoint_open(&c, ctx, "run"));
    o.format = AN_EXPORT_GGUF;
    FAILS(ctx, an_checkpoint_export(c, "m.gguf", &o), AN_ERR_ARGUMENT,
          "dtype is u8, which exports to gguf cannot have");
    o.format = AN_EXPORT_ONNX;
    FAILS(ctx, an_checkpoint_export(c, "m.onnx", &o), AN_ERR_ARGUMENT,
          "dtype is set, but exports to onnx do not use it");
    o.dtype = AN_DTYPE_NONE;
    o.tokenizer = GOLDEN "smollm2";
    FAILS(ctx, an_checkpoint_export(c, "m.onnx", &o), AN_ERR_ARGUMENT, "tokenizer is set, but");
    o.format = (an_export_format)7;
    FAILS(ctx, an_checkpoint_export(c, "m.onnx", &o), AN_ERR_ARGUMENT, "format is 7, which is no an_export_format");
    an_checkpoint_close(&c);
    assert_int_not_equal(access("m.gguf", F_OK), 0);
}

/* ---- without memory ---- */

static void test_without_memory(void **state) {
    (void)state;
    for (int folder = 0; folder < 2; folder++) {
        an_status status = AN_ERR_MEMORY;
        an_checkpoint *c = NULL;
        OK(ctx, an_checkpoint_open(&c, ctx, GOLDEN "gpt2"));
        for (int n = 1; status == AN_ERR_MEMORY; n++) {
            forget(folder ? "hf" : "m.gguf");
            counted.fail_at = counted.calls + n;
            status = folder ? export_as(c, "hf", AN_EXPORT_HUGGINGFACE) : export_as(c, "m.gguf", AN_EXPORT_GGUF);
            counted.fail_at = 0;
            if (status == AN_ERR_MEMORY) assert_int_not_equal(access(folder ? "hf/config.json" : "m.gguf", F_OK), 0);
            assert_true(n < 2000);
        }
        OK(ctx, status);
        an_checkpoint_close(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_family, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scaling, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_adapter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_split, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tokenizer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
