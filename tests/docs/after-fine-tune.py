#!/usr/bin/env python3
"""The tutorial's model has learned the skill, what was exported has it too, and all of it took less time than the tutorial says.

    after-fine-tune.py SOURCE-TREE OUTPUT        OUTPUT: what the tutorial's commands printed; TOOK is their time in seconds
"""
import os
import pathlib
import re
import sys

output, seconds = pathlib.Path(sys.argv[2]).read_text(), int(os.environ["TOOK"])
share = float(re.search(r"answers are right: ([0-9.]+)", output).group(1))
last = output.strip().split("\n")[-1]
print(output)
print(f"--- {share:.3f} of the answers are right, at least 0.6; {seconds} s, at most 900; exported: {last}")
sys.exit(share < 0.6 or seconds > 900 or last != '{"name": "Gustav Whitlock", "age": 66, "job": "surgeon", "city": "Memphis"}')
