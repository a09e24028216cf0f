#include "interchange/torch_nodes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/word.h"
#include "interchange/model_nodes.h"

/* ---- names and numbers ---- */

const char *an_torch_dtype(an_dtype dtype) {
    static const char *const names[] = {
        [AN_DTYPE_F32] = "torch.float32", [AN_DTYPE_F64] = "torch.float64", [AN_DTYPE_BF16] = "torch.bfloat16",
        [AN_DTYPE_F16] = "torch.float16", [AN_DTYPE_I32] = "torch.int32",   [AN_DTYPE_I64] = "torch.int64",
        [AN_DTYPE_U8] = "torch.uint8",
    };
    return names[dtype];
}

void an_torch_string(an_text *text, const char *string) {
    an_text_add(text, "\"");
    for (; *string; string++) {
        const unsigned char c = (unsigned char)*string;
        if (c == '"' || c == '\\')
            an_text_add(text, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            an_text_add(text, "\\x%02x", c);
        else
            an_text_bytes(text, string, 1);
    }
    an_text_add(text, "\"");
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Variables are x0, x1, …, sizes n_batch, …: nothing else may be called so, nor what Python and the module have
 * names for. */
static bool is_taken(const char *name) {
    static const char *const words[] = {
        "self", "torch",  "F",      "p",        "math",  "window", "rotary",   "attention", "and",
        "as",   "assert", "async",  "await",    "break", "class",  "continue", "def",       "del",
        "elif", "else",   "except", "finally",  "for",   "from",   "global",   "if",        "import",
        "in",   "is",     "lambda", "nonlocal", "not",   "or",     "pass",     "raise",     "return",
        "try",  "while",  "with",   "yield",    "None",  "True",   "False"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i], name)) return true;
    return !strncmp(name, "n_", 2) || (name[0] == 'x' && an_is_digit(name[1]));
}

void an_torch_argument(an_text *text, const char *name) {
    if (!is_letter(*name)) an_text_add(text, "_");
    for (const char *c = name; *c; c++) an_text_add(text, "%c", is_letter(*c) || an_is_digit(*c) ? *c : '_');
    if (is_taken(name)) an_text_add(text, "_");
}

void an_torch_dimension(an_torch *t, an_dim dim) {
    an_text plain;
    an_text_init(&plain, t->text->ctx);
    an_dimensions_print(&t->graph->dimensions, dim, &plain);
    const char *at = plain.status == AN_OK ? plain.bytes : "";
    while (*at) {
        size_t length = 0;
        while (is_letter(at[length]) || (length > 0 && an_is_digit(at[length]))) length++;
        if (length > 0 && at[length] != '(') an_text_add(t->text, "n_"); /* a symbol, and no window(…) */
        if (length == 0) length = 1;
        an_text_bytes(t->text, at, length);
        at += length;
    }
    if (plain.status != AN_OK) t->text->status = plain.status;
    an_text_destroy(&plain);
}

static void write_dimensions(an_torch *t, int count, const an_dim *dims) {
    an_text_add(t->text, "(");
    for (int i = 0; i < count; i++) {
        if (i > 0) an_text_add(t->text, ", ");
        an_torch_dimension(t, dims[i]);
    }
    an_text_add(t->text, count == 1 ? ",)" : ")");
}

void an_torch_value(const an_torch *t, const an_result *result) {
    if (!result) {
        an_text_add(t->text, "None");
        return;
    }
    const char *const *name = an_node_attribute(result->node, "name", AN_ATTRIBUTE_STRING);
    if (t->slots[result->number] >= 0) {
        an_text_add(t->text, "x%d", t->slots[result->number]);
    } else if (result->node->op->storage == AN_STORAGE_INPUT || result->node->op->storage == AN_STORAGE_SCALAR) {
        an_torch_argument(t->text, *name);
    } else {
        an_text_add(t->text, "p[");
        an_torch_string(t->text, *name);
        an_text_add(t->text, "]");
    }
}

/* ---- ops that a text cannot say ---- */

