#include "formats/hdf5_chunks.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/memory_check.h"

enum {
    CHECKSUM = 4,            /* bytes of fletcher32 behind what it is of */
    MOST_INFLATED = 1032,    /* times as long as it was, and no longer: https://zlib.net/zlib_tech.html */
    KEPT = 256 * 1024 * 1024 /* bytes of unpacked chunks: arrays of the usual examples are unpacked once */
};

#define REFUSE(code, ...) (snprintf(note, AN_HDF5_NOTE, __VA_ARGS__), (an_status)(code))

/* ---- filters ---- */

/* HDF5's: of 16-bit words, the upper byte first, with sums modulo 65,535. */
static uint32_t fletcher32(const unsigned char *bytes, size_t count) {
    enum { AT_ONCE = 1 << 16 }; /* bytes, for which no sum overflows */
    uint64_t first = 0, second = 0;
    for (size_t begin = 0; begin < count; begin += AT_ONCE) {
        const size_t end = count - begin < AT_ONCE ? count : begin + AT_ONCE;
        for (size_t i = begin; i < end; i += 2) {
            first += (uint64_t)bytes[i] << 8 | (i + 1 < end ? bytes[i + 1] : 0);
            second += first;
        }
        first %= 65535;
        second %= 65535;
    }
    return (uint32_t)(second << 16 | first);
}

/* Sums that are 0 may be written as 65,535, which is the same number. */
static bool is_sum(uint32_t written, uint32_t sum) {
    return (written & 0xffff) % 65535 == (sum & 0xffff) && (written >> 16) % 65535 == sum >> 16;
}

/* Bytes 0 of all numbers are followed by bytes 1 of all; what is left of a number stays at the end. */
static void unshuffle(const unsigned char *from, size_t bytes, size_t width, unsigned char *to) {
    const size_t count = bytes / width;
    for (size_t b = 0; b < width; b++)
        for (size_t i = 0; i < count; i++) to[i * width + b] = from[b * count + i];
    memcpy(to + count * width, from + count * width, bytes - count * width);
}

/* Undoes all filters, the last one first. The chunk begins in the first buffer; the result is where it ends, or NULL
 * after a note. */
static const unsigned char *unpack(an_hdf5_chunks *c, size_t bytes, uint32_t skipped, char note[AN_HDF5_NOTE]) {
    unsigned char *from = c->buffers[0], *to = c->buffers[1];
    bool is_good = true;
    for (int f = c->layout->filter_count; f-- > 0 && is_good;) {
        if (skipped >> f & 1) continue;
        const an_hdf5_filter filter = c->layout->filters[f];
        if (filter == AN_HDF5_FLETCHER32) {
            is_good = bytes > CHECKSUM;
            if (!is_good) break;
            bytes -= CHECKSUM;
            const unsigned char *w = from + bytes;
            const uint32_t written = w[0] | (uint32_t)w[1] << 8 | (uint32_t)w[2] << 16 | (uint32_t)w[3] << 24;
            is_good = is_sum(written, fletcher32(from, bytes));
            continue;
        }
        if (filter == AN_HDF5_DEFLATE) {
            uLongf got = (uLongf)c->room;
            is_good = uncompress(to, &got, from, (uLong)bytes) == Z_OK;
            bytes = (size_t)got;
        } else
            unshuffle(from, bytes, c->width, to);
        unsigned char *const swapped = from;
        from = to;
        to = swapped;
    }
    if (is_good && bytes == c->bytes) return from;
    (void)REFUSE(AN_ERR_PARSE, "a chunk of it is damaged");
    return NULL;
}

/* ---- reading ---- */

/* The unpacked chunk of this number, whose first number has the index `at`. */
static an_status get_chunk(an_hdf5_chunks *c, int64_t number, const int64_t *at, const unsigned char **chunk,
                           char note[AN_HDF5_NOTE]) {
    const size_t slot = (size_t)number % c->slot_count;
    unsigned char *const kept = c->slots + slot * c->bytes;
    *chunk = kept;
    if (c->held[slot] == number + 1) return AN_OK;
    size_t size = 0;
    uint32_t skipped = 0;
    const an_status status = c->plugin->read_chunk(c->array, at, c->buffers[0], c->room, &size, &skipped, note);
    if (status != AN_OK) return status;
    const unsigned char *unpacked = unpack(c, size, skipped, note);
    if (!unpacked) return AN_ERR_PARSE;
    memcpy(kept, unpacked, c->bytes);
    c->held[slot] = number + 1;
    return AN_OK;
}

/* Copies what a chunk has of a sample, from dimension d on. `in` and `out` count numbers of the chunk and of the
 * sample. */
