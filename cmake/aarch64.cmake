# The preset aarch64: Debian's cross compiler, and every program that the tests start under qemu's user emulation. What
# the compiler does not bring was unpacked by tools/bootstrap.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu) # -L: where its loader and libc are

set(libraries ${CMAKE_CURRENT_LIST_DIR}/../.deps/aarch64)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${libraries})
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/usr/lib/aarch64-linux-gnu/pkgconfig) # instead of the machine's own
set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${libraries}/usr/include/aarch64-linux-gnu) # what differs between architectures: jconfig.h
