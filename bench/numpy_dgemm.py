"""numpy's f64 product, timed when it is asked for: the other side of bench/dgemm.

    numpy_dgemm.py M N K       OPENBLAS_NUM_THREADS says how many threads

It says "ready", then answers every line "WARM PASSES" with the seconds of one product, as bench/step.c does.
"""
import statistics
import sys
import time

import numpy

m, n, k = (int(argument) for argument in sys.argv[1:4])
generator = numpy.random.default_rng(1)
a, b, c = generator.uniform(-1, 1, (m, k)), generator.uniform(-1, 1, (k, n)), numpy.empty((m, n))
print("ready", flush=True)
for line in sys.stdin:
    warm, passes = (int(word) for word in line.split())
    for _ in range(warm):
        numpy.matmul(a, b, out=c)
    took = []
    for _ in range(passes):
        begin = time.perf_counter()
        numpy.matmul(a, b, out=c)
        took.append(time.perf_counter() - begin)
    print(statistics.median(took), flush=True)
