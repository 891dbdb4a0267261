"""What every setting of PyTorch's configuration modules means under this engine: one table for `fusebox config`, for the warnings about settings
that change nothing, and for what a session says of settings."""

import sys
from fnmatch import fnmatchcase
from typing import NamedTuple


class Row(NamedTuple):
    here: str             # "acts"; "always": the engine behaves as `value`, whatever is set; "none": without effect
    why: str              # by what it acts, or why not
    value: object = None


def _acts(names, how):
    return names.split(), Row("acts", how)


def _always(names, value, why):
    return names.split(), Row("always", why, value)


def _none(names, why):
    return names.split(), Row("none", why)


_INTERNAL = "PyTorch's own bookkeeping, no setting"
_GUARDS = "guards are Fusebox's own, checked in well under a microsecond, and none is left out"
_SESSION = "`fusebox run` records it in the session"
_REPRO = "`fusebox replay` compiles and runs one graph of a session without its program, `fusebox numerics` finds where values diverge"
_OWN_SHAPES = "symbolic sizes are Fusebox's own, without SymPy and torch's ShapeEnv"
_NO_FAKE = "graphs are traced with stand-ins of Fusebox's own, not with FakeTensor"
_NO_TRITON = "kernels are generated without Triton"
_NO_CPP = "machine code is generated without a C++ compiler"
_TIMED = "what was timed is part of the compiled graph, which fx_graph_remote_cache shares"
_FUSION = "fusion goes by Fusebox's own rules; fusebox.config.max_fusion_size, forbid_fusion and force_fusion change them"
_LIBRARIES = "matrix products and convolutions are the libraries'"
_PASSES = "graphs are not handed to functions in Python; fusebox.config.skip_passes leaves passes of Fusebox out"
_SHAPES_TUNED = "launch shapes are chosen among a few that are timed"
_MIN_CUT = "what backward keeps is the least by a cut over bytes kept, written and read; nothing is chosen by hand"
_COMMUNICATION = "collectives run in the program's order, each as soon as its input is there"
_IN_PROCESS = "kernels are compiled by threads of this process"
_TESTING = "it is for PyTorch's own tests"
_EXPORT = "it is for torch.export"

_COMPILER = [
    _acts("job_id pgo_extra_read_key pgo_extra_write_key", "profiles of a job: sizes that changed in one run are symbols in the next"),
    _acts("cache_key_tag force_disable_caches", "the cache of compiled graphs"),
    _acts("dynamic_sources unbacked_sources", "inputs whose sizes are symbols from the first compile"),
    _none("force_cudagraph_gc", "recordings of CUDA graphs do not collect garbage"),
]

