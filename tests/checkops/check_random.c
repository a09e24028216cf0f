/* Random numbers of cases: a counter and a mixing function, so that a case depends on its number alone. */
#include "base/text/text.h"
#include "checkops/checkops.h"

#include <string.h>

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t draw(check_random *r) {
    uint64_t z = r->state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

check_random check_random_of(uint64_t seed, const char *op, int64_t number, int stream) {
    uint64_t key[] = {seed, (uint64_t)number, (uint64_t)stream};
    check_random r = {.state = an_hash(key, sizeof key, an_hash(op, strlen(op), 0)), .enlarge = 1};
    return r;
}

int64_t check_between(check_random *r, int64_t low, int64_t high) {
    return low + (int64_t)(draw(r) % (uint64_t)(high - low + 1));
}

bool check_chance(check_random *r, int percent) {
    return check_between(r, 0, 99) < percent;
}

double check_uniform(check_random *r) {
    return (double)(draw(r) >> 11) * 0x1p-53;
}

/* The sum of four uniform numbers of 16 bits, scaled to variance 1: close enough to a normal number for tests, and
 * one draw. Its tails end at 3.46. */
double check_normal(check_random *r) {
    uint64_t bits = draw(r);
    double sum = 0;
    for (int i = 0; i < 64; i += 16) sum += (double)(bits >> i & 0xffff) * 0x1p-16;
    return (sum - 2) * 1.7320508075688772; /* the sum has mean 2 and variance 4/12 */
}

int64_t check_size(check_random *r, int64_t maximum) {
    static const int64_t primes[] = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29,  31,  37,  41,  43,  47, 53,
                                     59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127};
    const int count = (int)(sizeof primes / sizeof primes[0]);
    int64_t kind = check_between(r, 0, 9), power = 2, size;
    if (maximum < 1) maximum = 1;
    if (r->enlarge > 1) { /* the more it grows, the fewer dimensions do */
        maximum *= r->enlarge;
        return kind < 1 + r->enlarge / 16 ? 1 : check_between(r, (maximum + 1) / 2, maximum);
    }
    while (power * 2 <= maximum && check_chance(r, 70)) power *= 2;
    switch (kind) {
    case 0:
    case 1: size = 1; break;
    case 2:
    case 3:
    case 4: size = primes[check_between(r, 0, count - 1)]; break;
    case 5: size = power; break;
    case 6: size = power - 1; break;
    case 7: size = power + 1; break;
    default: size = check_between(r, 1, maximum); break;
    }
    return size <= maximum ? size : check_between(r, 1, maximum);
}
