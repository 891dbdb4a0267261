"""Every architecture of the installed transformers package, made small, compiled and compared with eager: programs that nobody here chose.

    python -m models.architectures --jobs 16 --report FOUND.json [--only NAME…] [--device cuda --dtype bfloat16] [--engine stock] [--sizes 20]

Each architecture is its configuration with small sizes and random weights, in two forms: inference without gradients, and a training step
(loss or mean square of the outputs, gradients of all parameters). A second call has another batch and length, `--sizes` as many more drawn at random. Reported for each: graphs, breaks with
reasons, what ran eagerly, recompiles, and the largest errors relative to the largest value. What cannot be made small or fails eagerly is counted as skipped.
"""

import argparse
import collections
import contextlib
import copy
import faulthandler
import inspect
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
import warnings

SMALL = {
    2: ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers", "depth",
        "num_encoder_blocks", "text_layers", "num_block_records"),
    64: ("hidden_size", "n_embd", "d_model", "dim", "embed_dim", "embedding_size", "projection_dim", "hidden_dim", "d_embed", "emb_dim", "encoder_hidden_size",
         "decoder_hidden_size"),
    128: ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner", "d_inner", "moe_intermediate_size", "mlp_dim", "dff",
          "shared_expert_intermediate_size"),
    4: ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads", "num_key_value_heads",
        "decoder_num_attention_heads", "encoder_num_attention_heads"),
    8: ("num_experts", "num_local_experts", "n_routed_experts", "qk_rope_head_dim", "qk_nope_head_dim"),
    16: ("head_dim", "d_kv", "d_head", "kv_channels", "v_head_dim", "q_lora_rank", "kv_lora_rank"),
    300: ("vocab_size",),
}
SMALL[2] += ("num_experts_per_tok", "moe_topk", "top_k_experts")
SMALL[1] = ("n_group", "topk_group")
SIZE_OF = {name: size for size, names in SMALL.items() for name in names}
LAYERS = {name: 2 for name in SMALL[2]}
# What is made small, and whether there is a cache: the first that works eagerly is taken.
LIMIT = {"float64": 1e-6, "float32": 1e-3, "bfloat16": 5e-2, "float16": 5e-2}
ATTEMPTS = ((SIZE_OF, True), (SIZE_OF, False), ({k: v for k, v in SIZE_OF.items() if "head_dim" not in k and "rank" not in k}, False), (LAYERS, False))


def small_config(kind, sizes):
    """A configuration of this class with these sizes where they are smaller than its own; nested configurations too."""
    default = kind()
    layers = getattr(default, "num_hidden_layers", None)
    changes = {}
    for name, value in vars(default).items():
        if name in sizes and isinstance(value, int) and not isinstance(value, bool):
            changes[name] = min(value, sizes[name]) if "head" not in name or value >= 4 else 1 if value == 1 else 2
        elif isinstance(value, list) and layers and layers > 2 and len(value) == layers:
            changes[name] = value[:2]
        elif isinstance(value, float) and "drop" in name:
            changes[name] = 0.0
        elif isinstance(value, list) and "drop" in name and all(isinstance(v, float) for v in value):
            changes[name] = [0.0] * len(value)
        elif name.endswith("_token_id") and isinstance(value, int) and value >= 300 and "vocab_size" in sizes:
            changes[name] = 1 + len(changes) % 200
        elif hasattr(value, "to_diff_dict") and hasattr(value, "model_type"):
            changes[name] = small_config(type(value), sizes)
    return kind(**changes)


def builders():
    """The automatic classes to try, those with a loss before the bare model."""
    import transformers

    names = ("AutoModelForCausalLM", "AutoModelForSeq2SeqLM", "AutoModelForMaskedLM", "AutoModelForImageClassification", "AutoModelForAudioClassification",
             "AutoModelForSpeechSeq2Seq", "AutoModelForCTC", "AutoModelForObjectDetection", "AutoModelForSemanticSegmentation",
             "AutoModelForDepthEstimation", "AutoModelForImageTextToText", "AutoModelForTimeSeriesPrediction", "AutoModel")
    return [getattr(transformers, name) for name in names if hasattr(transformers, name)]


def seed(number):
    import random

    import numpy
    import torch

    random.seed(number)
    numpy.random.seed(number)
    torch.manual_seed(number)