_DYNAMO = [
    _acts("recompile_limit accumulated_recompile_limit", "how many entries a place and a code object may have"),
    _acts("fail_on_recompile_limit_hit error_on_recompile", "an error in place of a recompile"),
    _acts("specialize_int specialize_float", "whether numbers that changed stay constants"),
    _acts("assume_static_by_default automatic_dynamic_shapes force_parameter_static_shapes", "which sizes are symbols"),
    _acts("automatic_dynamic_local_pgo automatic_dynamic_remote_pgo", "where the profile of a job is kept"),
    _acts("disable", "torch.compile gives back what it was given"),
    _acts("enable_compiler_collectives", "ranks tell each other the sizes they capture with, so that those that differ are symbols on all"),
    _always("suppress_errors", True, "what cannot be compiled runs eagerly, with one warning and a row of the session"),
    _always("replay_side_effects", True, "writes are made where the program makes them"),
    _none("side_effect_replay_policy", "writes are made where the program makes them, which is nothing to be told"),
    _always("guard_nn_modules", True, "attributes of modules that were read are guarded"),
    _always("rewrite_assert_with_torch_assert", True, "an assert about data is a condition of the graph, which raises as eager does"),
    _acts("capture_scalar_outputs", "whether graphs for a backend in Python go on where item() reads a number; Fusebox's own always do"),
    _acts("capture_dynamic_output_shape_ops", "whether sizes that data decide are symbols in graphs for a backend in Python; in Fusebox's own they always are"),
    _always("allow_rnn", True, "recurrent networks are captured"),
    _always("report_guard_failures", True, "the session has every guard that failed, with what was expected and found"),
    _always("trace_numpy capture_autograd_function capture_func_transforms", True, "they are captured"),
    _always("enable_cpp_guard_manager enable_cpp_symbolic_shape_guards enable_cpp_framelocals_guard_eval", True, "guards are checked in C++"),
    _always("enable_trace_contextlib enable_faithful_generator_behavior inline_inbuilt_nn_modules", True, "they are followed like other code in Python"),
    _always("enable_aot_compile", True, "torch.compile(f).aot_compile is there"),
    _always("same_two_models_use_fp64", True, "`fusebox numerics` compares with float64"),
    _always("log_compilation_metrics", True, _SESSION),
    _always("run_gc_after_compile", False, "no garbage collection is forced"),
    _always("prepare_freezing", False, "parameters stay the module's own"),
    _always("do_not_emit_runtime_asserts", False, "what was assumed of data is checked in every call"),
    _none("dynamic_shapes", "PyTorch ignores it too; dynamic= of torch.compile says it"),
    _none("log_file_name verbose log_graph_in_out_metadata", "`fusebox run` records all of it in the session; breaks and warnings always name their line"),
    _none("cprofile dynamo_profiler record_compile_time_instruction_count record_runtime_overhead", _SESSION + ": times of every stage, launch and guard"),
    _none("verify_correctness", "`fusebox numerics` compares every value of a graph with float64"),
    _none("debug_backend_override debug_inductor_config_override", "`fusebox debug` changes the compiler while a graph is compiled"),
    _none("leaf_function_*", "such functions are not checked at run time"),
    _none("minimum_call_count", "a function is compiled when it is first called"),
    _none("dead_code_elimination", "no bytecode is generated"),
    _none("skip_code_recursive_on_recompile_limit_hit", "at the limit only this frame is left to Python; what it calls stays compiled"),
    _none("use_lazy_graph_module", "there are no FX graphs but for backends in Python"),
    _none("automatic_dynamic_shapes_mark_as", "sizes that changed are symbols with the value of the capture as hint"),
    _none("force_nn_module_property_static_shapes allow_unspec_int_on_nn_module", "ints of modules are treated as all others: those that changed are symbols"),
    _none("allow_ignore_mark_dynamic", "a size that was marked dynamic and becomes a constant is an error, with the line that made it one"),
    _none("guard_nn_modules_using_dict_tags use_lamba_guard_for_object_aliasing skip_fsdp_guards skip_nnmodule_hook_guards "
          "skip_no_tensor_aliasing_guards_on_parameters skip_tensor_guards_with_matching_dict_tags skip_guards_on_constant_func_defaults "
          "assume_dunder_attributes_remain_unchanged use_recursive_dict_tags_for_guards max_saved_pointers_for_recursive_dict_tags_check "
          "_unsafe_skip_fsdp_module_guards", _GUARDS),
    _none("skip_fsdp_hooks", "hooks are followed where they can be, else the graph breaks there, with the reason"),
    _none("traceable_tensor_subclasses nontraceable_tensor_subclasses", "a class that answers torch's functions is followed through its methods"),
    _acts("repro_after repro_level repro_forward_only repro_ignore_non_fp repro_tolerance",
          "graphs that a backend in Python fails at are made small, where repro_after is \"dynamo\""),
    _none("replay_record_enabled", _REPRO),
    _none("skipfiles_inline_module_allowlist allowed_functions_module_string_ignorelist skip_torchrec dont_skip_tracing",
          "every function in Python is followed; torch.compiler.disable leaves one out"),
    _none("prefer_deferred_runtime_asserts_over_guards", "relations of inputs' sizes are guards, those of sizes that data decide are checked in the call"),
    _none("force_unspec_int_unbacked_size_like_on_torchrec_kjt", "torchrec's classes are followed like any other"),
    _acts("optimize_ddp", "the backward of a graph under DDP hands gradients on as the buckets fill, so that they are reduced while it goes on; forward stays whole"),
    _none("optimize_ddp_lazy_compile", "what backward runs between two buckets is compiled when it is first reached"),
    _none("raise_on_ctx_manager_usage", "what may be used as a context manager is decided by capture"),
    _none("raise_on_unsafe_aot_autograd", "there is no AOTAutograd of PyTorch's in the way"),
    _none("error_on_nested_jit_trace error_on_nested_fx_trace force_compile_during_fx_trace", "while another tracer is active frames are left to Python, with the reason"),
    _none("capture_sparse_compute", "operations on sparse tensors run eagerly"),
    _none("base_dir debug_dir_root", "no files are written but the session and the cache"),
    _none("trace_autograd_ops", "torch.autograd.grad of what a graph computes is part of it, backward() is a break"),
    _none("numpy_default_float numpy_default_complex numpy_default_int", "arrays have the types that numpy gives them"),
    _none("use_numpy_random_stream", "numpy's random numbers are drawn by numpy"),
    _none("enable_trace_unittest", "unittest's functions are followed as any other"),
    _none("nested_graph_breaks", "a function that breaks inside is called for real, and its own parts are compiled"),
    _none("error_on_dynamo_callback_in_fullgraph_compiled_code", "compiled code does not come back to the compiler"),
    _none("install_free_tensors install_free_tensors_for_export", _EXPORT),
    _none("use_graph_deduplication track_nodes_for_deduplication graph_deduplication_lint enable_invoke_subgraph_regional_compile",
          "equal parts of a graph are not folded into one"),
    _none("issue_3_13_0_warning", "it is about a Python that Fusebox is not built for"),
    _always("allow_empty_graphs", True, "a stretch without operators needs no graph"),
    _none("debug_force_nested_calls debug_force_graph_break_on_leaf_return debug_disable_compile_counter inject_BUILD_SET_unimplemented_TESTING_ONLY", _TESTING),
    _none("cudagraph_backend_*", "CUDA graphs are recorded by another scheme, which writes inputs where they lie"),
    _none("only_allow_pt2_compliant_ops", "custom operators are called as they are, in order, and never merged"),
    _none("capture_profiler_record_function constant_fold_autograd_profiler_enabled", "ranges of torch.profiler are not part of graphs"),
    _acts("ignore_logging_functions", "functions and methods whose calls compiled code leaves out, where a set is assigned"),
    _acts("reorderable_logging_functions", "functions that are called when the graph has run, where a set is assigned; print, warnings and logging are anyway, where that is unseen"),
    _none("_autograd_backward_strict_mode_*", "it is for PyTorch's strict mode"),
    _none("fake_tensor_*", _NO_FAKE),
    _none("caching_precompile strict_precompile", "compiled graphs are cached; torch.compile(f).aot_compile and torch.compiler.precompile write programs that load without compiling"),
    _none("compiled_autograd compiled_autograd_kwargs_override", "a graph's backward is compiled with its forward; between graphs autograd runs as in eager"),
    _none("enable_dynamo_decompositions", "decompositions are those of Fusebox's own compiler"),
    _none("graph_break_on_nn_param_ctor", "what can be followed is, and a break says what cannot"),
    _always("inline_torch_dispatch_torch_compile", True, "__torch_dispatch__ of the program's classes of tensors is followed"),
    _none("skip_fwd_side_effects_in_bwd_under_checkpoint", "backward recomputes operators, no side effects"),
    _none("pt2_compile_id_prefix", "compiles are named by their number in the session"),
    _none("wrap_top_frame", "a module is captured from its call on, hooks included"),
    _none("_custom_ops_profile", "shape functions of custom operators are asked directly"),
    _none("invalidate_compile_context_weakrefs", "what hangs on a program ends with it"),
    _none("TYPE_CHECKING _save_config_ignore", _INTERNAL),
]