static void copy_part(const an_hdf5_chunks *c, const int64_t *at, int d, int64_t in, int64_t out,
                      const unsigned char *from, unsigned char *to) {
    const an_hdf5_layout *l = c->layout;
    int64_t count = 1;
    if (d < l->rank) {
        count = l->dims[d] - at[d] < l->chunk[d] ? l->dims[d] - at[d] : l->chunk[d];
        in *= l->chunk[d];
        out = out * l->dims[d] + at[d];
    }
    if (d < l->rank - 1)
        for (int64_t i = 0; i < count; i++) copy_part(c, at, d + 1, in + i, out + i, from, to);
    else
        memcpy(to + (size_t)out * c->width, from + (size_t)in * c->width, (size_t)count * c->width);
}

an_status an_hdf5_chunks_read(an_hdf5_chunks *c, int64_t sample, unsigned char *to, char note[AN_HDF5_NOTE]) {
    const an_hdf5_layout *l = c->layout;
    int64_t index[AN_MAX_DIMS] = {sample / l->chunk[0]}, at[AN_MAX_DIMS];
    for (bool more = true; more;) {
        const unsigned char *chunk;
        int64_t number = 0;
        for (int d = 0; d < l->rank; d++) {
            number = number * c->counts[d] + index[d];
            at[d] = index[d] * l->chunk[d];
        }
        const an_status status = get_chunk(c, number, at, &chunk, note);
        if (status != AN_OK) return status;
        copy_part(c, at, 1, sample % l->chunk[0], 0, chunk, to);
        more = false;
        for (int d = l->rank - 1; d > 0 && !more; d--) {
            more = ++index[d] < c->counts[d];
            if (!more) index[d] = 0;
        }
    }
    return AN_OK;
}

/* ---- opening ---- */

/* Sizes that the file has bytes for, at what the filters can make of them. */
static bool measure(an_hdf5_chunks *c, size_t *slots) {
    const an_hdf5_layout *l = c->layout;
    size_t each = c->width, row = 1, all, made, most;
    bool is_deflated = false;
    for (int f = 0; f < l->filter_count; f++) is_deflated = is_deflated || l->filters[f] == AN_HDF5_DEFLATE;
    for (int d = 0; d < l->rank; d++) {
        if (l->chunk[d] < 1 || !an_multiply_sizes(each, (size_t)l->chunk[d], &each)) return false;
        c->counts[d] = (l->dims[d] - 1) / l->chunk[d] + 1;
        if (d > 0 && !an_multiply_sizes(row, (size_t)c->counts[d], &row)) return false;
    }
    c->bytes = each;
    if (l->stored < 1 || !an_multiply_sizes(row, (size_t)c->counts[0], &all) || !an_multiply_sizes(all, each, &made) ||
        !an_multiply_sizes((size_t)l->stored, is_deflated ? MOST_INFLATED : 1, &most) || made > most)
        return false;
    const size_t kept = KEPT / each > row ? KEPT / each : row; /* at least those of a sample */
    *slots = kept < all ? kept : all;
    c->room = (size_t)compressBound((uLong)each + CHECKSUM) + CHECKSUM;
    return true;
}

an_status an_hdf5_chunks_open(an_hdf5_chunks *c, an_context *ctx, const an_hdf5_layout *layout, size_t width,
                              const an_hdf5_plugin *plugin, void *array, const char *path) {
    size_t slots;
    *c = (an_hdf5_chunks){.layout = layout, .plugin = plugin, .array = array, .width = width};
    if (!measure(c, &slots))
        return AN_ERROR(
            ctx, AN_ERR_PARSE,
            "%s: the file has %lld bytes of the array, which is too few for its shape: it is damaged, or was "
            "not written to its end",
            path, (long long)layout->stored);
    AN_TRY_RETURN(an_memory_check(ctx, slots * c->bytes + 2 * c->room, path));
    for (int i = 0; i < 2; i++) AN_TRY_RETURN(an_alloc_raw(ctx, (void **)&c->buffers[i], c->room));
    AN_TRY_RETURN(an_alloc_raw(ctx, (void **)&c->slots, slots * c->bytes));
    c->slot_count = slots;
    return an_alloc(ctx, (void **)&c->held, slots, sizeof *c->held);
}

void an_hdf5_chunks_close(an_hdf5_chunks *c, an_context *ctx) {
    an_release(ctx, (void **)&c->held, c->slot_count, sizeof *c->held);
    an_release(ctx, (void **)&c->slots, c->slot_count * c->bytes, 1);
    for (int i = 0; i < 2; i++) an_release(ctx, (void **)&c->buffers[i], c->room, 1);
}
