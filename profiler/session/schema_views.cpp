#include <array>

#include "profiler/session/schema.h"

namespace fusebox::session {
namespace {

// What PyTorch calls "torch_dynamo_resume_in_step_at_15" is the rest of the user's `step`.
#define FUSEBOX_FUNCTION_OF(name)                                                                                            \
  "CASE WHEN " name " GLOB 'torch_dynamo_resume_in_?*_at_[0-9]*' THEN substr(rtrim(substr(" name ", 24), '0123456789'), 1, " \
  "length(rtrim(substr(" name ", 24), '0123456789')) - 4) ELSE " name " END AS frame"

// Joins are LEFT JOINs on primary keys, so that SQLite leaves them out where no column of theirs is asked for.
constexpr std::array kViews{
    ViewDefinition{"session_info", "SELECT key, value FROM t_info"},
    ViewDefinition{"frames", R"(SELECT id AS frame_id, parent_id AS parent_frame_id, name, qualname, file, line,
  resume_offset, status, reason, first_seen_ns,
  (SELECT count(*) FROM t_compile c WHERE c.frame_id = f.id) AS compiles FROM t_frame f)"},
    ViewDefinition{"compiles", R"(SELECT c.id AS compile_id, c.frame_id, c.parent_id AS parent_compile_id, c.attempt, c.kind,
  )" FUSEBOX_FUNCTION_OF("coalesce(f.name, pf.name)") R"(, c.backend, c.mode, c.dynamic, c.start_ns, c.end_ns, c.end_ns - c.start_ns AS dur_ns, c.status, c.error,
  c.cache, c.cache_key, c.failure_id, c.thread, coalesce(c.file, f.file, pf.file) AS file,
  coalesce(c.line, f.line, pf.line) AS line, coalesce(c.log_id, p.log_id) AS log_id
  FROM t_compile c LEFT JOIN t_frame f ON f.id = c.frame_id
  LEFT JOIN t_compile p ON p.id = c.parent_id LEFT JOIN t_frame pf ON pf.id = p.frame_id)"},
    ViewDefinition{"stages", R"(SELECT s.id AS stage_id, s.compile_id, s.parent_id AS parent_stage_id, s.depth, s.phase, s.name,
  s.start_ns, s.end_ns, s.end_ns - s.start_ns AS dur_ns, s.thread, s.changed, s.nodes_before, s.nodes_after, s.error,
  s.detail, c.file, c.line FROM t_stage s LEFT JOIN compiles c ON c.compile_id = s.compile_id)"},
    ViewDefinition{"graph_breaks", R"(SELECT b.id AS break_id, b.frame_id, b.compile_id, )" FUSEBOX_FUNCTION_OF("f.name") R"(, b.kind, b.reason,
  b.hint, b.file, b.line, b.end_line, b.col, b.end_col, b.opcode, b.offset, b.stack, b.time_ns, b.bytecode
  FROM t_graph_break b LEFT JOIN t_frame f ON f.id = b.frame_id)"},
    ViewDefinition{"guards", R"(SELECT g.id AS guard_id, g.compile_id, c.frame_id, g.position, g.kind, g.source, g.expected,
  g.code, g.reason, (SELECT count(*) FROM t_guard_failure x WHERE x.guard_id = g.id) AS failures, g.file, g.line,
  (SELECT s.text FROM t_stack s WHERE s.id = g.stack) AS stack
  FROM t_guard g LEFT JOIN t_compile c ON c.id = g.compile_id)"},
    ViewDefinition{"guard_failures", R"(SELECT x.id AS failure_id, x.frame_id, )" FUSEBOX_FUNCTION_OF("f.name") R"(, x.compile_id, x.guard_id,
  x.guard, x.expected, x.found, x.outcome,
  CASE x.outcome WHEN 'recompile' THEN (SELECT c.id FROM t_compile c WHERE c.frame_id = x.frame_id AND c.start_ns >= x.time_ns
    AND c.failure_id IS NOT NULL ORDER BY c.start_ns LIMIT 1) END AS recompile_id, x.file, x.line, x.time_ns, x.stack
  FROM t_guard_failure x LEFT JOIN t_frame f ON f.id = x.frame_id)"},
    ViewDefinition{"graphs", R"(SELECT g.id AS graph_id, g.compile_id, coalesce(c.frame_id, (SELECT p.frame_id
  FROM t_compile p WHERE p.id = c.parent_compile_id)) AS frame_id, g.stage, g.direction, g.name,
  g.parent_id AS parent_graph_id, g.node_count, g.edge_count, g.input_count, g.output_count, g.text, g.time_ns, c.file,
  c.line, c.log_id FROM t_graph g LEFT JOIN compiles c ON c.compile_id = g.compile_id)"},
    ViewDefinition{"nodes", R"(SELECT id AS node_id, graph_id, position, name, kind, op, args, dtype, shape, stride, device,
  outputs, bytes, is_backward, module_path, file, line, function,
  CASE typeof(stack) WHEN 'integer' THEN (SELECT s.text FROM t_stack s WHERE s.id = n.stack) ELSE stack END AS stack FROM t_node n)"},
    ViewDefinition{"edges", "SELECT graph_id, src AS src_node_id, dst AS dst_node_id, output, arg FROM t_edge"},
    ViewDefinition{"node_origins", R"(SELECT o.node_id, o.origin_id AS origin_node_id, n.file, n.line
  FROM t_node_origin o LEFT JOIN t_node n ON n.id = o.origin_id)"},
    ViewDefinition{"fusion_groups", R"(SELECT g.id AS group_id, g.compile_id, g.graph_id, g.position, g.name, g.kind,
  g.kernel_id, (SELECT nullif(count(*), 0) FROM t_fusion_member m WHERE m.group_id = g.id) AS node_count, g.read_bytes,
  g.write_bytes, g.bytes_saved, g.reason,
  (SELECT coalesce(sum(launches), 0) FROM t_launch_stats s WHERE s.group_id = g.id) AS launches,
  coalesce((SELECT d.total_ns FROM t_gpu_stats d WHERE d.kernel_id = g.kernel_id),
    (SELECT coalesce(sum(total_ns), 0) FROM t_launch_stats s WHERE s.group_id = g.id)) AS total_ns, g.file, g.line FROM t_fusion_group g)"},
    ViewDefinition{"fusion_members", R"(SELECT m.group_id, m.node_id, m.position, m.role, n.file, n.line
  FROM t_fusion_member m LEFT JOIN t_node n ON n.id = m.node_id)"},
    ViewDefinition{"fusion_decisions", R"(SELECT d.id AS decision_id, d.compile_id, d.graph_id, d.position, d.a, d.b,
  d.a_node AS a_node_id, d.b_node AS b_node_id, d.group_id, d.kind, d.fused, d.reason, d.detail, d.score_bytes,
  n.file, n.line FROM t_fusion_decision d LEFT JOIN t_node n ON n.id = d.a_node)"},
    ViewDefinition{"buffers", R"(SELECT b.id AS buffer_id, b.compile_id, b.graph_id, b.name, b.kind, b.node_id, b.dtype,
  b.shape, b.device, b.bytes, b.first_use, b.last_use, b.pool_offset, b.reuses_id AS reuses_buffer_id, n.file, n.line
  FROM t_buffer b LEFT JOIN t_node n ON n.id = b.node_id)"},
    ViewDefinition{"kernels", R"(SELECT k.id AS kernel_id, k.compile_id, k.graph_id,
  coalesce(k.group_id, (SELECT min(g.id) FROM t_fusion_group g WHERE g.kernel_id = k.id)) AS group_id, k.name, k.kind, k.op,
  k.device, c.tier, c.target, k.loop_ir, c.llvm_ir, c.assembly, c.code_bytes,
  (SELECT sum(compile_ns) FROM t_kernel_code x WHERE x.kernel_id = k.id) AS compile_ns,
  CASE WHEN k.code_of IS NULL THEN c.cache ELSE 'process' END AS cache, k.reason, k.read_bytes,
  k.write_bytes, k.flops, coalesce((SELECT sum(launches) FROM t_launch_stats s WHERE s.kernel_id = k.id), d.launches, 0) AS launches,
  coalesce(d.total_ns, (SELECT sum(total_ns) FROM t_launch_stats s WHERE s.kernel_id = k.id), 0) AS total_ns,
  coalesce(d.min_ns, (SELECT min(min_ns) FROM t_launch_stats s WHERE s.kernel_id = k.id)) AS min_ns,
  coalesce(d.max_ns, (SELECT max(max_ns) FROM t_launch_stats s WHERE s.kernel_id = k.id)) AS max_ns,
  coalesce((SELECT sum(bytes) FROM t_launch_stats s WHERE s.kernel_id = k.id), 0) AS bytes,
  coalesce((SELECT min(first_ns) FROM t_launch_stats s WHERE s.kernel_id = k.id), d.first_ns) AS first_ns,
  coalesce((SELECT max(last_ns) FROM t_launch_stats s WHERE s.kernel_id = k.id), d.last_ns) AS last_ns,
  k.file, k.line, k.time_ns, d.launches AS timed_launches,
  (SELECT sum(total_ns) FROM t_launch_stats s WHERE s.kernel_id = k.id) AS host_ns, p.name AS device_function, p.grid, p.block,
  p.registers, p.static_shared + p.dynamic_shared AS shared_bytes, p.local_bytes, p.occupancy, p.occupancy_limit
  FROM t_kernel k LEFT JOIN t_gpu_stats d ON d.kernel_id = k.id
  LEFT JOIN t_gpu_shape p ON p.id = (SELECT x.shape_id FROM t_gpu_shape_stats x WHERE x.kernel_id = k.id
    ORDER BY x.total_ns DESC LIMIT 1)
  LEFT JOIN t_kernel_code c ON c.kernel_id = coalesce(k.code_of, k.id)
    AND c.tier = (SELECT max(tier) FROM t_kernel_code x WHERE x.kernel_id = coalesce(k.code_of, k.id)))"},
    ViewDefinition{"launches", R"(SELECT l.id AS launch_id, l.kernel_id, l.group_id, k.name AS kernel, l.start_ns, l.dur_ns,
  l.start_ns + l.dur_ns AS end_ns, l.bytes, l.thread, k.compile_id, k.file, k.line,
  (SELECT min(e.start_ns) FROM t_gpu_event e WHERE e.launch_id = l.id) AS device_start_ns,
  (SELECT sum(e.dur_ns) FROM t_gpu_event e WHERE e.launch_id = l.id) AS device_ns
  FROM t_launch l LEFT JOIN t_kernel k ON k.id = l.kernel_id)"},
    ViewDefinition{"cpu_events", R"(SELECT e.id * 4 AS event_id, e.kind, e.name, e.start_ns, e.dur_ns,
    e.start_ns + e.dur_ns AS end_ns, e.thread, e.depth, e.compile_id, e.detail, e.file, e.line FROM t_cpu_event e
  UNION ALL SELECT s.id * 4 + 1, 'stage', s.name, s.start_ns, s.end_ns - s.start_ns, s.end_ns, s.thread, s.depth,
    s.compile_id, s.phase, c.file, c.line FROM t_stage s LEFT JOIN compiles c ON c.compile_id = s.compile_id
  UNION ALL SELECT l.id * 4 + 2, 'call', CASE c.kind WHEN 'backward' THEN c.frame || ' (backward)' ELSE c.frame END,
    l.start_ns, l.dur_ns, l.start_ns + l.dur_ns, l.thread, 0, l.compile_id, NULL, c.file, c.line
    FROM t_call l LEFT JOIN compiles c ON c.compile_id = l.compile_id)"},
    ViewDefinition{"gpu_events", R"(SELECT e.id AS event_id, e.kind, coalesce(e.name, p.name) AS name, e.device, e.stream, e.start_ns,
  e.dur_ns, e.start_ns + e.dur_ns AS end_ns, e.correlation, e.kernel_id, e.launch_id, e.bytes,
  coalesce(o.file, k.file) AS file, CASE WHEN o.file IS NULL THEN k.line ELSE o.line END AS line, e.lane, e.thread, e.called_ns,
  e.call_dur_ns, o.name AS operator, p.grid, p.block, p.registers, p.static_shared + p.dynamic_shared AS shared_bytes,
  p.local_bytes, p.occupancy, e.graph, e.graph_node
  FROM t_gpu_event e LEFT JOIN t_kernel k ON k.id = e.kernel_id LEFT JOIN t_gpu_shape p ON p.id = e.shape_id
  LEFT JOIN t_cpu_event o ON o.id = e.cpu_event)"},
    ViewDefinition{"cache_events", R"(SELECT e.id AS event_id, e.compile_id, e.cache, e.outcome, e.key, e.reason, e.saved_ns,
  e.time_ns, c.file, c.line FROM t_cache_event e LEFT JOIN compiles c ON c.compile_id = e.compile_id)"},
    ViewDefinition{"source_files", R"(SELECT id AS file_id, path AS file, 1 AS line, text, bytes, hash, truncated, time_ns
  FROM t_source_file)"},
    ViewDefinition{"losses", "SELECT what, count, detail, first_ns, last_ns FROM t_loss"},
    // Kept as stable, though not among the promised ones (kPromisedViews).
    ViewDefinition{"symbols", R"(SELECT s.id AS symbol_id, s.compile_id, c.frame_id, s.position, s.name, s.kind, s.source, s.hint,
  s.lower, s.upper, s.policy, s.reason, s.before, s.after, s.file, s.line,
  (SELECT x.text FROM t_stack x WHERE x.id = s.stack) AS stack, s.time_ns
  FROM t_symbol s LEFT JOIN t_compile c ON c.id = s.compile_id)"},
    ViewDefinition{"relations", R"(SELECT r.id AS relation_id, r.compile_id, c.frame_id, r.position, r.guard_id, r.kind,
  r.left || ' ' || r.op || ' ' || r.right AS relation, r.op, r.left, r.right, r.symbols, r.reason,
  (SELECT count(*) FROM t_guard_failure x WHERE x.guard_id = r.guard_id) AS failures, r.file, r.line,
  (SELECT x.text FROM t_stack x WHERE x.id = r.stack) AS stack, r.time_ns
  FROM t_relation r LEFT JOIN t_compile c ON c.id = r.compile_id)"},
    ViewDefinition{"specialisations", R"(SELECT s.id AS specialisation_id, s.compile_id, c.frame_id, s.position, s.guard_id, s.kind,
  s.expression, s.symbols, s.source, s.value, s.operator, s.reason,
  (SELECT count(*) FROM t_guard_failure x WHERE x.guard_id = s.guard_id) AS failures, s.file, s.line,
  (SELECT x.text FROM t_stack x WHERE x.id = s.stack) AS stack, s.time_ns
  FROM t_specialisation s LEFT JOIN t_compile c ON c.id = s.compile_id)"},
    ViewDefinition{"threads", "SELECT id AS thread, os_tid, name FROM t_thread"},
    ViewDefinition{"kernel_code", R"(SELECT k.id AS kernel_id, c.tier, c.target, c.llvm_ir, c.assembly, c.code_bytes,
  c.compile_ns, CASE WHEN k.code_of IS NULL THEN c.cache ELSE 'process' END AS cache, c.time_ns
  FROM t_kernel k JOIN t_kernel_code c ON c.kernel_id = coalesce(k.code_of, k.id))"},
    ViewDefinition{"kernel_binaries", R"(SELECT k.id AS kernel_id, b.format, b.bytes FROM t_kernel k
  JOIN t_kernel_binary b ON b.kernel_id = coalesce(k.code_of, k.id))"},
    ViewDefinition{"calls", R"(SELECT s.compile_id, CASE s.kind WHEN 1 THEN 'guard_check' ELSE 'call' END AS kind,
  CASE c.kind WHEN 'backward' THEN c.frame || ' (backward)' ELSE c.frame END AS frame, s.calls, s.total_ns, s.min_ns, s.max_ns,
  c.file, c.line FROM t_call_stats s LEFT JOIN compiles c ON c.compile_id = s.compile_id)"},
    ViewDefinition{"artifacts", R"(SELECT a.id AS artifact_id, a.compile_id, a.graph_id, a.kind, a.name, a.format, a.text,
  a.detail, a.damaged, a.time_ns, a.thread, c.file, c.line FROM t_artifact a LEFT JOIN compiles c ON c.compile_id = a.compile_id)"},
    ViewDefinition{"compile_metrics", R"(SELECT a.compile_id, CASE WHEN a.kind GLOB '*bwd_*' OR a.kind GLOB '*backward*'
  THEN 'backward' ELSE 'forward' END AS direction, a.kind, j.key AS name, j.value, c.file, c.line
  FROM t_artifact a JOIN json_each(CASE WHEN json_valid(a.detail) THEN a.detail ELSE '{}' END) j
  LEFT JOIN compiles c ON c.compile_id = a.compile_id WHERE a.kind GLOB '*compilation_metrics*')"},
    ViewDefinition{"flows", R"(SELECT id * 2 AS flow_id, kind, name, from_thread, from_ns, to_thread, to_ns,
  from_event * 4 AS from_event_id, to_event AS to_event_id FROM t_flow
  UNION ALL SELECT e.id * 2 + 1, 'launch', NULL, e.thread, e.called_ns, e.lane, e.start_ns, e.cpu_event * 4, e.id
    FROM t_gpu_event e WHERE e.called_ns IS NOT NULL
    AND NOT EXISTS(SELECT 1 FROM t_flow f WHERE f.to_event = e.id AND f.kind = 'launch'))"},
    ViewDefinition{"gpu_counters", R"(SELECT c.event_id, e.kernel_id, e.launch_id, c.metric, c.value, e.dur_ns
  FROM t_gpu_counter c LEFT JOIN t_gpu_event e ON e.id = c.event_id)"},
    ViewDefinition{"gpu_sampled_metrics", "SELECT device, metric, interval_ns FROM t_gpu_sampling"},
    ViewDefinition{"gpu_samples", R"(SELECT s.device, m.metric, s.start_ns, s.dur_ns, s.start_ns + s.dur_ns AS end_ns,
  m.scale * CASE m.position WHEN 0 THEN s.v0 WHEN 1 THEN s.v1 WHEN 2 THEN s.v2 WHEN 3 THEN s.v3 WHEN 4 THEN s.v4
    WHEN 5 THEN s.v5 WHEN 6 THEN s.v6 WHEN 7 THEN s.v7 WHEN 8 THEN s.v8 WHEN 9 THEN s.v9 WHEN 10 THEN s.v10 WHEN 11 THEN s.v11 END AS value
  FROM t_gpu_sample s JOIN t_gpu_sampling m ON m.device = s.device)"},
    ViewDefinition{"gpu_devices", R"(SELECT device, name, capability, multiprocessors, threads_per_multiprocessor,
  registers_per_multiprocessor, shared_per_multiprocessor, memory_bytes, l2_bytes, clock_khz, memory_clock_khz, memory_bus_bits,
  peak_bytes_per_s, peak_flops, copy_bytes_per_s FROM t_gpu_device)"},
    ViewDefinition{"numerics", R"(SELECT x.graph_id, x.node_id, x.output, n.name, n.op, x.dtype, x.elements, x.eager_abs, x.eager_rel,
  x.compiled_abs, x.compiled_rel, x.difference_abs, x.difference_ulp, x.local_abs, x.magnitude, x.mismatches, x.is_divergent, x.note,
  n.file, n.line FROM t_numerics x LEFT JOIN t_node n ON n.id = x.node_id)"},
    ViewDefinition{"cuda_graphs", R"(SELECT g.id AS cuda_graph_id, g.compile_id, c.frame,
  CASE c.kind WHEN 'backward' THEN 'backward' ELSE 'forward' END AS direction, g.event, g.number, g.reason, g.replaces, g.device,
  g.nodes, g.stretches, g.plain_steps, g.plain_reason, g.static_inputs, g.copied_inputs, g.copied_bytes, g.kept_bytes, g.time_ns,
  g.dur_ns, g.kernel_id, coalesce(k.launches, 0) AS replays, coalesce(k.total_ns, 0) AS replay_ns, c.file, c.line, g.pool_bytes
  FROM t_cuda_graph g LEFT JOIN compiles c ON c.compile_id = g.compile_id LEFT JOIN kernels k ON k.kernel_id = g.kernel_id)"},
    ViewDefinition{"cuda_graph_nodes", R"(SELECT n.graph_id AS cuda_graph_id, n.stretch, n.first_node, n.node_count, n.group_id,
  n.kernel_id, k.name AS kernel FROM t_cuda_graph_node n LEFT JOIN t_kernel k ON k.id = n.kernel_id)"},
    ViewDefinition{"timeline", R"(SELECT CASE track WHEN 2 THEN 'gpu' WHEN 1 THEN 'calls' ELSE 'launches' END AS track, thread, level,
  bucket * (1048576 << (2 * level)) AS start_ns, 1048576 << (2 * level) AS width_ns, count, busy_ns, max_dur_ns, example_id
  FROM t_pyramid)"},
};

}  // namespace

std::span<const ViewDefinition> publicViews() { return kViews; }

}  // namespace fusebox::session