def make_model(name, sizes=SIZE_OF, cache=True):
    import torch
    import transformers

    config = small_config(transformers.CONFIG_MAPPING[name], sizes)
    for part in (config, getattr(config, "text_config", None)):
        if not cache and getattr(part, "use_cache", False):
            part.use_cache = False
    for build in builders():
        if type(config) in build._model_mapping.keys():
            with torch.device("meta"):
                if sum(p.numel() for p in build.from_config(copy.deepcopy(config)).parameters()) > 3e8:
                    raise ValueError("larger than is sensible here")
            torch.manual_seed(0)
            return build.from_config(config)
    raise ValueError("no model class")


def inputs_of(model, batch, length):
    """Keyword arguments by the names of `forward`'s parameters."""
    import torch

    parameters = inspect.signature(model.forward).parameters
    config = model.config
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    vision = getattr(config, "vision_config", config)
    vocabulary = getattr(text, "vocab_size", 300) or 300
    ids = lambda n: torch.randint(5, min(vocabulary, 290), (batch, n))  # noqa: E731
    made = {}
    if "input_ids" in parameters:
        made["input_ids"] = ids(length)
        if "attention_mask" in parameters:
            made["attention_mask"] = torch.ones(batch, length, dtype=torch.long)
    if "decoder_input_ids" in parameters and ("input_ids" in parameters or "input_features" in parameters):
        made["decoder_input_ids"] = ids(length // 2)
    if "pixel_values" in parameters and model.main_input_name != "input_ids" or "pixel_values" in parameters and "input_ids" not in parameters:
        size = getattr(vision, "image_size", None) or 64
        height, width = (size, size) if isinstance(size, int) else tuple(size)
        made["pixel_values"] = torch.randn(batch, getattr(vision, "num_channels", 3), height, width)
    elif "pixel_values" in parameters and type(config).__name__.startswith(("CLIP", "Siglip", "Align", "AltCLIP", "Chinese", "Flava", "Blip", "OwlViT")):
        size = vision.image_size
        made["pixel_values"] = torch.randn(batch, 3, size, size)
    if "input_values" in parameters:
        made["input_values"] = torch.randn(batch, 4000 * (length // 8))
    if "input_features" in parameters and "input_ids" not in parameters:
        frames = 2 * getattr(config, "max_source_positions", 64)
        made["input_features"] = torch.randn(batch, getattr(config, "num_mel_bins", 80), frames)
    if "bbox" in parameters and "input_ids" in made:
        made["bbox"] = torch.randint(0, 100, (batch, length, 1)).expand(-1, -1, 4).contiguous()
    if "past_values" in parameters:
        steps = config.context_length + max(getattr(config, "lags_sequence", None) or [0])
        channels = getattr(config, "num_input_channels", None)
        made["past_values"] = torch.randn((batch, steps) if channels is None else (batch, steps, channels))
    if not made:
        raise ValueError(f"nobody here knows the inputs of {type(model).__name__}: {list(parameters)[:6]}")
    return made


def labelled(model, inputs):
    """The inputs and labels, where those of a language model fit."""
    is_text = "labels" in inspect.signature(model.forward).parameters and type(model).__name__.endswith(("LMHeadModel", "ForCausalLM", "ForConditionalGeneration", "ForMaskedLM"))
    given = "decoder_input_ids" if "decoder_input_ids" in inputs else "input_ids"
    return {**inputs, "labels": inputs[given].clone()} if is_text and given in inputs else inputs


def error(got, want):
    """Largest difference relative to the largest value; infinite where shape, dtype or what is not finite differ."""
    import torch

    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if not got.numel():
        return 0.0
    if not got.is_floating_point():
        return 0.0 if torch.equal(got, want) else float("inf")
    got, want = got.detach().double(), want.detach().double()
    finite = torch.isfinite(want)
    if not torch.equal(finite, torch.isfinite(got)):
        return float("inf")
    got, want = got[finite], want[finite]
    return ((got - want).abs().max() / (want.abs().max() + 1e-12)).item() if got.numel() else 0.0


class EngineCounts:
    """What this engine did since it was made."""

    def __init__(self):
        import fusebox
        from fusebox import _engine

        self.engine = _engine
        fusebox.reset()
        self.since = _engine.latest_event()

    def facts(self):
        events = self.engine.events_since(self.since)
        kinds = collections.Counter(e["kind"] for e in events)
        where = lambda e: f"{e['what']}: {e['detail'][:200]} ({os.path.basename(e['file'] or '')}:{e['line']})"  # noqa: E731
        return {"graphs": sum(1 for e in events if e["kind"] == "compiled" and e["operators"]), "breaks": kinds["graph_break"], "recompiles": kinds["recompile"],
                "eager": [where(e) for e in events if e["kind"] in ("failed", "ran_eagerly")],
                "reasons": [where(e) for e in events if e["kind"] == "graph_break"]}


class StockCounts:
    def __init__(self):
        import torch._dynamo

        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()

    def facts(self):
        from torch._dynamo.utils import counters

        reasons = [reason.split("\n")[0] for reason, n in counters["graph_break"].items() for _ in range(n)]
        return {"graphs": counters["stats"]["unique_graphs"], "breaks": sum(counters["graph_break"].values()), "recompiles": sum(counters["recompiles"].values()),
                "eager": [], "reasons": reasons}


def measure(name, training, options):
    import torch

    from models.zoo import loss_of, tensors_of

    dtype = getattr(torch, options.dtype)
    cast = lambda v: v.to(options.device, dtype if v.is_floating_point() else None)  # noqa: E731

    settle = torch.cuda.synchronize if options.device == "cuda" else lambda: None  # what a device fails in is told here

    def step(module, called, inputs):
        seed(5)
        if not training:
            with torch.no_grad():
                outputs = tensors_of(called(**inputs))
            settle()
            return outputs, []
        output = called(**inputs)
        loss_of(output).backward()
        settle()
        gradients = {n: p.grad for n, p in module.named_parameters() if p.grad is not None}
        module.zero_grad(set_to_none=True)
        return tensors_of(output), gradients

    def eager(small, cache):
        model = make_model(name, small, cache).train(training).to(options.device, dtype)
        draw = random.Random(name)
        sizes = [(2, 16), (2, 16), (3, 24)] + [(draw.randint(1, 6), draw.randint(1, 8) * draw.choice((1, 8))) for _ in range(options.sizes)]
        calls = [inputs_of(model, *batch_and_length) for batch_and_length in sizes]
        calls = [{k: cast(v) for k, v in (labelled(model, c) if training else c).items()} for c in calls]
        reference, pairs = copy.deepcopy(model), [(calls[0], step(model, model, copy.deepcopy(calls[0])))]
        for inputs in calls[1:]:
            with contextlib.suppress(Exception):  # other sizes may be none of this model's
                pairs.append((inputs, step(reference, reference, copy.deepcopy(inputs))))
        return copy.deepcopy(reference), pairs

    problems = []
    for attempt in ATTEMPTS:
        try:
            subject, pairs = eager(*attempt)
            break
        except Exception as problem:
            problems.append(f"{type(problem).__name__}: {problem}"[:150])
            if "no model class" in problems[-1] or "nobody here knows" in problems[-1]:
                raise
    else:
        raise ValueError(" | ".join(problems))
    if options.engine == "stock":
        counts, compiled = StockCounts(), torch.compile(subject, backend=options.backend or "eager")
    else:
        import fusebox

        counts, compiled = EngineCounts(), fusebox.compile(subject, **({"backend": options.backend} if options.backend else {}))
    result = {"outputs": 0.0, "gradients": 0.0, "dtype": options.dtype}
    for i, (inputs, (outputs, gradients)) in enumerate(pairs):
        start = time.perf_counter()
        got_outputs, got_gradients = step(subject, compiled, inputs)
        result[f"call_{i}_s"] = round(time.perf_counter() - start, 3)
        if len(got_outputs) != len(outputs) or training and set(got_gradients) != set(gradients):
            result["outputs"] = float("inf")
            continue
        result["outputs"] = max([result["outputs"]] + [error(g, w) for g, w in zip(got_outputs, outputs)])
        if training:
            scale = max((g.detach().abs().max().item() for g in gradients.values()), default=0) + 1e-12
            errors = {n: (got_gradients[n] - g).abs().max().item() / scale if g.shape == got_gradients[n].shape else float("inf") for n, g in gradients.items()}
            result["gradients"] = max([result["gradients"], *(float("inf") if e != e else e for e in errors.values())])
        if i == 0:
            result["first_breaks"] = counts.facts()["breaks"]
    return result | counts.facts()


def is_wrong(result):
    return not (result["outputs"] <= LIMIT[result["dtype"]] and result["gradients"] <= 10 * LIMIT[result["dtype"]])


def work(options):
    """One process: reads names, answers a line of JSON for each form."""
    warnings.simplefilter("ignore")
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    for line in sys.stdin:
        name, form = line.split()
        try:
            signal.alarm(options.limit)
            faulthandler.dump_traceback_later(options.limit - 1)
            with contextlib.redirect_stdout(sys.stderr):
                answer = measure(name, form == "train", options)
            if is_wrong(answer) and options.dtype != "float64":
                # Rounding that the model amplifies is none in float64.
                exact = measure(name, form == "train", argparse.Namespace(**{**vars(options), "dtype": "float64"}))
                answer |= {f"{k}_{options.dtype}": answer[k] for k in ("outputs", "gradients")} | {k: exact[k] for k in ("outputs", "gradients", "dtype")}
        except ValueError as problem:
            answer = {"skipped": f"{problem}"[:500]}
        except Exception as problem:
            text = traceback.format_exc()
            answer = {"skipped" if "measure" not in text or "step(subject" not in text else "raised": f"{type(problem).__name__}: {problem}"[:600]}
        finally:
            faulthandler.cancel_dump_traceback_later()
            signal.alarm(0)
        print("ANSWER " + json.dumps({"name": name, "form": form, **answer}), flush=True)
        if "CUDA error" in str(answer):
            return  # nothing more comes of this process


def run_all(options):
    import threading

    from transformers import CONFIG_MAPPING

    names = options.only or sorted(CONFIG_MAPPING.keys())
    todo = [(n, f) for n in names for f in options.forms]
    todo.reverse()
    results, lock = [], threading.Lock()

    def serve():
        child = None
        while True:
            with lock:
                if not todo or time.monotonic() > options.end:
                    break
                name, form = todo.pop()
            if child is None:
                child = subprocess.Popen([sys.executable, "-m", "models.architectures", "--work", *options.passed], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=options.log or subprocess.DEVNULL, text=True)
            try:
                if child.poll() is not None:
                    raise BrokenPipeError
                child.stdin.write(f"{name} {form}\n")
                child.stdin.flush()
            except BrokenPipeError:
                child = None
                with lock:
                    todo.append((name, form))
                continue
            watch = threading.Timer(options.limit + 30, child.kill)  # what hangs where no signal of Python's arrives
            watch.start()
            while line := child.stdout.readline():
                if line.startswith("ANSWER "):
                    break
            watch.cancel()
            if line:
                answer = json.loads(line[7:])
                if "CUDA error" in line:
                    child = None  # ends
            else:
                answer = {"name": name, "form": form, "died": child.wait()}
                child = None
            with lock:
                results.append(answer)
        if child:
            child.stdin.close()
            try:
                child.wait(timeout=20)
            except subprocess.TimeoutExpired:
                child.kill()

    threads = [threading.Thread(target=serve) for _ in range(options.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return sorted(results, key=lambda r: (r["name"], r["form"])), len(todo)


def tell(results, left):
    """Prints what stands out; True if something is wrong."""
    ran = [r for r in results if "graphs" in r]
    wrong = [r for r in results if "died" in r or "raised" in r or "graphs" in r and is_wrong(r)]
    for r in wrong:
        print("WRONG", r["name"], r["form"], {k: r[k] for k in ("died", "raised", "outputs", "gradients") if k in r})
    for r in ran:
        for reason in r["eager"]:
            print("EAGER", r["name"], r["form"], reason)
    tally = collections.Counter(reason for r in ran for reason in r["reasons"])
    for reason, n in tally.most_common(40):
        print(f"{n:5} {reason}")
    print(f"{len(ran)} ran, {len(wrong)} wrong, {sum(1 for r in results if 'skipped' in r)} skipped, {left} left; "
          f"{sum(r['breaks'] for r in ran)} breaks in {sum(1 for r in ran if r['breaks'])}, {sum(r['graphs'] for r in ran)} graphs, {sum(r['recompiles'] for r in ran)} recompiles")
    return bool(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--forms", nargs="*", default=["infer", "train"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e9, help="no new program after that")
    parser.add_argument("--limit", type=int, default=90, help="seconds a program may take")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--engine", default="fusebox", choices=["fusebox", "stock"])
    parser.add_argument("--backend")
    parser.add_argument("--sizes", type=int, default=0, help="further calls, each of another batch and length")
    parser.add_argument("--report", help="JSON of all results")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options)
    options.log = open(options.report + ".stderr", "w") if options.report else None
    options.end = time.monotonic() + options.seconds
    options.passed = [f"--{k}={getattr(options, k)}" for k in ("limit", "device", "dtype", "engine", "backend", "sizes") if getattr(options, k)]
    results, left = run_all(options)
    if options.report:
        with open(options.report, "w") as f:
            json.dump(results, f, indent=1)
    sys.exit(tell(results, left))


if __name__ == "__main__":
    main()
