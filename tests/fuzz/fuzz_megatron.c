/* Fuzzes Megatron's index with tokens that fit it or do not: after the options, two bytes say how
 * many bytes the tokens have. */
#include "fuzz_data.h"

/* The paths of a prefix must end in .bin and .idx, so they are links to files in memory, in a folder
 * that goes with the process. */
static memory_file index_file, tokens_file;
static char folder[] = "/tmp/fuzz_megatron.XXXXXX", prefix[64], index_path[80], tokens_path[80];

static void remove_links(void) {
    unlink(index_path);
    unlink(tokens_path);
    rmdir(folder);
}

static void make_links(void) {
    if (prefix[0]) return;
    if (!mkdtemp(folder)) abort();
    snprintf(prefix, sizeof prefix, "%s/set", folder);
    snprintf(index_path, sizeof index_path, "%s.idx", prefix);
    snprintf(tokens_path, sizeof tokens_path, "%s.bin", prefix);
    if (symlink(index_file.path, index_path) || symlink(tokens_file.path, tokens_path)) abort();
    atexit(remove_links);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned char tokens[1 << 12];
    an_megatron_source source;
    an_megatron_source_init(&source, sizeof source);
    an_dataset *d = NULL;
    if (size < 3) return 0;
    need_context();
    const size_t bytes = an_context_bytes(context);
    const int options = data[0];
    const size_t tokens_size = ((size_t)data[1] | (size_t)data[2] << 8) % sizeof tokens;
    for (size_t i = 0; i < tokens_size; i++) tokens[i] = (unsigned char)(data[i % size] * (i % 3 == 0));
    fill_file(&index_file, data + 3, size - 3);
    fill_file(&tokens_file, tokens, tokens_size);
    make_links();
    source.prefix = prefix;
    source.context = 1 + (options >> 4);
    source.limit = options & 1 ? 200 : 0;
    source.documents = options & 2;
    source.ignore_borders = options & 4;
    source.begin = options & 8 ? 0.3 : 0;
    const an_status status = an_dataset_create_megatron(&d, context, &source);
    finish(status, &d, bytes);
    return 0;
}
