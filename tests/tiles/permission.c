/* Linked into programs that run kernels on the model of tiles: fails if the process may use real ones in the end. As
 * long as it may not, an instruction for tiles is an illegal one, so none can have been executed in place of the
 * model. */
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

long syscall(long number, ...); /* which POSIX does not have, so that unistd.h hides it */

__attribute__((destructor)) static void check_permission(void) {
    enum { GET_PERMISSION = 0x1022, TILE_DATA = 18 };
    uint64_t granted = 0;
    if (syscall(SYS_arch_prctl, GET_PERMISSION, &granted) != 0 || !(granted >> TILE_DATA & 1)) return;
    fprintf(stderr, "this process was to run on the model of tiles, but something in it asked for real ones\n");
    _exit(1);
}