_FUNCTORCH = [
    _always("cse", True, "equal operators of a graph are computed once"),
    _always("treat_parameters_as_free_to_save", True, "inputs that live on cost nothing to keep"),
    _always("view_replay_for_aliased_outputs", True, "results that are views are made again from their base"),
    _always("backward_pass_autocast", "same_as_forward", "backward is traced with its forward"),
    _always("_test_disable_functionalization", True, "graphs are always functional"),
    _always("functionalize_rng_ops graphsafe_rng_functionalization", True, "random operators keep their order and their generator"),
    _always("decompose_custom_triton_ops", True, "an operator of Triton is one call"),
    _none("enable_autograd_cache autograd_cache_* bundled_autograd_cache bypass_autograd_cache_key strict_autograd_cache force_autograd_cache "
          "enable_remote_autograd_cache", "forward and backward are kept in the one cache of compiled graphs: torch._inductor.config.fx_graph_cache, fx_graph_remote_cache"),
    _none("max_dist_from_bw ban_recompute_* recompute_views is_non_builtin_to_include aggressive_recomputation activation_memory_budget* "
          "visualize_memory_budget_pareto memory_budget_pareto_dir remat_using_tags_for_fwd_loss_bwd_graph", _MIN_CUT),
    _none("enable_activation_offloading activation_offload_* activation_reload_prefetch", "what is kept for backward stays on its device"),
    _none("donated_buffer saved_tensors_hooks_filtering_mode", "backward gives up what was saved for it as soon as it has read it, unless the graph is kept"),
    _none("debug_assert debug_partitioner", "every graph is verified after every pass; `fusebox debug` shows the cut"),
    _none("fake_tensor_* generate_fake_kernels_from_real_mismatches", _NO_FAKE),
    _none("check_custom_op_aliasing error_on_custom_op_aliasing custom_op_default_layout_constraint", "custom operators get their operands as in eager, and are watched for what they really give"),
    _none("unlift_effect_tokens", "effects are ordered by edges of the graph, without tokens"),
    _none("torch_compile_graph_format", "`fusebox diagram` draws graphs, as svg, png, pdf and dot"),
    _none("force_non_lazy_backward_lowering", "backward is compiled with its forward"),
    _none("static_weight_shapes", "torch._dynamo.config.force_parameter_static_shapes says it"),
    _none("unsafe_allow_optimization_of_collectives", "collectives are never removed, merged or repeated"),
    _none("_sync_decision_cross_ranks", "the cut is a function of the graph alone: ranks with equal graphs cut equally; those whose graphs differ are told"),
    _none("disable_guess_zero_tangent_for_mutated_input_subclass guess_tangent_strides_as_outputs", "gradients are taken as they come, and copied where their layout is another"),
    _none("joint_custom_pass", _PASSES),
    _none("selective_decompose", "what has no fused kernel is called as it is"),
    _none("TYPE_CHECKING _save_config_ignore", _INTERNAL),
]

