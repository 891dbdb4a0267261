"""The thread sanitizer watches the locks of threads that compile and call at once, also of code that is not built for it: no two locks are taken
in both orders. Without the sanitizer's library of gcc the test is skipped."""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

PROGRAM = textwrap.dedent("""
    import threading, torch, fusebox
    def work(n):
        f = fusebox.compile(lambda x: torch.nn.functional.gelu(x * n).sum())
        for size in (3, 300, 5):
            x = torch.randn(size, requires_grad=True)
            f(x).backward()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print("fine")
""")


def library(name):
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False).stdout.strip()
    return found if os.path.isabs(found) and os.path.exists(found) else None


def without_random_addresses():
    ctypes.CDLL(None).personality(0x0040000)  # where memory lies at random the sanitizer does not start


def main():
    try:
        libraries = [library("libtsan.so"), library("libstdc++.so.6")]
    except OSError:
        libraries = [None]
    if None in libraries:
        print("skipped: no libtsan")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "report")
        environment = {**os.environ, "LD_PRELOAD": " ".join(libraries), "OMP_NUM_THREADS": "1",
                       "TSAN_OPTIONS": f"log_path={log}:die_after_fork=0:exitcode=0:report_bugs=1"}
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=240,
                              preexec_fn=without_random_addresses, check=False)
        assert done.stdout.strip() == "fine", done.stderr[-2000:]
        reports = [r for file in pathlib.Path(folder).iterdir() for r in file.read_text().split("=" * 18) if "lock-order-inversion" in r and "fusebox" in r]
        assert not reports, f"{len(reports)} reports, the first:\n{reports[0]}"


if __name__ == "__main__":
    main()