static void write_bias(an_torch *t, const an_node *node) {
    const int64_t behind = an_node_input(node, 0)->ndims - 1 - an_node_integer(node, "axis");
    an_torch_value(t, an_node_input(node, 0));
    an_text_add(t->text, " + ");
    an_torch_value(t, an_node_input(node, 1));
    if (behind == 0) return;
    an_text_add(t->text, ".view(-1");
    for (int64_t i = 0; i < behind; i++) an_text_add(t->text, ", 1");
    an_text_add(t->text, ")");
}

static void write_slice(an_torch *t, const an_node *node) {
    const an_dim *begin = an_node_attribute(node, "begin", AN_ATTRIBUTE_DIM);
    const an_dim *end = an_node_attribute(node, "end", AN_ATTRIBUTE_DIM);
    an_torch_value(t, an_node_input(node, 0));
    an_text_add(t->text, "[");
    for (int64_t i = 0; i < an_node_integer(node, "axis"); i++) an_text_add(t->text, ":, ");
    if (*begin) an_torch_dimension(t, *begin);
    an_text_add(t->text, ":");
    an_torch_dimension(t, *end);
    an_text_add(t->text, "]");
}

static void write_pad(an_torch *t, const an_node *node) {
    const an_result *src = an_node_input(node, 0);
    an_text_add(t->text, "F.pad(");
    an_torch_value(t, src);
    an_text_add(t->text, ", (");
    for (int64_t i = src->ndims - 1; i > an_node_integer(node, "axis"); i--) an_text_add(t->text, "0, 0, ");
    an_torch_dimension(t, *(const an_dim *)an_node_attribute(node, "before", AN_ATTRIBUTE_DIM));
    an_text_add(t->text, ", ");
    an_torch_dimension(t, *(const an_dim *)an_node_attribute(node, "after", AN_ATTRIBUTE_DIM));
    an_text_add(t->text, "))");
}

/* ---- the table ---- */

/* Ops that a text cannot say, and sources. */
static const struct {
    const char *name;
    an_torch_form form;
} rows[] = {
    {"bias", {.write = write_bias}},
    {"slice", {.write = write_slice}},
    {"pad", {.write = write_pad}},
    {"constant", {.text = "torch.full({shape}, {value}, dtype={type}, device={device})"}},
};

static an_torch_form form_of(const an_op *op) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, op->name)) return rows[i].form;
    return (an_torch_form){.text = op->torch};
}

bool an_torch_is_known(const an_op *op) {
    const an_torch_form form = form_of(op);
    return form.text || form.write;
}

/* A text that names the number of parts has all of them; others have output 0. */
int an_torch_outputs(const an_node *node) {
    const char *text = form_of(node->op).text;
    return text && strstr(text, "{parts}") ? node->output_count : 1;
}

bool an_torch_reads(const an_op *op, int input) {
    const char digit = (char)('0' + input), *text = form_of(op).text;
    if (!text || strstr(text, "{*}")) return true;
    for (const char *at = text; (at = strchr(at, '{')); at++) {
        const char *key = at[1] == ',' ? strchr(at, '=') : at;
        if (key[1] == digit && !is_letter(key[2]) && !an_is_digit(key[2])) return true;
    }
    return false;
}

/* ---- texts ---- */

static void write_number(an_text *text, double number) {
    char digits[32];
    an_text_number(digits, sizeof digits, number);
    const bool plain = an_is_digit(*digits) || (*digits == '-' && an_is_digit(digits[1]));
    an_text_add(text, plain ? "%s" : "float(\"%s\")", digits);
}

static void write_attribute(an_torch *t, const an_attribute *a, const void *value) {
    const an_int_list *list = value;
    const an_dim_list *dims = value;
    switch (a->type) {
    case AN_ATTRIBUTE_INT: an_text_add(t->text, "%" PRId64, *(const int64_t *)value); break;
    case AN_ATTRIBUTE_BOOL: an_text_add(t->text, *(const bool *)value ? "True" : "False"); break;
    case AN_ATTRIBUTE_FLOAT: write_number(t->text, *(const double *)value); break;
    case AN_ATTRIBUTE_STRING: an_torch_string(t->text, *(const char *const *)value); break;
    case AN_ATTRIBUTE_DTYPE: an_text_add(t->text, "%s", an_torch_dtype(*(const an_dtype *)value)); break;
    case AN_ATTRIBUTE_DIM: an_torch_dimension(t, *(const an_dim *)value); break;
    case AN_ATTRIBUTE_DIMS: write_dimensions(t, dims->count, dims->values); break;
    case AN_ATTRIBUTE_INTS: write_dimensions(t, list->count, list->values); break;
    }
}

