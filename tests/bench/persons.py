"""The window on a real display server: how long four scripted persons take, and what the window costs when nobody touches it.

    tests/bench/persons.py BUILD [--rounds N] [--against RESULTS.json] [--only idle live person ...]

Starts Xvfb with a window manager (openbox) of its own. The persons are window_flow_test (somebody new: the start page, files, every view),
window_run_test (runs and compares scripts), debug_flow_test (stops and steps) and window_person_test (all of it in one sitting); each takes its best of N
rounds. `idle` is the share of a core that `fusebox open` of the example takes while nobody touches it, `live` the same while a script runs that
it shows. Prints one JSON object; fails where a person fails or takes over 1.5 times its time in RESULTS, an idle window over 0.5 % or a live one over 10 %.
"""
import argparse, json, os, pathlib, re, signal, subprocess, sys, tempfile, time

PERSONS = {"newcomer": "window_flow_test", "runner": "window_run_test", "debugger": "debug_flow_test", "person": "window_person_test"}
MOST = {"idle_percent": 0.5, "live_percent": 10.0}
LIVE = """import torch, time
@torch.compile
def step(x, w): return torch.tanh(x @ w).relu().sum()
w = torch.randn(64, 64)
begun = time.time()
while time.time() - begun < 60: step(torch.randn(32, 64), w); time.sleep(0.002)
"""


def seconds_of(process):
    """CPU time of a process and of what it started."""
    total = 0.0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[2]) == process.pid: total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            pass
    return total


class Display:
    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        home = self.folder.name
        read, write = os.pipe()
        self.server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1000x24"], pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as said: number = said.readline().strip()  # written in two pieces, and the server ends where it cannot write the second
        self.environment = dict(os.environ, DISPLAY=":" + number, HOME=home, XDG_RUNTIME_DIR=home, QT_QPA_PLATFORM="xcb", LC_ALL="C.UTF-8")
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"): self.environment[name] = f"{home}/{name}"
        self.manager = subprocess.Popen(["openbox"], env=self.environment, stderr=subprocess.DEVNULL)
        time.sleep(1)
        return self

    def __exit__(self, *_):
        for process in (self.manager, self.server): process.terminate(), process.wait()
        self.folder.cleanup()

    def start(self, *command):
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def key(self, *keys): subprocess.run(["xdotool", "key", "--clearmodifiers", *keys], env=self.environment, check=True)

    def wait_for_window(self, process):
        until = time.time() + 30
        while time.time() < until:
            found = subprocess.run(["xdotool", "search", "--onlyvisible", "--name", "Fusebox"], env=self.environment, capture_output=True, text=True).stdout.split()
            if found: return subprocess.run(["xdotool", "windowactivate", "--sync", found[-1]], env=self.environment, stderr=subprocess.DEVNULL)
            if process.poll() is not None: break
            time.sleep(0.2)
        raise SystemExit("no window came up")


def person(display, program):
    begun = time.time()
    done = subprocess.run([program], env=display.environment, capture_output=True, text=True)
    if done.returncode: print("\n".join(re.findall(r"^(?:FAIL|QFATAL).*(?:\n.*){0,3}", done.stdout, re.M)), file=sys.stderr)
    return time.time() - begun if done.returncode == 0 else None


def load(display, seconds, command, views):
    """The share of a core, in percent, that the window takes in each of these views (their keys), the most of them."""
    window = display.start(*command)
    try:
        display.wait_for_window(window)
        time.sleep(4)
        most = 0.0
        for view in views:
            display.key(view)
            time.sleep(3)
            before, begun = seconds_of(window), time.time()
            time.sleep(seconds)
            most = max(most, 100 * (seconds_of(window) - before) / (time.time() - begun))
        return most
    finally:
        os.killpg(window.pid, signal.SIGTERM)
        window.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--against", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[*PERSONS, "idle", "live"])
    options = parser.parse_args()
    binaries, root = options.build.resolve() / "bin", pathlib.Path(__file__).resolve().parents[2]
    out, failed = {}, []
    with Display() as display:
        for name, test in PERSONS.items():
            if name not in options.only: continue
            times = [person(display, str(binaries / test)) for _ in range(options.rounds)]
            if None in times: failed.append(f"{name} failed")
            else: out[f"{name}_s"] = round(min(times), 1)
        if "idle" in options.only:
            example = pathlib.Path(display.folder.name) / "example.fusebox"
            example.write_bytes((root / "resources/examples/first_steps.fusebox").read_bytes())
            out["idle_percent"] = round(load(display, 20, [str(binaries / "fusebox"), "open", str(example)], ["ctrl+1", "ctrl+7"]), 2)
        if "live" in options.only:
            script, session = (pathlib.Path(display.folder.name) / name for name in ("live.py", "live.fusebox"))
            script.write_text(LIVE)
            run = display.start(str(binaries / "fusebox"), "run", "--session", str(session), str(script))
            while not session.exists() and run.poll() is None: time.sleep(0.2)
            out["live_percent"] = round(load(display, 12, [str(binaries / "fusebox"), "open", str(session)], ["ctrl+1", "ctrl+7"]), 2)
            os.killpg(run.pid, signal.SIGTERM)
            run.wait()
    best = json.loads(options.against.read_text())["measured"] if options.against else {}
    failed += [f"{name}: {value} s, {best[name]} before" for name, value in out.items() if name.endswith("_s") and value > 1.5 * best.get(name, value)]
    failed += [f"{name}: {out[name]} of at most {most}" for name, most in MOST.items() if out.get(name, 0) > most]
    print(json.dumps(out))
    for line in failed: print(line, file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
