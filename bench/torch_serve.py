"""PyTorch's side of bench/serve.h: a program that times a pass when it is asked to."""
import statistics
import sys
import time


def serve(run):
    """Says "ready", then answers every line "WARM PASSES" with the seconds of one pass, the median over PASSES."""
    run()  # what is compiled or allocated once
    print("ready", flush=True)
    for line in sys.stdin:
        warm, passes = (int(word) for word in line.split())
        for _ in range(warm):
            run()
        took = []
        for _ in range(passes):
            begin = time.perf_counter()
            run()
            took.append(time.perf_counter() - begin)
        print(statistics.median(took), flush=True)
