"""`fusebox config`: every setting of the engine and of PyTorch's configuration modules, and what it does here."""
import json
import os
import subprocess
import unittest

from program import FUSEBOX, fusebox


def settings(*words, **environment):
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TORCH")}
    result = fusebox("config", "--json", *words, timeout=120, env={**plain, **environment})
    assert result.returncode == 0, result.stderr
    return {row["name"]: row for row in json.loads(result.stdout)["settings"]}


class Config(unittest.TestCase):
    def test_every_setting_has_a_value_and_says_what_it_does(self):
        rows = settings()
        for module in ("fusebox.config", "torch.compiler.config", "torch._dynamo.config", "torch._inductor.config", "torch._functorch.config",
                       "torch.fx.experimental._config"):
            self.assertTrue(any(name.startswith(module + ".") for name in rows), module)
        for name, row in rows.items():
            self.assertIn(row["here"], ("acts", "always", "none"), name)
            self.assertTrue(row["why"] and "does not know" not in row["why"], row)
            self.assertEqual(row["source"], "default", row)
            self.assertEqual("always" in row, row["here"] == "always", row)
        self.assertEqual(rows["torch._dynamo.config.recompile_limit"]["value"], 8)
        self.assertEqual(rows["torch.compiler.config.recompile_limit"]["alias"], "torch._dynamo.config.recompile_limit")
        self.assertIn("cudagraphs", rows["torch._inductor.config.triton.cudagraphs"]["meaning"])
        self.assertEqual(rows["torch._inductor.config.triton.cudagraphs"]["here"], "acts")
        self.assertEqual(rows["torch._inductor.config.cpp.cxx"]["here"], "none")

    def test_the_environment_is_told_as_a_source(self):
        rows = settings("fx_graph_cache", "TORCHINDUCTOR", "job_id", TORCHINDUCTOR_FX_GRAPH_CACHE="0", TORCH_COMPILE_JOB_ID="mine")
        cache, job = rows["torch._inductor.config.fx_graph_cache"], rows["torch.compiler.config.job_id"]
        self.assertEqual((cache["value"], cache["default"], cache["source"]), (False, True, "environment"))
        self.assertIn("TORCHINDUCTOR_FX_GRAPH_CACHE", cache["variables"])
        self.assertEqual((job["value"], job["default"], job["source"]), ("mine", None, "environment"))
        same = settings("fx_graph_cache", TORCHINDUCTOR_FX_GRAPH_CACHE="1")["torch._inductor.config.fx_graph_cache"]
        self.assertEqual((same["value"], same["source"]), (True, "default"))

    def test_text_names_and_filters(self):
        text = fusebox("config", "recompile_limit", timeout=120).stdout
        self.assertRegex(text, r"torch\._dynamo\.config\n(.*\n)*  recompile_limit = 8  acts: ")
        self.assertNotIn("cudagraphs", text)
        changed = fusebox("config", "--changed", timeout=120, env={**os.environ, "TORCHDYNAMO_VERBOSE": "1"}).stdout
        self.assertRegex(changed, r"verbose = True  \[TORCHDYNAMO_VERBOSE; default False\]  no effect: ")
        self.assertNotIn("recompile_limit", changed)
        piped = subprocess.run(["bash", "-c", '"$0" config | head -1; exit ${PIPESTATUS[0]}', FUSEBOX], capture_output=True, text=True, timeout=120)
        self.assertEqual((piped.returncode, piped.stderr), (141, ""))
        unknown = fusebox("config", "no_such_setting", timeout=120)
        self.assertEqual(unknown.returncode, 2)
        self.assertIn("no_such_setting", unknown.stderr)


if __name__ == "__main__":
    unittest.main()
