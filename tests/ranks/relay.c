/* A switch between hosts that are network namespaces, with a network's delay and loss.
 *
 *     relay MILLISECONDS PERCENT HOST...
 *
 * Makes a device `cable` in each namespace; what is sent there comes out at all others, after the delay, or is lost.
 * Writes a line when all devices are there, and another with its counts when SIGTERM ends it. Where the kernel has
 * no netem, there is no other way to have a delay. */
#define _GNU_SOURCE /* setns, ppoll; NOLINT(bugprone-reserved-identifier) */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_HOSTS = 8, MOST_FRAMES = 16384, FRAME_BYTES = 2048, ADDRESS = 6 };

typedef struct {
    int64_t due; /* nanoseconds */
    int from;
    ssize_t bytes;
    uint8_t data[FRAME_BYTES];
} frame;

static frame frames[MOST_FRAMES]; /* a ring: all wait equally long, so the first in is the first out */
static int64_t first, last;       /* numbers of frames */
static struct {
    int device;
    uint8_t address[ADDRESS];
    bool is_known;
} hosts[MOST_HOSTS];
static int host_count;
static volatile sig_atomic_t is_over;

static void end(int number) {
    (void)number;
    is_over = 1;
}

static int fail(const char *what) {
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    return 1;
}

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Pseudorandom numbers of 32 bits: runs of the test differ anyway, as threads and processes do. */
static uint32_t draw(void) {
    static uint64_t state = 88172645463325252u;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

/* A device belongs to the namespace that its maker is in. -1: errno says why. */
static int open_device(const char *host) {
    char path[256];
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(path, sizeof path, "/run/netns/%s", host);
    snprintf(request.ifr_name, sizeof request.ifr_name, "cable");
    const int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) return -1;
    close(space);
    const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return device >= 0 && ioctl(device, TUNSETIFF, &request) == 0 ? device : -1;
}

/* Frames from a host; gives how many are lost. */
static int64_t take(int host, int64_t delay, uint32_t loss) {
    int64_t lost = 0;
    for (;;) {
        frame *f = &frames[last % MOST_FRAMES];
        const ssize_t bytes = read(hosts[host].device, f->data, sizeof f->data);
        if (bytes < 2 * ADDRESS) return lost;
        memcpy(hosts[host].address, f->data + ADDRESS, ADDRESS); /* who sends is there */
        hosts[host].is_known = true;
        if (last - first == MOST_FRAMES - 1 || draw() < loss) {
            lost++;
            continue;
        }
        f->bytes = bytes;
        f->from = host;
        f->due = now() + delay;
        last++;
    }
}

/* To the host that has the address; to all others if it is none's. */
static void give(const frame *f) {
    int to = -1;
    for (int i = 0; i < host_count; i++)
        if (hosts[i].is_known && !memcmp(hosts[i].address, f->data, ADDRESS)) to = i;
    for (int i = 0; i < host_count; i++)
        if (i != f->from && (to < 0 || i == to)) /* a device that is down takes nothing */
            if (write(hosts[i].device, f->data, (size_t)f->bytes) < 0) continue;
}

int main(int argc, char **argv) {
    struct pollfd polled[MOST_HOSTS];
    int64_t lost = 0;
    if (argc < 4 || argc - 3 > MOST_HOSTS) return 2;
    const int64_t delay = (int64_t)(strtod(argv[1], NULL) * 1e6);
    const uint32_t loss = (uint32_t)(strtod(argv[2], NULL) / 100 * UINT32_MAX);
    for (; host_count < argc - 3; host_count++) {
        hosts[host_count].device = open_device(argv[3 + host_count]);
        if (hosts[host_count].device < 0) return fail(argv[3 + host_count]);
        polled[host_count] = (struct pollfd){.fd = hosts[host_count].device, .events = POLLIN};
    }
    signal(SIGTERM, end);
    puts("ready");
    fflush(stdout);
    while (!is_over) {
        const int64_t wait = first < last ? frames[first % MOST_FRAMES].due - now() : 100000000;
        const struct timespec time = {.tv_nsec = wait > 0 ? wait : 0};
        ppoll(polled, (nfds_t)host_count, &time, NULL);
        for (int i = 0; i < host_count; i++) lost += take(i, delay, loss);
        for (; first < last && frames[first % MOST_FRAMES].due <= now(); first++) give(&frames[first % MOST_FRAMES]);
    }
    printf("%lld frames came, and %lld were lost\n", (long long)first, (long long)lost);
    return 0;
}
