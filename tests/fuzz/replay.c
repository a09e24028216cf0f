/* Runs a fuzzer on files, for compilers without libFuzzer: what was found once stays found. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int count, char **files) {
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(files[i], "rb");
        uint8_t *data = NULL;
        long size;
        if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) ||
            !(data = malloc((size_t)size + 1)) || fread(data, 1, (size_t)size, file) != (size_t)size) {
            fprintf(stderr, "replay: %s cannot be read\n", files[i]);
            return 1;
        }
        fclose(file);
        LLVMFuzzerTestOneInput(data, (size_t)size);
        free(data);
    }
    printf("replay: %d files\n", count - 1);
    return 0;
}
