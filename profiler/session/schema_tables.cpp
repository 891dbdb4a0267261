#include "profiler/session/schema.h"

namespace fusebox::session {

// Rows that the engine adds once and may complete later carry their final columns as NULL until then (end_ns, status).
// `file, line` are the user's program; NULL where there is none. Launches and calls have no secondary index on purpose:
// they are written in time order per thread, and t_block lets a reader find a range of time by id
// (track 0 launches, 1 calls, 2 GPU events of a lane; of imports 3 CPU events and 4 GPU events, of all threads and lanes). t_node.stack is the id of a
// stack, which many nodes share, or (format 1) its text. A column v0 … of t_gpu_sample is the metric of that position, times its scale;
// t_gpu_sample_sum has the same in buckets of time, sum: of value times length.
std::string_view tableSql() {
  return R"sql(
CREATE TABLE t_info(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE t_thread(id INTEGER PRIMARY KEY, os_tid INTEGER, name TEXT);
CREATE TABLE t_frame(id INTEGER PRIMARY KEY, parent_id INTEGER, name TEXT, qualname TEXT, file TEXT, line INTEGER,
  resume_offset INTEGER, status TEXT, reason TEXT, first_seen_ns INTEGER);
CREATE TABLE t_compile(id INTEGER PRIMARY KEY, frame_id INTEGER, parent_id INTEGER, attempt INTEGER, kind TEXT,
  backend TEXT, mode TEXT, dynamic INTEGER, start_ns INTEGER, end_ns INTEGER, status TEXT, error TEXT, cache TEXT,
  cache_key TEXT, failure_id INTEGER, thread INTEGER, file TEXT, line INTEGER, log_id TEXT);
CREATE INDEX t_compile_by_frame ON t_compile(frame_id);
CREATE INDEX t_compile_by_failure ON t_compile(failure_id);
CREATE TABLE t_stage(id INTEGER PRIMARY KEY, compile_id INTEGER, parent_id INTEGER, depth INTEGER, phase TEXT, name TEXT,
  start_ns INTEGER, end_ns INTEGER, thread INTEGER, changed INTEGER, nodes_before INTEGER, nodes_after INTEGER,
  error TEXT, detail TEXT);
CREATE INDEX t_stage_by_compile ON t_stage(compile_id);
CREATE TABLE t_graph_break(id INTEGER PRIMARY KEY, frame_id INTEGER, compile_id INTEGER, kind TEXT, reason TEXT,
  hint TEXT, file TEXT, line INTEGER, end_line INTEGER, col INTEGER, end_col INTEGER, opcode TEXT, offset INTEGER,
  stack TEXT, time_ns INTEGER, bytecode TEXT);
CREATE INDEX t_graph_break_by_place ON t_graph_break(file, line) WHERE file IS NOT NULL;
CREATE TABLE t_guard(id INTEGER PRIMARY KEY, compile_id INTEGER, position INTEGER, kind TEXT, source TEXT, expected TEXT,
  code TEXT, reason TEXT, file TEXT, line INTEGER, stack INTEGER);
CREATE INDEX t_guard_by_compile ON t_guard(compile_id, position);
CREATE INDEX t_guard_by_place ON t_guard(file, line) WHERE file IS NOT NULL;
CREATE TABLE t_guard_failure(id INTEGER PRIMARY KEY, frame_id INTEGER, compile_id INTEGER, guard_id INTEGER, guard TEXT,
  expected TEXT, found TEXT, outcome TEXT, file TEXT, line INTEGER, time_ns INTEGER, stack TEXT);
CREATE INDEX t_guard_failure_by_guard ON t_guard_failure(guard_id);
CREATE INDEX t_guard_failure_by_place ON t_guard_failure(file, line, outcome) WHERE file IS NOT NULL;
CREATE TABLE t_symbol(id INTEGER PRIMARY KEY, compile_id INTEGER, position INTEGER, name TEXT, kind TEXT, source TEXT, hint NUMERIC,
  lower INTEGER, upper INTEGER, policy TEXT, reason TEXT, before TEXT, after TEXT, file TEXT, line INTEGER, stack INTEGER, time_ns INTEGER);
CREATE INDEX t_symbol_by_compile ON t_symbol(compile_id, position);
CREATE TABLE t_relation(id INTEGER PRIMARY KEY, compile_id INTEGER, position INTEGER, guard_id INTEGER, kind TEXT, op TEXT, left TEXT,
  right TEXT, symbols TEXT, reason TEXT, file TEXT, line INTEGER, stack INTEGER, time_ns INTEGER);
CREATE INDEX t_relation_by_compile ON t_relation(compile_id, position);
CREATE INDEX t_relation_by_guard ON t_relation(guard_id);
CREATE TABLE t_specialisation(id INTEGER PRIMARY KEY, compile_id INTEGER, position INTEGER, guard_id INTEGER, kind TEXT, expression TEXT,
  symbols TEXT, source TEXT, value NUMERIC, operator TEXT, reason TEXT, file TEXT, line INTEGER, stack INTEGER, time_ns INTEGER);
CREATE INDEX t_specialisation_by_compile ON t_specialisation(compile_id, position);
CREATE TABLE t_graph(id INTEGER PRIMARY KEY, compile_id INTEGER, stage TEXT, direction TEXT, name TEXT, parent_id INTEGER,
  node_count INTEGER, edge_count INTEGER, input_count INTEGER, output_count INTEGER, text TEXT, time_ns INTEGER);
CREATE TABLE t_stack(id INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE t_node(id INTEGER PRIMARY KEY, graph_id INTEGER, position INTEGER, name TEXT, kind TEXT, op TEXT, args TEXT,
  dtype TEXT, shape TEXT, stride TEXT, device TEXT, outputs TEXT, bytes INTEGER, is_backward INTEGER, module_path TEXT,
  file TEXT, line INTEGER, function TEXT, stack);
CREATE INDEX t_node_by_graph ON t_node(graph_id, position);
CREATE INDEX t_node_by_place ON t_node(file, line) WHERE file IS NOT NULL;
CREATE TABLE t_edge(graph_id INTEGER, src INTEGER, dst INTEGER, output INTEGER, arg INTEGER);
CREATE INDEX t_edge_by_graph ON t_edge(graph_id);
CREATE TABLE t_node_origin(node_id INTEGER, origin_id INTEGER, PRIMARY KEY(node_id, origin_id)) WITHOUT ROWID;
CREATE INDEX t_node_origin_by_origin ON t_node_origin(origin_id);
CREATE TABLE t_fusion_group(id INTEGER PRIMARY KEY, compile_id INTEGER, graph_id INTEGER, position INTEGER, name TEXT,
  kind TEXT, kernel_id INTEGER, read_bytes INTEGER, write_bytes INTEGER, bytes_saved INTEGER, reason TEXT, file TEXT,
  line INTEGER);
CREATE INDEX t_fusion_group_by_graph ON t_fusion_group(graph_id);
CREATE INDEX t_fusion_group_by_kernel ON t_fusion_group(kernel_id);
CREATE TABLE t_fusion_member(group_id INTEGER, node_id INTEGER, position INTEGER, role TEXT,
  PRIMARY KEY(group_id, node_id)) WITHOUT ROWID;
CREATE INDEX t_fusion_member_by_node ON t_fusion_member(node_id);
CREATE TABLE t_fusion_decision(id INTEGER PRIMARY KEY, compile_id INTEGER, graph_id INTEGER, position INTEGER, a TEXT,
  b TEXT, a_node INTEGER, b_node INTEGER, group_id INTEGER, kind TEXT, fused INTEGER, reason TEXT, detail TEXT,
  score_bytes INTEGER);
CREATE INDEX t_fusion_decision_by_graph ON t_fusion_decision(graph_id);
CREATE TABLE t_buffer(id INTEGER PRIMARY KEY, compile_id INTEGER, graph_id INTEGER, name TEXT, kind TEXT, node_id INTEGER,
  dtype TEXT, shape TEXT, device TEXT, bytes INTEGER, first_use INTEGER, last_use INTEGER, pool_offset INTEGER,
  reuses_id INTEGER);
CREATE INDEX t_buffer_by_graph ON t_buffer(graph_id);
CREATE TABLE t_kernel(id INTEGER PRIMARY KEY, compile_id INTEGER, graph_id INTEGER, group_id INTEGER, name TEXT, kind TEXT,
  op TEXT, device TEXT, loop_ir TEXT, reason TEXT, read_bytes INTEGER, write_bytes INTEGER, flops INTEGER, file TEXT,
  line INTEGER, time_ns INTEGER, code_of INTEGER);
CREATE INDEX t_kernel_by_kind ON t_kernel(kind);
CREATE TABLE t_kernel_code(kernel_id INTEGER, tier INTEGER, target TEXT, llvm_ir TEXT, assembly TEXT, code_bytes INTEGER,
  compile_ns INTEGER, cache TEXT, time_ns INTEGER, PRIMARY KEY(kernel_id, tier)) WITHOUT ROWID;
CREATE TABLE t_kernel_binary(kernel_id INTEGER PRIMARY KEY, format TEXT, bytes BLOB);
CREATE TABLE t_launch_stats(kernel_id INTEGER, group_id INTEGER, launches INTEGER, total_ns INTEGER, min_ns INTEGER,
  max_ns INTEGER, bytes INTEGER, first_ns INTEGER, last_ns INTEGER, PRIMARY KEY(kernel_id, group_id)) WITHOUT ROWID;
CREATE INDEX t_launch_stats_by_group ON t_launch_stats(group_id);
CREATE TABLE t_launch(id INTEGER PRIMARY KEY, kernel_id INTEGER, group_id INTEGER, start_ns INTEGER, dur_ns INTEGER,
  bytes INTEGER, thread INTEGER);
CREATE TABLE t_call(id INTEGER PRIMARY KEY, compile_id INTEGER, start_ns INTEGER, dur_ns INTEGER, thread INTEGER);
CREATE TABLE t_block(track INTEGER, first_id INTEGER, last_id INTEGER, thread INTEGER, start_ns INTEGER, end_ns INTEGER,
  PRIMARY KEY(track, first_id)) WITHOUT ROWID;
CREATE TABLE t_call_stats(kind INTEGER, compile_id INTEGER, calls INTEGER, total_ns INTEGER, min_ns INTEGER,
  max_ns INTEGER, PRIMARY KEY(kind, compile_id)) WITHOUT ROWID;
CREATE TABLE t_cpu_event(id INTEGER PRIMARY KEY, kind TEXT, name TEXT, start_ns INTEGER, dur_ns INTEGER, thread INTEGER,
  depth INTEGER, compile_id INTEGER, detail TEXT, file TEXT, line INTEGER);
CREATE INDEX t_cpu_event_of_steps ON t_cpu_event(start_ns) WHERE kind IN ('user_annotation', 'nvtx') OR name GLOB 'ProfilerStep#*' OR name GLOB 'Optimizer.step#*';
CREATE TABLE t_gpu_event(id INTEGER PRIMARY KEY, kind TEXT, name TEXT, device INTEGER, stream INTEGER, start_ns INTEGER,
  dur_ns INTEGER, correlation INTEGER, kernel_id INTEGER, launch_id INTEGER, bytes INTEGER, shape_id INTEGER, lane INTEGER,
  thread INTEGER, called_ns INTEGER, call_dur_ns INTEGER, cpu_event INTEGER, graph INTEGER, graph_node INTEGER);
CREATE INDEX t_gpu_event_by_launch ON t_gpu_event(launch_id) WHERE launch_id IS NOT NULL;
CREATE INDEX t_gpu_event_by_kernel ON t_gpu_event(kernel_id, start_ns) WHERE kernel_id IS NOT NULL;
CREATE INDEX t_gpu_event_of_graph ON t_gpu_event(launch_id) WHERE graph IS NOT NULL;
CREATE TABLE t_gpu_shape(id INTEGER PRIMARY KEY, name TEXT, symbol TEXT, device INTEGER, grid TEXT, block TEXT, threads INTEGER,
  registers INTEGER, static_shared INTEGER, dynamic_shared INTEGER, local_bytes INTEGER, occupancy REAL, occupancy_limit TEXT);
CREATE TABLE t_gpu_stats(kernel_id INTEGER PRIMARY KEY, launches INTEGER, events INTEGER, total_ns INTEGER, min_ns INTEGER,
  max_ns INTEGER, first_ns INTEGER, last_ns INTEGER);
CREATE TABLE t_gpu_shape_stats(kernel_id INTEGER, shape_id INTEGER, events INTEGER, total_ns INTEGER,
  PRIMARY KEY(kernel_id, shape_id)) WITHOUT ROWID;
CREATE TABLE t_gpu_counter(event_id INTEGER, metric TEXT, value REAL, PRIMARY KEY(event_id, metric)) WITHOUT ROWID;
CREATE TABLE t_gpu_sampling(device INTEGER, position INTEGER, metric TEXT, scale REAL, interval_ns INTEGER,
  PRIMARY KEY(device, position)) WITHOUT ROWID;
CREATE TABLE t_gpu_sample(device INTEGER, start_ns INTEGER, dur_ns INTEGER, v0 REAL, v1 REAL, v2 REAL, v3 REAL, v4 REAL, v5 REAL, v6 REAL, v7 REAL,
  v8 REAL, v9 REAL, v10 REAL, v11 REAL, PRIMARY KEY(device, start_ns)) WITHOUT ROWID;
CREATE TABLE t_gpu_sample_sum(device INTEGER, position INTEGER, level INTEGER, bucket INTEGER, count INTEGER, covered_ns INTEGER,
  sum REAL, least REAL, most REAL, PRIMARY KEY(device, position, level, bucket)) WITHOUT ROWID;
CREATE TABLE t_gpu_device(device INTEGER PRIMARY KEY, name TEXT, capability INTEGER, multiprocessors INTEGER,
  threads_per_multiprocessor INTEGER, registers_per_multiprocessor INTEGER, shared_per_multiprocessor INTEGER,
  memory_bytes INTEGER, l2_bytes INTEGER, clock_khz INTEGER, memory_clock_khz INTEGER, memory_bus_bits INTEGER,
  peak_bytes_per_s INTEGER, peak_flops INTEGER, copy_bytes_per_s INTEGER);
CREATE TABLE t_cache_event(id INTEGER PRIMARY KEY, compile_id INTEGER, cache TEXT, outcome TEXT, key TEXT, reason TEXT,
  saved_ns INTEGER, time_ns INTEGER);
CREATE TABLE t_artifact(id INTEGER PRIMARY KEY, compile_id INTEGER, graph_id INTEGER, kind TEXT, name TEXT, format TEXT,
  text TEXT, detail TEXT, damaged TEXT, time_ns INTEGER, thread INTEGER);
CREATE INDEX t_artifact_by_compile ON t_artifact(compile_id);
CREATE TABLE t_flow(id INTEGER PRIMARY KEY, kind TEXT, name TEXT, from_thread INTEGER, from_ns INTEGER, to_thread INTEGER,
  to_ns INTEGER, from_event INTEGER, to_event INTEGER);
CREATE INDEX t_flow_by_target ON t_flow(to_event) WHERE to_event IS NOT NULL;
CREATE TABLE t_saved_graph(graph_id INTEGER PRIMARY KEY, format INTEGER, text TEXT);
CREATE TABLE t_numerics(graph_id INTEGER, node_id INTEGER, output INTEGER, dtype TEXT, elements INTEGER, eager_abs REAL, eager_rel REAL,
  compiled_abs REAL, compiled_rel REAL, difference_abs REAL, difference_ulp REAL, local_abs REAL, magnitude REAL, mismatches INTEGER,
  is_divergent INTEGER, note TEXT, PRIMARY KEY(node_id, output)) WITHOUT ROWID;
CREATE INDEX t_numerics_by_graph ON t_numerics(graph_id);
CREATE TABLE t_cuda_graph(id INTEGER PRIMARY KEY, compile_id INTEGER, event TEXT, number INTEGER, reason TEXT, replaces INTEGER,
  device TEXT, nodes INTEGER, stretches INTEGER, plain_steps INTEGER, plain_reason TEXT, static_inputs INTEGER,
  copied_inputs INTEGER, copied_bytes INTEGER, kept_bytes INTEGER, time_ns INTEGER, dur_ns INTEGER, kernel_id INTEGER,
  pool_bytes INTEGER);
CREATE TABLE t_cuda_graph_node(graph_id INTEGER, stretch INTEGER, first_node INTEGER, node_count INTEGER, group_id INTEGER,
  kernel_id INTEGER, PRIMARY KEY(graph_id, stretch, first_node)) WITHOUT ROWID;
CREATE TABLE t_source_file(id INTEGER PRIMARY KEY, path TEXT UNIQUE, text TEXT, bytes INTEGER, hash TEXT,
  truncated INTEGER, time_ns INTEGER);
CREATE TABLE t_loss(what TEXT PRIMARY KEY, count INTEGER, detail TEXT, first_ns INTEGER, last_ns INTEGER) WITHOUT ROWID;
CREATE TABLE t_pyramid(track INTEGER, thread INTEGER, level INTEGER, bucket INTEGER, count INTEGER, busy_ns INTEGER,
  max_dur_ns INTEGER, example_id INTEGER, PRIMARY KEY(track, thread, level, bucket)) WITHOUT ROWID;
CREATE TABLE t_long(track INTEGER, thread INTEGER, level INTEGER, start_ns INTEGER, dur_ns INTEGER, id INTEGER,
  PRIMARY KEY(track, thread, level, start_ns, id)) WITHOUT ROWID;
)sql";
}

}  // namespace fusebox::session