_FX = [
    _acts("use_duck_shape", "whether sizes that were equal in every capture share a symbol"),
    _none("translation_validation*", _OWN_SHAPES + ": there is no translation to validate"),
    _none("check_shape_env_recorded_events validate_shape_env_version_key symbol_guard_limit_before_specialize backed_size_oblivious "
          "inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY meta_nonzero_assume_all_nonzero soft_pending_unbacked_not_found_error no_data_dependent_graph_break", _OWN_SHAPES),
    _none("extended_debug_* print_specializations", "`fusebox shapes` says of each symbol, relation and constant which line asked for it"),
    _none("skip_dtype_check_in_meta_registrations", _NO_FAKE),
    _none("enrich_profiler_metadata", "a session ties every kernel to its nodes and lines"),
]

_INDUCTOR = [
    _acts("fallback_random", "random numbers of compiled code are eager's"),
    _acts("fx_graph_cache fx_graph_remote_cache", "the cache of compiled graphs, on disk and by Redis"),
    _acts("max_autotune", "launch shapes of generated kernels are timed"),
    _acts("emulate_precision_casts", "values of 16-bit types are rounded between operators as in eager"),
    _acts("nan_asserts", "every result is checked for NaN and infinities"),
    _acts("deterministic", "nothing is chosen by timing, and sums have one order"),
    _acts("triton.cudagraphs triton.cudagraph_unexpected_rerecord_limit triton.cudagraph_or_error", "CUDA graphs"),
    _always("size_asserts scalar_asserts alignment_asserts", True, "sizes, strides, assumptions and alignment are always checked"),
    _always("assert_indirect_indexing", True, "indices are always checked"),
    _always("online_softmax", True, "the maximum and the sum of long rows are one walk"),
    _always("implicit_fallbacks", True, "operators without a lowering are called as in eager"),
    _always("keep_output_stride", True, "results have eager's strides"),
    _always("allow_buffer_reuse inplace_buffers", True, "memory is planned over the whole program"),
    _always("split_reductions", True, "long reductions are divided over the device"),
    _always("constant_and_index_propagation loop_ordering_after_fusion", True, "loops are simplified and lined up"),
    _always("freezing", False, "parameters stay the module's own"),
    _always("use_fast_math", False, "arithmetic is IEEE's"),
    _always("eager_numerics.*", True, "arithmetic is eager's"),
    _none("fallback_by_default", "torch.compile(mode=\"lite\") runs operators as they are"),
    _none("freezing_discard_parameters", "parameters stay the module's own"),
    _none("triton.cudagraph* triton.slow_path_cudagraph_asserts triton.force_cudagraph* triton.fast_path_cudagraph_asserts triton.skip_cudagraph_warmup "
          "cudagraph_unsafe_unbacked_ops graph_partition custom_should_partition_ops triton.reorder_for_reducing_graph_partitions",
          "CUDA graphs are recorded by another scheme, which has no such setting"),
    _none("triton.* triton_* runtime_triton_nan_asserts multi_kernel_hints *triton_launcher *cuda_launcher static_launch_user_defined_triton_kernels "
          "bundle_triton_into_fx_graph_cache unsafe_ignore_unsupported_triton_autotune_args enable_caching_generated_triton_templates", _NO_TRITON),
    _none("cpp.* cpp_* disable_cpp_codegen fx_wrapper", _NO_CPP),
    _none("aot_inductor.* aot_inductor_mode.*", "`fusebox compile` and torch.compile(f).aot_compile write programs of their own form"),
    _none("cuda.*", "no CUDA source is compiled"),
    _none("cutlass* nvgemm_*", "there are no CUTLASS kernels"),
    _none("rocm.*", "there is no code for ROCm"),
    _none("xpu.*", "there is no code for XPU"),
    _none("halide.*", "Halide is not used"),
    _none("cpu_backend cuda_backend tpu_backend xpu_backend", "code is generated by LLVM, for x86-64 and NVIDIA GPUs"),
    _acts("trace.enabled trace.debug_dir trace.fx_graph trace.fx_graph_transformed trace.ir_pre_fusion trace.ir_post_fusion trace.output_code trace.graph_diagram "
          "trace.draw_orig_fx_graph trace.provenance_tracking_level trace.debug_log trace.info_log trace.upload_tar trace.log_autotuning_results",
          "the folder of TORCH_COMPILE_DEBUG"),
    _none("trace.save_real_tensors", "graphs are kept without their data; `fusebox numerics` looks at values"),
    _none("trace.dot_graph_shape", "diagrams have plain boxes"),
    _none("trace.log_url_for_graph_xform", "TORCH_LOGS=graph_code_verbose tells of each pass, `fusebox debug --break 'pass * after'` shows what it changed"),
    _none("trace.compile_profile", "the compiler is no Python; TORCH_TRACE and `fusebox run --session` have the time of each stage"),
    _none("log_tlparse", "TORCH_TRACE is written wherever it is asked for"),
    _none("debug debug_fusion debug_ir_traceback debug_index_asserts comment_origin verbose_progress disable_progress developer_warnings "
          "reorder_for_peak_memory_debug", "TORCH_LOGS, `fusebox debug` and `fusebox run --session` show every stage"),
    _none("autotune_remote_cache bundled_autotune_remote_cache autotune_local_cache search_autotune_cache remote_gemm_autotune_cache", _TIMED),
    _none("unsafe_skip_cache_dynamic_shape_guards unsafe_marked_cacheable_functions non_blocking_remote_cache_write global_cache_dir file_lock_timeout",
          "the cache has rules of its own: every entry is checked, and written in the background"),
    _none("max_autotune_gemm* max_autotune_conv_backends max_autotune_report_choices_stats max_autotune_prune_choices_based_on_shared_mem "
          "max_autotune_allow_flexible_layouts distributed_max_autotune_gemm pipeline_max_autotune_gemm autotune_fallback_to_aten cutedsl_enable_autotuning "
          "autoheuristic_* mixed_mm_choice use_mixed_mm force_fuse_int_mm_with_mul force_same_precision b2b_gemm_pass decompose_mem_bound_mm conv_1x1_as_mm "
          "lookup_table.* external_matmul autotune_lookup_table inductor_choices_class max_autotune_flex_search_space", _LIBRARIES + "; of generated kernels max_autotune alone decides"),
    _none("max_autotune_pointwise coordinate_descent_* inductor_default_autotune_* autotune_num_choices_displayed autotune_multi_device combo_kernels_autotune "
          "dynamic_scale_rblock min_num_split unroll_reductions_threshold", _SHAPES_TUNED),
    _none("benchmark_kernel use_experimental_benchmarker benchmark_harness profile_bandwidth* _profile_var profiler_mark_wrapper_call",
          "times of kernels are in the session, and `fusebox gpu` says how near they come to what the device allows"),
    _none("write_are_deterministic_algorithms_enabled", "torch.use_deterministic_algorithms is asked at every compile"),
    _none("autotune_in_subproc max_autotune_subproc_* precompilation_timeout_seconds compile_threads worker_* quiesce_async_compile_* "
          "torchinductor_worker_logpath sleep_sec_TESTING_ONLY", _IN_PROCESS),
    _none("epilogue_fusion* prologue_fusion aggressive_fusion benchmark_fusion benchmark_epilogue_fusion max_epilogue_benchmarked_choices "
          "score_fusion_memory_threshold max_fusion_size max_fusion_buffer_group_pairwise_attempts max_fusion_unique_io_buffers max_pointwise_cat_inputs "
          "force_pointwise_cat group_fusion batch_fusion pre_grad_fusion_options post_grad_fusion_options loop_index_inversion_in_fusion pick_loop_orders "
          "realize_* permute_fusion expand_dimension_for_pointwise_nodes reorder_for_locality small_memory_access_threshold "
          "combo_kernel* benchmark_combo_kernel size_threshold_for_succ_based_strategy reorder_for_peak_memory", _FUSION),
    _acts("pre_grad_custom_pass joint_custom_pre_pass joint_custom_post_pass custom_partitioner_fn post_grad_custom_pre_pass post_grad_custom_post_pass",
          "passes of the program over graphs: each gets the torch.fx graph that TorchInductor would give it"),
    _none("*_custom_*pass *_passes add_pre_grad_passes remove_pre_grad_passes disabled_passes pattern_matcher is_predispatch "
          "fx_passes_numeric_check use_dce dce joint_graph_constant_folding enable_linear_binary_folding optimize_scatter_upon_const_tensor "
          "apply_gumbel_max_trick run_jit_post_compile_hook generate_intermediate_hooks selective_decompose auto_chunker.* enable_auto_functionalized_v2 "
          "partitioned_scatter_*", _PASSES),
    _none("reorder_for_compute_comm_overlap* reorder_prefetch_limit bucket_* estimate_op_runtime runtime_estimations_mms_benchmark intra_node_bw inter_node_bw "
          "cpu_gpu_bw collective_benchmark_* _fuse_ddp_* _micro_pipeline_tp _collective.* aten_distributed_optimizations.*", _COMMUNICATION),
    _none("shape_padding comprehensive_padding pad_* disable_padding_cpu padding_* force_shape_pad inplace_padding can_inplace_pad_graph_input",
          "operands are padded where a model of measured times says so"),
    _none("layout_opt* force_layout_optimization warn_mix_layout bw_outputs_user_visible assume_aligned_inputs assume_unaligned_fallback_output "
          "always_complex_memory_overlap_TESTING_ONLY", "layouts are those of eager; alignment is asked in every call"),
    _none("memory_planning memory_pool", "memory is always planned over the whole program, in one pool a call"),
    _none("static_weight_shapes", "torch._dynamo.config.force_parameter_static_shapes says it"),
    _none("assume_32bit_indexing compute_all_bounds unbacked_symint_fallback _use_fp64_for_unbacked_floats", "widths of indices follow from the sizes and their bounds"),
    _none("always_keep_tensor_constants", "constants of a graph are tensors of the program"),
    _none("fallback_embedding_bag_byte_unpack", "that operator is called as in eager"),
    _none("save_args enabled_metric_tables kernel_name_max_ops annotate_training wrap_inductor_compiled_regions", "kernels, arguments and times are in the session"),
    _none("enable_autograd_for_aot", _EXPORT),
    _none("test_configs.* _raise_error_for_testing check_stack_no_cycles_TESTING_ONLY", _TESTING),
    _none("TYPE_CHECKING is_nightly_or_source _save_config_ignore _cache_config_ignore_prefix", _INTERNAL),
]

