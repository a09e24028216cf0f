/* The text of a chain, read: which rows of which kernels its stages run. */
#include "ops/chain_program.h"

#include <string.h>

#include "base/dtype.h"
#include "ir/registry.h"

const an_kernel *an_chain_kernel(const an_context *ctx, const an_op *op) {
    if (op->flags & AN_OP_OWN) return NULL;
    const an_kernel *kernel = ctx->device->kernels(ctx->device, ctx, op->name);
    while (kernel && kernel->name && !kernel->row_f32) kernel++;
    return kernel && kernel->name ? kernel : NULL;
}

/* The rows of an op that may be a stage; NULL: it may not. */
static const an_kernel *stage_kernel(const an_context *ctx, const char *name, size_t length, int *operands) {
    const an_op *op = an_op_find(ctx, name, length);
    if (!op || op->attribute_bytes || op->inputs_min != op->inputs_max || op->inputs_max > AN_CHAIN_OPERANDS)
        return NULL;
    *operands = op->inputs_max;
    return an_chain_kernel(ctx, op);
}

static bool parse_operand(const char **at, int inputs, int *operand) {
    int number = 0;
    if (**at == 'x') {
        *operand = AN_CHAIN_VALUE;
        ++*at;
        return true;
    }
    if (**at < '0' || **at > '9') return false;
    while (**at >= '0' && **at <= '9' && number < inputs) number = number * 10 + *(*at)++ - '0';
    *operand = number;
    return number < inputs;
}

static bool parse_dtype(const char **at, an_dtype *dtype) {
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16, AN_DTYPE_F16};
    const size_t length = strcspn(*at, " ");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strlen(an_dtype_name(dtypes[i])) != length || memcmp(an_dtype_name(dtypes[i]), *at, length) != 0) continue;
        *dtype = dtypes[i];
        *at += length;
        return true;
    }
    return false;
}

static bool parse_stage(const an_context *ctx, const char **at, int inputs, an_chain_stage *stage, const char **wrong) {
    const size_t length = strcspn(*at, "(");
    int operands = 0;
    *wrong = "a stage is an elementwise op without attributes";
    stage->kernel = stage_kernel(ctx, *at, length, &operands);
    if (!stage->kernel) return false;
    *at += length;
    *wrong = "a stage needs as many operands as its op takes, each x or the number of an input";
    for (; stage->operand_count < operands; stage->operand_count++) {
        if (*(*at)++ != (stage->operand_count ? ',' : '(')) return false;
        if (!parse_operand(at, inputs, &stage->operands[stage->operand_count])) return false;
    }
    *wrong = "a stage ends with ) or ):dtype";
    if (*(*at)++ != ')') return false;
    if (**at != ':') return true;
    ++*at;
    return parse_dtype(at, &stage->dtype);
}

bool an_chain_parse(const an_context *ctx, const char *program, int inputs, an_chain *chain, const char **wrong) {
    *chain = (an_chain){0};
    *wrong = "a chain has at least one stage";
    if (!program || !*program) return false;
    for (const char *at = program;;) {
        if (chain->count == AN_CHAIN_STAGES) {
            *wrong = "a chain has at most 6 stages";
            return false;
        }
        if (!parse_stage(ctx, &at, inputs, &chain->stages[chain->count++], wrong)) return false;
        if (!*at) return true;
        *wrong = "stages are separated by one space";
        if (*at++ != ' ') return false;
    }
}