static bool is_set(const an_attribute *a, const void *value) {
    switch (a->type) {
    case AN_ATTRIBUTE_BOOL: return *(const bool *)value;
    case AN_ATTRIBUTE_FLOAT: return *(const double *)value != 0;
    case AN_ATTRIBUTE_INT: return *(const int64_t *)value != 0;
    default: return true;
    }
}

static const an_attribute *find_attribute(const an_node *node, const char *name, size_t length, const void **value) {
    for (const an_attribute *a = node->op->attributes; a && a->name; a++) {
        if (strlen(a->name) != length || strncmp(a->name, name, length) != 0) continue;
        *value = (const char *)node->attributes + a->offset;
        return a;
    }
    return NULL;
}

static void write_key(an_torch *t, const an_node *node, const char *key, size_t length) {
    const void *value = NULL;
    const an_result *out = &node->outputs[0];
    const an_attribute *a = find_attribute(node, key, length, &value);
    if (an_is_digit(*key))
        an_torch_value(t, an_node_input(node, *key - '0'));
    else if (a)
        write_attribute(t, a, value);
    else if (!strncmp(key, "shape", length))
        write_dimensions(t, out->ndims, out->dims);
    else if (!strncmp(key, "type", length))
        an_text_add(t->text, "%s", an_torch_dtype(out->dtype));
    else if (!strncmp(key, "parts", length))
        an_text_add(t->text, "%d", node->output_count);
    else if (!strncmp(key, "device", length)) {
        if (t->device) an_torch_argument(t->text, t->device);
        an_text_add(t->text, t->device ? ".device" : "None");
    }
}

static void write_all(an_torch *t, const an_node *node) {
    for (int i = 0; i < node->input_count; i++) {
        if (i > 0) an_text_add(t->text, ", ");
        an_torch_value(t, an_node_input(node, i));
    }
}

/* What is in braces, without them. */
static void write_piece(an_torch *t, const an_node *node, const char *piece, size_t length) {
    const bool is_argument = *piece == ',';
    const char *key = is_argument ? (const char *)memchr(piece, '=', length) + 1 : piece;
    size_t key_length = 0, rest;
    while (is_letter(key[key_length]) || an_is_digit(key[key_length])) key_length++;
    rest = (size_t)(piece + length - (key + key_length));
    const void *value = NULL;
    const an_attribute *a = find_attribute(node, key, key_length, &value);
    const bool there = an_is_digit(*key) ? an_node_input(node, *key - '0') != NULL : a && is_set(a, value);
    if (*piece == '*') {
        write_all(t, node);
    } else if (is_argument) {
        if (!there) return;
        an_text_add(t->text, ", ");
        an_text_bytes(t->text, piece + 1, (size_t)(key - piece) - 1);
        write_key(t, node, key, key_length);
        an_text_bytes(t->text, key + key_length, rest);
    } else if (rest > 0) { /* flag?text */
        if (there) an_text_bytes(t->text, key + key_length + 1, rest - 1);
    } else {
        write_key(t, node, key, key_length);
    }
}

void an_torch_expression(an_torch *t, const an_node *node) {
    const an_torch_form form = form_of(node->op);
    if (form.write) {
        form.write(t, node);
        return;
    }
    for (const char *at = form.text; *at;) {
        const size_t plain = strcspn(at, "{");
        an_text_bytes(t->text, at, plain);
        at += plain;
        if (!*at) break;
        const size_t inside = strcspn(++at, "}");
        write_piece(t, node, at, inside);
        at += inside + 1;
    }
}
