# How tests share the machine when ctest runs several at once (.ci/run, `ctest -j`). Here because the whole of it has to
# be seen at once: what runs alone makes all others wait. A name that no test has is an error (tests/CMakeLists.txt).

# cost(SECONDS NAME...): about so many seconds on a quiet core. ctest starts the most expensive first, so that no long
# one is left over at the end for one core; 0 is taken for what is not named. After a first run, ctest goes by what it
# has measured.
macro(cost seconds)
    foreach(test ${ARGN})
        set(cost_${test} ${seconds})
        list(APPEND scheduled ${test})
    endforeach()
endmacro()

# mark(WORD NAME...): what the macros below do with their tests.
macro(mark word)
    foreach(test ${ARGN})
        set(${word}_${test} TRUE)
        list(APPEND scheduled ${test})
    endforeach()
endmacro()

# alone(NAME...): nothing else runs meanwhile. For tests about speed, and only for these.
macro(alone)
    mark(alone ${ARGN})
endmacro()

# one_of(THING NAME...): only one of these runs at a time, beside any others.
macro(one_of thing)
    foreach(test ${ARGN})
        set(lock_${test} ${thing})
        list(APPEND scheduled ${test})
    endforeach()
endmacro()

# once(NAME...): release and dev run it, and clang, ref and aarch64 need not (label once): it is about processes, files,
# timers or words, and not about what a compiler or a kernel makes of numbers.
macro(once)
    mark(once ${ARGN})
endmacro()

# native(NAME...): the emulator of aarch64 need not run it (label native): it shows how plans, memory, ranks and faults
# are put together, for which the other presets are enough, and would take up to two minutes there. Kernels, elementary
# functions, tokenizers, formats and whole runs are not among these.
macro(native)
    mark(native ${ARGN})
endmacro()

# learns(NAME...): dev need not run it (label learns): it waits for a model to learn, or compares the bits of two long
# runs, which a sanitizer does not look at; the calls that it makes are made in other tests too.
macro(learns)
    mark(learns ${ARGN})
endmacro()

# levels(NAME...): .ci/run runs it once more at each level of instructions that a machine can have, by ANNEAL_MAX_ISA
# (label levels): it goes by the level of the machine, by which kernels, precisions and refusals differ. What goes
# through all levels by itself need not be here: checkops-*-<level>, test_kernels_product, test_kernels_attention.
macro(levels)
    mark(levels ${ARGN})
endmacro()

# clock(NAME...): it judges by seconds what becomes of other processes (label clock). On a machine that has other
# guests, all of them may stand still for seconds. So .ci/run runs what has failed of these once more, with nothing
# beside it; what fails then has failed, as has any other test that fails once.
macro(clock)
    mark(clock ${ARGN})
endmacro()

set(scheduled "")

# Times are compared with limits in seconds that the project promises, or with each other: a neighbour takes cache and
# cores away.
alone(test_exec_scale test_exec_scale_long test_exec_recompute_time test_exec_recompute_time_long docs-fine-tune)

# Each takes one to three GB, and some ask how much is free: two at once would not fit on a small machine, or see each
# other.
one_of(memory test_exec_gpt2_124m cli-room-memory cli-room-cgroup docs-README train-fitting-long)

cost(200 save-faults ranks-sequences)
cost(150 docs-README)
cost(80 save-faults-openmpi save-kills ranks-kills-mpich ranks-kills-openmpi examples-configs cli-demo
    test_models_learns test_exec_recompute_time test_exec_scale)
cost(40 test_kernels_product test_ranks_shard checkops-threads cli-supervise-hangs test_exec_gpt2_124m cli-room-memory)
cost(25 save-shared save-ledger save-preempt cli-checkpoints cli-damage test_run_epochs
    test_run_checkpoint test_store_damage test_comm_watch ranks-traffic-openmpi ranks-save-kills-openmpi
    ranks-save-kills-mpich ranks-slurm ranks-network-openmpi test_ranks_errors test_ranks_failures)
cost(10 test_kernels_product_amx_on_model test_golden_leaves test_golden_leaves_on_model test_train_together_on_model
    ranks-data-exact walk-unpack walk-student-images walk-student-text walk-operator walk-c-developer checkops-rows-base
    checkops-rows-avx2 checkops-rows-avx512 checkops-test-base checkops-test-avx2 checkops-test-avx512 checkops-test
    checkops-grad checkops-rows test_kernels_convolution_onednn test_base_elementary cli-plot cli-pipe cli-mistakes
    cli-room-cgroup install test_ranks_threads test_ranks_small_stack test_ranks_shard_graphs test_ranks_stage
    test_ranks_traps_calls test_ranks_traps_numbers ranks-hash-openmpi-3 ranks-strace-openmpi
    cli-trace checkops-threads-base checkops-threads-avx2 checkops-threads-avx512 test_open_constructor_short)

once(cli-chat cli-settings examples-programs examples-finetune examples-own-op examples-own-optimizer cli-train
    cli-average cli-find-lr cli-tokenize cli-generate cli-finetune cli-banner cli-metrics cli-tables cli-checkpoints
    cli-mistakes cli-special-files cli-limits cli-formats cli-augment cli-weights cli-profile cli-evaluate cli-restart
    cli-embedding cli-damage cli-plot cli-compare cli-completion cli-doctor cli-pipe cli-launcher cli-strategies
    cli-room-memory cli-room-cgroup cli-room-disk cli-supervise test_cli_doctor test_cli_supervise_ranks
    test_launch_launcher)
once(test_comm_watch test_comm_scatter test_comm_hybrid test_store_route test_store_load_ranks test_store_save_ranks
    test_store_write_ranks test_ranks_running test_ranks_errors test_ranks_failures test_ranks_saves test_ranks_stage
    test_ranks_traps_calls test_ranks_resume test_ranks_pieces test_ranks_shard test_train_null_arguments
    test_train_failed_calls)

native(test_open_dora test_exec_gathered test_exec_recompute test_train_planned test_store_damage_some
    test_run_system_faults test_run_own_optimizer test_comm_gather test_comm_reduce test_comm_schedule checkops-options
    cli-normalize cli-summary)

learns(examples-programs test_open_constructor_short ranks-hash-threads-1 ranks-hash-threads-2 ranks-hash-base
    ranks-hash-together checkops-threads cli-finetune examples-finetune)

levels(test_base_isa test_kernels_rows test_kernels_pool test_kernels_product_amx test_kernels_onednn
    test_kernels_convolution_onednn test_kernels_copy_tiled checkops-test checkops-options test_golden
    test_golden_refuses find-lr-golden test_exec_profile test_exec_fuse test_exec_rounded test_open_context
    test_open_open test_open_models test_open_q8_0 test_predict_generator test_train_kernel_fingerprint
    ranks-hash-threads-2 ranks-hash-base cli-finetune cli-doctor)

foreach(mpi ${mpi_found})
    clock(ranks-deaths-${mpi})
    foreach(scenario stop branch cut disk slow)
        clock(ranks-hangs-${scenario}-${mpi})
    endforeach()
    foreach(part requests stopped killed leader)
        clock(ranks-stops-${part}-${mpi})
    endforeach()
endforeach()
clock(test_comm_watch cli-supervise cli-supervise-hangs ranks-slurm cli-stop test_exec_recompute_time test_exec_scale)
if(mpi_found)
    clock(ranks-network-openmpi)
endif()