# Module -> the name by which a session says of its settings, and its table: exact names go before patterns, else the first that fits counts.
_MODULES = {"torch.compiler.config": ("compiler", _COMPILER), "torch._dynamo.config": ("dynamo", _DYNAMO), "torch._functorch.config": ("functorch", _FUNCTORCH),
            "torch.fx.experimental._config": ("fx", _FX), "torch._inductor.config": ("inductor", _INDUCTOR)}
MODULES = tuple(_MODULES)

_UNKNOWN = Row("none", "this PyTorch has it, and this Fusebox does not know it")
_EXACT = {module: {name: row for names, row in table for name in names} for module, (_, table) in _MODULES.items()}


def row_of(module, name):
    """What the setting means here. `module`: torch._dynamo.config, ..."""
    exact = _EXACT[module].get(name)
    if exact is not None:
        return exact
    return next((row for names, row in _MODULES[module][1] for pattern in names if "*" in pattern and fnmatchcase(name, pattern)), _UNKNOWN)


def is_known(module, name):
    return row_of(module, name) is not _UNKNOWN


def changes_nothing(row, value):
    """Whether somebody who sets this value would wait for an effect in vain."""
    return row.here == "none" or (row.here == "always" and value != row.value)


def target_of(module, entry, name):
    """Where the value of a setting really is: aliases name a setting of another module."""
    if entry.alias is None:
        return module, name
    there = next(m for m in MODULES if entry.alias.startswith(m + "."))
    return there, entry.alias[len(there) + 1:]


