/* What doctor reads of proc and sys, in trees made for it, and what it makes of machines that are not at hand. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "support/root.h"

static void test_nothing_to_read(void **state) {
    doctor_limits l;
    (void)state;
    doctor_limits_read("/no/such/root", &l);
    assert_string_equal(l.processor, "");
    assert_int_equal(l.online, sysconf(_SC_NPROCESSORS_ONLN));
    assert_int_equal(l.allowed, l.online);
    assert_int_equal(l.cores, 0);
    assert_true(l.quota == 0);
    assert_int_equal(l.memory_limit, 0);
    assert_false(doctor_has(&l, "avx2"));
}

static void test_version_2(void **state) {
    doctor_limits l;
    (void)state;
    put("/proc/self/cgroup", "0::/kube/pod/leaf\n");
    put("/sys/fs/cgroup/kube/pod/leaf/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/kube/pod/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/kube/cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/kube/pod/leaf/memory.max", "4294967296\n");
    put("/sys/fs/cgroup/kube/memory.max", "max\n");
    doctor_limits_read(root, &l);
    assert_true(l.quota == 1.5); /* a group has the limits of those around it */
    assert_true(l.memory_limit == (int64_t)4 << 30);
    put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    put("/proc/self/cgroup", "0::/not/mounted/here\n");
    doctor_limits_read(root, &l);
    assert_true(l.quota == 0.5);
    assert_int_equal(l.memory_limit, 0);
}

