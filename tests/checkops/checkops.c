/* checkops: checks and times every kernel of every op.
 *
 * The cases and their oracles are in cases_*.c; check_*.c have the modes and what they share. Every check is of one
 * case, which its op, dtype, number and seed determine; so a failure prints a line that runs just that case again.
 */
#include "checkops/nodes.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "support/ops.h"

static const double usual_work = 5; /* of nodes: all but the largest of GPT-2's products */

enum { EXIT_WRONG_OPTION = 2, EXIT_SKIPPED = 77 }; /* 77 is what tests/CMakeLists.txt takes for skipped */

static const check_family *const tables[] = {
    check_unary,   check_binary,      check_reduce,  check_softmax, check_loss,       check_copy,
    check_product, check_convolution, check_pool,    check_norm,    check_batch_norm, check_embedding,
    check_rotary,  check_attention,   check_dropout, check_sink,    check_fused,
};

static const char help[] =
    "checkops --mode=MODE [--op=NAME] [--kernel=NAME] [--dtype=DTYPE] [--isa=LEVEL] [--case=N] [--seed=S]\n"
    "         [--shapes=N] [--threads=N] [--model=NAME] [--work=GFLOP] [--bits]\n"
    "\n"
    "  --mode=list     one line for each op: its name and its kernels, best first\n"
    "  --mode=test     every kernel against an oracle in long double, on random shapes of each dtype: dense,\n"
    "                  permuted, with gaps, broadcast; nothing may be written outside of outputs and scratch\n"
    "  --mode=grad     every gradient against central differences, in f64\n"
    "  --mode=threads  the same bits for 1, 2, 3, 4, 8, 16, 32, 64 and 128 threads, also where the caller has\n"
    "                  set flush-to-zero; on random cases, and on the nodes of real models' training steps\n"
    "  --mode=rows     a sample alone has the bits that it has among others: 1, 2, 3, 7 samples and 64; on both\n"
    "  --mode=perf     how long each kernel takes\n"
    "\n"
    "  --op, --kernel, --dtype   only this one; a dtype is f32, f64, bf16 or f16\n"
    "  --isa                     the level of instructions: base, avx2, avx512 or amx; otherwise the machine's\n"
    "  --case, --seed            only this case, with the random numbers of this seed: as failures print them\n"
    "  --shapes                  how many random shapes: 24 in test, 12 in grad, 3 large ones in threads, 6 in rows\n"
    "  --threads                 the most threads that mode threads takes\n"
    "  --model                   only nodes of this real model and no random cases\n"
    "  --work                    the largest nodes of real models, in GFLOP, a byte of traffic counting as ten\n"
    "                            flops: 5 unless given; 0 is none of them, 1000 all\n"
    "  --bits                    mode test also prints a hash of every output, to compare two programs or machines\n"
    "\n"
    "An element is right if |got - want| <= tolerance * max(|want|, rms), rms being the root mean square of\n"
    "the output: sums that cancel are judged by the size of what they cancel from. For an output of a few\n"
    "elements, rms is the usual one over random inputs; where it always cancels, that of the inputs. The\n"
    "tolerance is 1e-5 in f32, 1e-12 in f64 and 1e-6 for gradients. A bf16 or f16 element may be one ulp\n"
    "away from the expected value rounded to f32 and then to its type, or lie where the rule for f32 allows.\n"
    "Copies must be equal. A NaN is right only where one is expected.\n"
    "\n"
    "Exit code: 0 if all is right, 1 if not, 2 for a wrong option, 77 if this machine lacks the level.\n";

static void print_help(FILE *file) {
    fprintf(file, "%s\nReal models:\n", help);
    for (const real_model *model = real_models; model->name; model++) fprintf(file, "  %s\n", model->name);
}

static int failures;
static int64_t checks;

void check_count(void) {
    checks++;
}

void check_fail_plain(const char *format, ...) {
    va_list arguments;
    failures++;
    printf("FAILED ");
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
}

void check_fail(const check_run *run, const char *kernel, const char *format, ...) {
    const check_options *options = run->options;
    const char *dtype = an_dtype_name(run->dtype);
    va_list arguments;
    char shapes[1024], what[4096];
    check_run_describe(run, shapes, sizeof shapes);
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    check_fail_plain("%s%s%s %s case %" PRId64 " (%s): %s\n"
                     "    again: checkops --mode=%s --op=%s%s%s --dtype=%s --isa=%s --case=%" PRId64 " --seed=%" PRIu64,
                     run->family->op, kernel ? " " : "", kernel ? kernel : "", dtype, run->number, shapes, what,
                     options->mode, run->family->op, kernel ? " --kernel=" : "", kernel ? kernel : "", dtype,
                     an_isa_name(options->isa), run->number, options->seed);
}

const an_kernel *check_kernels(const check_options *options, const an_op *op) {
    return an_op_kernels(op, options->isa);
}

bool check_wants_kernel(const check_options *options, const an_kernel *kernel) {
    if (!strcmp(kernel->name, "amx") && options->isa < AN_ISA_AMX) return false; /* it lies beside those of avx512 */
    return !options->kernel || !strcmp(options->kernel, kernel->name);
}

bool check_wants_dtype(const check_options *options, const check_family *family, an_dtype dtype) {
    unsigned own = family->low_dtypes | 1u << AN_DTYPE_F32 | 1u << AN_DTYPE_F64;
    return (own & (options->dtypes ? options->dtypes : ~0u)) >> dtype & 1;
}

/* ---- ops ---- */

static const check_family *find_family(const char *op) {
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const check_family *family = tables[i]; family->op; family++)
            if (!strcmp(family->op, op)) return family;
    return NULL;
}