def says_default(entry, value):
    """Whether a value is what holds anyway."""
    return type(entry.default) is type(value) and entry.default == value


def changed(module):
    """Settings of a module that somebody made, by code or environment, and their values; nothing where nobody has imported it."""
    config = sys.modules.get(module)
    entries, is_default = getattr(config, "_config", None), getattr(config, "_is_default", None)
    if entries is None or is_default is None:
        return {}
    # Where no value but the default was ever there, PyTorch's own question, ten times as dear, is not asked: every compile asks of hundreds.
    unset = getattr(sys.modules.get("torch.utils._config_module"), "_UNSET_SENTINEL", object())
    touched = entries.items()
    if all(hasattr(next(iter(entries.values()), None), field) for field in ("user_override", "env_value_default", "env_value_force")):
        touched = [(name, entry) for name, entry in touched
                   if entry.user_override is not unset or entry.env_value_default is not unset or entry.env_value_force is not unset]
    names = [name for name, entry in touched if entry.alias is None and not entry.hide and not is_default(name)]
    values = {name: getattr(config, name) for name in names}
    return {name: value for name, value in values.items() if not says_default(entries[name], value)}  # patches that ended leave the default behind


def recorded_settings():
    """What a session says of settings: those that are not the default's, by names as config.dynamo.recompile_limit."""
    return {f"config.{short}.{name}": repr(value) for module, (short, _) in _MODULES.items() for name, value in changed(module).items()}
