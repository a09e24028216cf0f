#include "text/versions.h"

#include <stddef.h>

static const struct {
    uint32_t first, last;
    unsigned flags;
} ranges[] = {
#define PLAIN AN_VERSION_PLAIN
#define LETTER AN_VERSION_LETTER
#define NUMBER AN_VERSION_NUMBER
#define NONSPACING AN_VERSION_NONSPACING
#define NOT_NONSPACING AN_VERSION_NOT_NONSPACING
#define MARK AN_VERSION_MARK
#define NOT_MARK AN_VERSION_NOT_MARK
#define PUNCTUATION AN_VERSION_PUNCTUATION
#define NOT_PUNCTUATION AN_VERSION_NOT_PUNCTUATION
#define NOT_OTHER AN_VERSION_NOT_OTHER
#define RANGE(first, last, flags) {first, last, flags},
#define LOWER(first, last, to)
#include "text/versions.def"
#undef RANGE
#undef LOWER
};

static const struct {
    uint32_t first, last, to;
} lowers[] = {
#define RANGE(first, last, flags)
#define LOWER(first, last, to) {first, last, to},
#include "text/versions.def"
};

unsigned an_version_flags(uint32_t c) {
    size_t low = 0, high = sizeof ranges / sizeof *ranges;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (c > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof ranges / sizeof *ranges && c >= ranges[low].first ? ranges[low].flags : 0;
}

bool an_version_choose(uint32_t c, unsigned is, unsigned is_not, bool otherwise) {
    const unsigned flags = an_version_flags(c);
    return flags & is ? true : flags & is_not ? false : otherwise;
}

uint32_t an_version_lower(uint32_t c) {
    for (size_t i = 0; i < sizeof lowers / sizeof *lowers && c >= lowers[i].first; i++)
        if (c <= lowers[i].last) return lowers[i].to + (c - lowers[i].first);
    return c;
}
