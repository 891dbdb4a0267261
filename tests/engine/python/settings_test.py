"""Settings of PyTorch's configuration modules: every one has its place in the table, those without effect are said once, and sessions hold those in force."""

import importlib
import os
import sqlite3
import subprocess
import tempfile
import warnings

import torch

import fusebox
from fusebox import _settings_table, _unused_options, settings
from checks.script_checks import expect, run

fusebox.install()


def said(call):
    _unused_options._said.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if "no effect" in str(w.message)]


def compile_and_call():
    torch._dynamo.reset()
    return torch.compile(lambda x: x * 2 + 1)(torch.ones(3))


def test_every_setting_has_a_row():
    for module in _settings_table.MODULES:
        for name, entry in importlib.import_module(module)._config.items():
            there, real = _settings_table.target_of(module, entry, name)
            expect(_settings_table.is_known(there, real), f"{module}.{name} has no row")


def test_a_setting_without_effect_is_said_once_with_its_reason():
    import torch._functorch.config
    import torch.fx.experimental._config
    cases = ((torch._dynamo.config, "guard_nn_modules_using_dict_tags", False, "guards are Fusebox's own"),
             (torch._dynamo.config, "optimize_ddp_lazy_compile", True, "first reached"), (torch._dynamo.config, "optimize_ddp", False, ""),
             (torch._functorch.config, "activation_memory_budget", 0.5, "what backward keeps"),
             (torch.fx.experimental._config, "translation_validation", True, "symbolic sizes"),
             (torch._inductor.config, "shape_padding", False, "operands are padded"),
             (torch._dynamo.config, "suppress_errors", False, ""), (torch._dynamo.config, "suppress_errors", True, ""),
             (torch._dynamo.config, "allow_empty_graphs", True, ""),  # torch sets it around cond and while_loop
             (torch._dynamo.config, "capture_scalar_outputs", True, ""), (torch._dynamo.config, "recompile_limit", 3, ""))
    for module, name, value, reason in cases:
        with module.patch(**{name: value}):
            texts = said(lambda: [compile_and_call(), compile_and_call()])
        wanted = [f"{module.__name__}.{name} "] if reason else []
        expect(len(texts) == len(wanted) and all(t.startswith(w) and reason in t for t, w in zip(texts, wanted)), f"{name}={value}: {texts}")
    expect(not said(compile_and_call), "nothing is said of defaults")


def test_a_setting_that_is_fixed_otherwise_says_so():
    with torch._dynamo.config.patch(rewrite_assert_with_torch_assert=False):
        texts = said(compile_and_call)
    expect(len(texts) == 1 and "it is always True" in texts[0], f"{texts}")


def test_settings_are_said_when_they_are_made_after_torch_compile():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x * 3)
    with torch._dynamo.config.patch(wrap_top_frame=True):
        texts = said(lambda: compiled(torch.ones(3)))
    expect(len(texts) == 1 and "wrap_top_frame" in texts[0], f"{texts}")


def test_unknown_names_and_disable_are_as_in_stock():
    for module in (torch._dynamo.config, torch._inductor.config, torch._functorch.config):
        try:
            module.no_such_setting = 1
        except AttributeError:
            continue
        expect(False, f"{module.__name__} takes an unknown name")

    def f(x):
        return x + 1

    with torch._dynamo.config.patch(disable=True):
        expect(torch.compile(f) is f, "disable gives back what it was given")


def test_settings_of_this_process_have_their_source():
    with torch._dynamo.config.patch(recompile_limit=3):
        rows = {row["name"]: row for row in settings.settings()}
    row = rows["torch._dynamo.config.recompile_limit"]
    expect((row["value"], row["default"], row["source"]) == (3, 8, "code"), f"{row}")
    row = rows["torch._dynamo.config.accumulated_recompile_limit"]
    expect((row["value"], row["source"]) == (256, "default"), f"{row}")


def _facts(file):
    database = sqlite3.connect(file)
    found = dict(database.execute("SELECT key, value FROM session_info"))
    database.close()
    return found


def test_sessions_hold_settings_that_are_in_force_and_compare_sees_them():
    with tempfile.TemporaryDirectory() as folder:
        plain, set_ = os.path.join(folder, "a.fusebox"), os.path.join(folder, "b.fusebox")
        with fusebox.record(plain):
            compile_and_call()
        with torch._dynamo.config.patch(recompile_limit=3), torch._functorch.config.patch(activation_memory_budget=0.5), fusebox.record(set_):
            said(compile_and_call)
        expect(not any(key.startswith("config.dynamo") for key in _facts(plain)), f"{_facts(plain)}")
        facts = _facts(set_)
        expect((facts.get("config.dynamo.recompile_limit"), facts.get("config.functorch.activation_memory_budget")) == ("3", "0.5"), f"{facts}")
        text = subprocess.run([os.environ["FUSEBOX_BIN"], "compare", plain, set_], capture_output=True, text=True, env={**os.environ, "QT_QPA_PLATFORM": "offscreen"}).stdout
        expect("config.dynamo.recompile_limit" in text, text)


if __name__ == "__main__":
    run(globals())