static void test_version_1(void **state) {
    doctor_limits l;
    (void)state;
    put("/proc/self/cgroup", "12:cpuset:/\n4:cpu,cpuacct:/docker/1a\n3:memory:/docker/1a\n0::/\n");
    put("/sys/fs/cgroup/cpu/docker/1a/cpu.cfs_quota_us", "200000\n");
    put("/sys/fs/cgroup/cpu/docker/1a/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/docker/1a/memory.limit_in_bytes", "1073741824\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    doctor_limits_read(root, &l);
    assert_true(l.quota == 2);
    assert_int_equal(l.memory_limit, 1 << 30);
    put("/proc/self/cgroup", "broken\n:::\n5:cpu\n");
    doctor_limits_read(root, &l);
    assert_true(l.quota == 0);
}

static void test_processors(void **state) {
    doctor_limits l;
    char path[128];
    (void)state;
    put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx avx2 fma\n\nprocessor\t: 1\n");
    put("/proc/self/status", "Name:\tanneal\nCpus_allowed:\tff\nCpus_allowed_list:\t1-3,5\n");
    put("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:  5 kB\nMemAvailable:   600 kB\n");
    put("/proc/loadavg", "1.25 0.50 0.25 1/100 7\n");
    put("/sys/devices/system/cpu/online", "0-7\n");
    put("/sys/devices/system/node/online", "0-1\n");
    for (int i = 0; i < 8; i++) { /* 0 and 4 share a core, 1 and 5, ... */
        char list[16];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        snprintf(list, sizeof list, "%d,%d\n", i % 4, i % 4 + 4);
        put(path, list);
    }
    doctor_limits_read(root, &l);
    assert_string_equal(l.processor, "Some CPU");
    assert_true(doctor_has(&l, "avx2") && doctor_has(&l, "fpu") && doctor_has(&l, "fma"));
    assert_false(doctor_has(&l, "avx512f") || doctor_has(&l, "av"));
    assert_int_equal(l.online, 8);
    assert_int_equal(l.allowed, 4);
    assert_int_equal(l.cores, 3);
    assert_int_equal(l.nodes, 2);
    assert_true(l.load == 1.25);
    assert_int_equal(l.memory, 1000 * 1024);
    assert_int_equal(l.memory_available, 600 * 1024);
}

/* ---- advice ---- */

static bool advises(const doctor_facts *facts, const char *words) {
    doctor_advice advice;
    doctor_advise(facts, &advice);
    for (int i = 0; i < advice.count; i++)
        if (strstr(advice.text[i], words)) return true;
    return false;
}

static void test_advice(void **state) {
    (void)state;
    for (int i = 0; doctor_variables[i]; i++) unsetenv(doctor_variables[i]);
    doctor_facts f = {.threads = 8, .isa = AN_ISA_AMX, .limits = {.online = 8, .allowed = 8, .cores = 8, .nodes = 1}};
    doctor_advice advice;
    doctor_advise(&f, &advice);
    const int of_build = advice.count; /* one with sanitizers has something to say about itself */
    f.limits.quota = 2.5;
    assert_true(advises(&f, "The cgroup allows 2.5 processors, but 8 threads run"));
    assert_true(advises(&f, "set OMP_NUM_THREADS=2"));
    f.limits.quota = 0.5;
    assert_true(advises(&f, "set OMP_NUM_THREADS=1"));
    f.limits.quota = 16;
    doctor_advise(&f, &advice);
    assert_int_equal(advice.count, of_build);
    f.threads = 9;
    assert_true(advises(&f, "9 threads share 8 processors"));
    f.threads = 8;
    f.limits.cores = 4;
    assert_true(advises(&f, "8 threads run on 4 cores"));
    f.limits.cores = 8;
    f.limits.nodes = 2;
    assert_true(advises(&f, "OMP_PROC_BIND=close OMP_PLACES=cores"));
    setenv("OMP_PROC_BIND", "true", 1);
    assert_false(advises(&f, "OMP_PROC_BIND=close"));
    f.threads = 1;
    setenv("OMP_NUM_THREADS", "1", 1);
    assert_true(advises(&f, "1 of 8 processors are used: unset OMP_NUM_THREADS"));
    f.threads = 8;
    setenv("OMP_WAIT_POLICY", "active", 1);
    assert_true(advises(&f, "OMP_WAIT_POLICY=active keeps the processors busy"));
    setenv("KMP_BLOCKTIME", "0", 1);
    assert_true(advises(&f, "KMP_BLOCKTIME has no effect"));
    f.limits.online = 16;
    assert_true(advises(&f, "This process may use 8 of 16 processors"));
    f.limits.load = 9;
    assert_true(advises(&f, "(load 9.0 on 16)"));
    setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
    assert_true(advises(&f, "DNNL_MAX_CPU_ISA keeps oneDNN"));
    for (int i = 0; doctor_variables[i]; i++) unsetenv(doctor_variables[i]);
}

static void test_advice_on_instructions(void **state) {
    (void)state;
#if defined(__x86_64__)
    unsetenv("ANNEAL_MAX_ISA");
    doctor_facts f = {.threads = 1, .isa = AN_ISA_AVX2, .limits = {.online = 1, .allowed = 1, .cores = 1}};
    snprintf(f.limits.instructions, sizeof f.limits.instructions, " avx2 fma f16c avx512f avx512vl hypervisor ");
    assert_true(
        advises(&f, "The instruction set avx512 needs avx512bw, avx512dq, which this virtual machine does not expose: "
                    "if the host processor has them, pass the host processor through (QEMU: -cpu host)."));
    f.isa = AN_ISA_AVX512;
    snprintf(f.limits.instructions, sizeof f.limits.instructions, " avx512_bf16 amx_tile amx_bf16 hypervisor ");
    assert_true(advises(&f, "The system does not let this process use AMX, so bf16 runs without tiles: use Linux 5.16 "
                            "or later, and allow arch_prctl if this is a sandbox or container."));
    setenv("ANNEAL_MAX_ISA", "avx512", 1); /* here it is not the system that refuses */
    assert_true(doctor_is_limited(&f));
    assert_false(advises(&f, "The system does not let this process use AMX"));
    assert_true(advises(&f, "ANNEAL_MAX_ISA=avx512 keeps kernels from using instructions that this machine has"));
    snprintf(f.limits.instructions, sizeof f.limits.instructions, " avx512_bf16 ");
    assert_false(doctor_is_limited(&f)); /* there is no more than this */
    assert_false(advises(&f, "ANNEAL_MAX_ISA"));
    unsetenv("ANNEAL_MAX_ISA");
#else
    skip();
#endif
}

/* ---- OpenCL in every rank ---- */

static bool warns(const char *mpi) {
    doctor_facts f = {.mpi = {.name = mpi}};
    doctor_advice warnings;
    doctor_opencl_find(root, &f.opencl);
    doctor_warn(&f, &warnings);
    if (warnings.count > 0) assert_non_null(strstr(warnings.text[0], "set HWLOC_COMPONENTS=-opencl before mpirun"));
    return warnings.count > 0;
}

static void forget_opencl(void) {
    static const char *const variables[] = {"HWLOC_COMPONENTS", "HWLOC_PLUGINS_PATH", "OCL_ICD_VENDORS"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
}

/* It takes all three: Open MPI, the plugin and a driver. */
static void test_opencl_is_found(void **state) {
    (void)state;
    forget_opencl();
    assert_false(warns("Open MPI"));
    put("/usr/lib/x86_64-linux-gnu/hwloc/hwloc_opencl.so", "");
    assert_false(warns("Open MPI"));
    put("/etc/OpenCL/vendors/readme", "");
    assert_false(warns("Open MPI"));
    put("/etc/OpenCL/vendors/pocl.icd", "libpocl.so.2\n");
    assert_true(warns("Open MPI"));
    assert_false(warns("MPICH"));
    assert_false(warns(""));
}

/* The variables of hwloc and OpenCL lead to other folders, or to none. */
static void test_opencl_is_looked_for_elsewhere(void **state) {
    char path[128];
    (void)state;
    forget_opencl();
    put("/usr/lib/hwloc/hwloc_opencl.so", "");
    put("/drivers/some.icd", "libsome.so\n");
    setenv("OCL_ICD_VENDORS", "", 1);
    assert_false(warns("Open MPI"));
    setenv("OCL_ICD_VENDORS", "libsome.so", 1);
    assert_true(warns("Open MPI"));
    for (int i = 0; i < 3; i++) {
        static const char *const places[] = {"/drivers", "/drivers/some.icd", "/nowhere"};
        snprintf(path, sizeof path, "%s%s", root, places[i]);
        setenv("OCL_ICD_VENDORS", path, 1);
        assert_int_equal(warns("Open MPI"), i < 2);
    }
    setenv("OCL_ICD_VENDORS", "libsome.so", 1);
    setenv("HWLOC_PLUGINS_PATH", root, 1);
    assert_false(warns("Open MPI"));
    put("/hwloc_opencl.so", "");
    assert_true(warns("Open MPI"));
    forget_opencl();
}

static void test_opencl_is_switched_off(void **state) {
    static const struct {
        const char *components;
        bool warns;
    } cases[] = {{"", true},
                 {"-gl", true},
                 {"-openclx", true},
                 {"-cuda,opencl", true},
                 {"opencl,stop", true},
                 {"-opencl", false},
                 {"-cuda,-opencl,-gl", false},
                 {"linux,stop", false},
                 {"linux,stop,opencl", false}};
    (void)state;
    forget_opencl();
    put("/usr/lib/hwloc/hwloc_opencl.so", "");
    put("/etc/OpenCL/vendors/some.icd", "libsome.so\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("HWLOC_COMPONENTS", cases[i].components, 1);
        if (warns("Open MPI") != cases[i].warns) fail_msg("HWLOC_COMPONENTS=%s", cases[i].components);
    }
    forget_opencl();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_to_read),
        cmocka_unit_test_setup_teardown(test_version_2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_processors, make_root, remove_root),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_advice_on_instructions),
        cmocka_unit_test_setup_teardown(test_opencl_is_found, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_opencl_is_looked_for_elsewhere, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_opencl_is_switched_off, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