static void list(const check_options *options, const check_family *family, const an_op *op) {
    (void)family;
    printf("%s", op->name);
    for (const an_kernel *kernel = check_kernels(options, op); kernel->name; kernel++) printf(" %s", kernel->name);
    printf("\n");
}

typedef void mode_function(const check_options *options, const check_family *family, const an_op *op);

static const struct {
    const char *name;
    mode_function *function;
} modes[] = {
    {"list", list},       {"test", check_test}, {"grad", check_grad}, {"threads", check_threads},
    {"rows", check_rows}, {"perf", check_perf},
};

static void run(const check_options *options, mode_function *function) {
    for (int i = 0; an_op_table[i]; i++) {
        const an_op *op = an_op_table[i];
        if (!op->kernels[0] || (options->op && strcmp(options->op, op->name) != 0)) continue;
        const bool computes = !(op->flags & AN_OP_COMMUNICATION) && op->inputs_max > 0;
        if (!computes && function != list) continue; /* tests/ranks and tests/exec/test_gathered.c have it */
        const check_family *family = find_family(op->name);
        if (family || function == list)
            function(options, family, op);
        else
            check_fail_plain("%s: has kernels but no cases: tests/checkops/cases.h says what it needs", op->name);
        fflush(stdout);
    }
}

/* ---- options ---- */

static bool parse_number(const char *text, uint64_t maximum, uint64_t *number) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > maximum) return false;
    *number = value;
    return true;
}

static bool parse_decimal(const char *text, double *number) {
    char *end;
    *number = strtod(text, &end);
    return end != text && !*end && *number >= 0;
}

static bool parse_dtype(const char *text, unsigned *mask) {
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16, AN_DTYPE_F16};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (!strcmp(text, an_dtype_name(dtypes[i]))) *mask = 1u << dtypes[i];
    return *mask != 0;
}

static bool is_kernel(const check_options *options, const char *name) {
    for (int i = 0; an_op_table[i]; i++) {
        if (options->op && strcmp(options->op, an_op_table[i]->name) != 0) continue;
        for (const an_kernel *kernel = check_kernels(options, an_op_table[i]); kernel && kernel->name; kernel++)
            if (!strcmp(kernel->name, name)) return true;
    }
    return false;
}

/* The value of option `name` if `argument` is --name=value, else NULL. */
static const char *value_of(const char *argument, const char *name) {
    size_t length = strlen(name);
    bool is_named = !strncmp(argument, "--", 2) && !strncmp(argument + 2, name, length) && argument[2 + length] == '=';
    return is_named ? argument + 2 + length + 1 : NULL;
}

static bool parse_isa(const char *text, an_isa *isa) {
    for (*isa = AN_ISA_BASE; *isa <= AN_ISA_AMX; (*isa)++)
        if (!strcmp(text, an_isa_name(*isa))) return true;
    return false;
}

static bool parse_option(const char *argument, check_options *options) {
    const char *value;
    uint64_t number = 0;
    if (!strcmp(argument, "--bits")) return options->bits = true;
    if ((value = value_of(argument, "mode"))) {
        options->mode = value;
        return true;
    }
    if ((value = value_of(argument, "op"))) {
        const an_op *op = find_builtin(value);
        options->op = value;
        return op && op->kernels[0];
    }
    if ((value = value_of(argument, "kernel"))) {
        options->kernel = value;
        return true; /* known only when the op is */
    }
    if ((value = value_of(argument, "dtype"))) return parse_dtype(value, &options->dtypes);
    if ((value = value_of(argument, "isa"))) return parse_isa(value, &options->isa);
    if ((value = value_of(argument, "model"))) return real_model_find(options->model = value);
    if ((value = value_of(argument, "work"))) return parse_decimal(value, &options->work);
    if ((value = value_of(argument, "seed"))) return parse_number(value, UINT64_MAX, &options->seed);
    if ((value = value_of(argument, "case")) && parse_number(value, INT64_MAX, &number)) {
        options->only = (int64_t)number;
        return true;
    }
    if ((value = value_of(argument, "threads")) && parse_number(value, INT_MAX, &number)) {
        options->most_threads = (int)number;
        return number > 0;
    }
    if ((value = value_of(argument, "shapes")) && parse_number(value, 10000, &number)) {
        options->shapes = (int64_t)number;
        return number > 0;
    }
    return false;
}

int main(int argc, char **argv) {
    const an_isa machine = an_isa_highest();
    check_options options = {.only = -1, .seed = 1, .isa = machine, .work = usual_work};
    mode_function *function = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) {
            print_help(stdout);
            return EXIT_SUCCESS;
        }
        if (!parse_option(argv[i], &options)) {
            fprintf(stderr, "checkops: cannot make sense of '%s'\n\n", argv[i]);
            print_help(stderr);
            return EXIT_WRONG_OPTION;
        }
    }
    for (size_t i = 0; options.mode && i < sizeof modes / sizeof modes[0]; i++)
        if (!strcmp(options.mode, modes[i].name)) function = modes[i].function;
    if (!function || (options.kernel && !is_kernel(&options, options.kernel))) {
        if (function)
            fprintf(stderr, "checkops: no kernel is named '%s'\n\n", options.kernel);
        else
            fprintf(stderr, "checkops: --mode is one of list, test, grad, threads, rows and perf\n\n");
        print_help(stderr);
        return EXIT_WRONG_OPTION;
    }
    if (options.isa > machine) {
        printf("checkops: skipped: this machine has no instructions of level %s, only %s\n", an_isa_name(options.isa),
               an_isa_name(machine));
        return EXIT_SKIPPED;
    }
    run(&options, function);
    nodes_release();
    if (checks) printf("%" PRId64 " checks, %d failures\n", checks, failures);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
