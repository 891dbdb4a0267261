"""Writes a Chrome trace of a given size, shaped like Kineto's: operators, launches and kernels with correlations.

    make_chrome_trace.py OUT.json 1000        # megabytes
    /usr/bin/time -v fusebox summary OUT.json # time and memory of importing it
"""
import sys

STEP = """  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::{op}", "pid": 100, "tid": {tid},
    "ts": {ts}.125, "dur": 18.500,
    "args": {{
      "External id": {i},"Record function id": 0, "Ev Idx": {i}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": {tid},
    "ts": {ts}.500, "dur": 4.250,
    "args": {{
      "External id": {i}, "cbid": 211, "correlation": {i}
    }}
  }},
  {{
    "ph": "s", "id": {i}, "pid": 100, "tid": {tid}, "ts": {ts}.500,
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": {stream},
    "ts": {ts}.900, "dur": 9.000,
    "args": {{
      "External id": {i}, "queued": 0, "device": 0, "context": 1, "stream": {stream}, "correlation": {i},
      "registers per thread": 32, "shared memory": 0, "grid": [128, 1, 1], "block": [256, 1, 1]
    }}
  }},
  {{
    "ph": "f", "id": {i}, "pid": 0, "tid": {stream}, "ts": {ts}.900,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
"""


def main() -> None:
    path, megabytes = sys.argv[1], int(sys.argv[2])
    with open(path, "w") as out:
        out.write('{\n  "schemaVersion": 1,\n  "deviceProperties": [{"id": 0, "name": "Generated"}],\n'
                  '  "displayTimeUnit": "ms", "baseTimeNanoseconds": 1790857026000000000,\n  "traceEvents": [\n')
        i = 0
        while out.tell() < megabytes * 1_000_000:
            rows = []
            for _ in range(1000):
                i += 1
                rows.append(STEP.format(i=i, ts=4_000_000_000 + i * 20, tid=100 + i % 4, stream=7 + i % 3, op=("mm", "add", "relu")[i % 3],
                                        kernel=f"triton_poi_fused_add_{i % 50}"))
            out.write("".join(rows))
        out.write('  {"name": "process_name", "ph": "M", "ts": 0, "pid": 100, "tid": 0, "args": {"name": "python"}}\n  ],\n'
                  '  "traceName": "generated"\n}\n')
        print(f"{i} launches, {3 * i} spans")


main()
