/* The device seam: a device whose memory can only be touched while a kernel or a copy of its own runs. Whoever
 * dereferences tensor memory anywhere else dies here. */
#include <sys/mman.h>

#include "anneal/experimental.h"
#include "anneal/plan.h"
#include "support/support.h"

enum { MOST_PIECES = 64 };

typedef struct {
    struct {
        void *memory;
        size_t bytes;
    } pieces[MOST_PIECES];
    int count;
    long launches, copies;
} poisoned;

static void protect(poisoned *p, int protection) {
    for (int i = 0; i < p->count; i++)
        if (mprotect(p->pieces[i].memory, p->pieces[i].bytes, protection)) fail_msg("mprotect failed");
}

static size_t whole_pages(size_t bytes) {
    return (bytes + 4095) / 4096 * 4096;
}

static an_status device_allocate(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    poisoned *p = device->user;
    (void)ctx;
    if (p->count == MOST_PIECES) return AN_ERR_MEMORY;
    void *m = mmap(NULL, whole_pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return AN_ERR_MEMORY;
    p->pieces[p->count].memory = m;
    p->pieces[p->count++].bytes = whole_pages(bytes);
    *memory = m;
    return AN_OK;
}

static void device_release(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    poisoned *p = device->user;
    (void)ctx;
    if (!*memory) return;
    for (int i = 0; i < p->count; i++)
        if (p->pieces[i].memory == *memory) p->pieces[i] = p->pieces[--p->count];
    munmap(*memory, whole_pages(bytes));
    *memory = NULL;
}

static an_status device_copy(const an_device *device, an_context *ctx, void *dst, const void *src, size_t bytes,
                             an_copy_direction direction) {
    poisoned *p = device->user;
    (void)ctx, (void)direction;
    p->copies++;
    protect(p, PROT_READ | PROT_WRITE);
    memmove(dst, src, bytes);
    protect(p, PROT_NONE);
    return AN_OK;
}

static an_status device_fill(const an_device *device, an_context *ctx, void *dst, int byte, size_t bytes) {
    poisoned *p = device->user;
    (void)ctx;
    protect(p, PROT_READ | PROT_WRITE);
    memset(dst, byte, bytes);
    protect(p, PROT_NONE);
    return AN_OK;
}

static an_status device_synchronize(const an_device *device, an_context *ctx) {
    (void)device, (void)ctx;
    return AN_OK;
}

static an_status device_launch(const an_device *device, const an_kernel *kernel, const an_call *call) {
    poisoned *p = device->user;
    p->launches++;
    protect(p, PROT_READ | PROT_WRITE);
    an_status status = kernel->run(call);
    protect(p, PROT_NONE);
    return status;
}

/* Trains a little on a device; returns the bits of all weights and losses. */
static uint64_t train(const an_device *device) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_params *params = NULL;
    an_plan *plan = NULL;
    an_program *program = NULL;
    uint64_t bits = 0;
    float x[6 * 4], y[6 * 2], w[64];
    options.device = device;
    options.threads = 2;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    OK(ctx, small_mlp(&g, ctx));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_params_init(params, 3));
    OK(ctx, plan_for(&plan, ctx, g, "batch", 8, 7));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_program_bind(program, "batch", 6));
    for (int i = 0; i < 24; i++) x[i] = (float)noise((uint64_t)i);
    for (int i = 0; i < 12; i++) y[i] = (float)noise((uint64_t)i + 100);
    an_array ax = array_of(x, AN_DTYPE_F32, 2, (const int64_t[]){6, 4}),
             ay = array_of(y, AN_DTYPE_F32, 2, (const int64_t[]){6, 2});
    OK(ctx, an_program_set_input(program, "x", &ax));
    OK(ctx, an_program_set_input(program, "y", &ay));
    for (int i = 0; i < 3; i++) {
        double loss;
        OK(ctx, an_program_run(program, i ? AN_FORM_TRAIN_NEXT : AN_FORM_TRAIN_FIRST));
        OK(ctx, an_program_loss(program, &loss));
        uint64_t u;
        memcpy(&u, &loss, sizeof u);
        bits = bits * 31 + u;
    }
    an_array aw = array_of(w, AN_DTYPE_F32, 2, (const int64_t[]){16, 4});
    OK(ctx, an_params_get(params, "fc1.weight", AN_PART_GRADIENT, &aw));
    for (int i = 0; i < 64; i++) {
        uint32_t u;
        memcpy(&u, &w[i], sizeof u);
        bits = bits * 31 + u;
    }
    OK(ctx, an_program_run(program, AN_FORM_PREDICT));
    float out[12];
    an_array aout = array_of(out, AN_DTYPE_F32, 2, (const int64_t[]){6, 2});
    OK(ctx, an_program_get_output(program, "out", &aout));
    an_program_destroy(&program);
    an_plan_destroy(&plan);
    an_params_destroy(&params);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
    return bits;
}

static void test_nobody_touches_device_memory(void **state) {
    (void)state;
    poisoned p = {0};
    an_device device = {.size = sizeof device,
                        .name = "poisoned",
                        .allocate = device_allocate,
                        .release = device_release,
                        .copy = device_copy,
                        .fill = device_fill,
                        .synchronize = device_synchronize,
                        .launch = device_launch,
                        .user = &p};
    uint64_t there = train(&device), here = train(NULL);
    assert_true(there == here);
    assert_true(p.launches > 10 && p.copies > 5);
    assert_int_equal(p.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nobody_touches_device_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
