#pragma once

#include <cstdint>
#include <string>

namespace fusebox::session {

/// Every way a row is written, in the order of the table in row_statements.cpp; rows.h has the columns of each.
enum class RowKind : uint8_t {
  Info, Thread, Frame, FrameStatus, Compile, CompileCache, CompileEnd, Stage, GraphBreak, Guard, GuardFailure, Symbol, Relation, Specialisation, Graph, Stack, Node, Edge,
  NodeOrigin, FusionGroup, FusionGroupPlace, FusionMember, FusionDecision, Buffer, Kernel, KernelPlace, KernelCode, KernelBinary, LaunchStats, Launch, Call, CallStats,
  Block, CpuEvent, GpuEvent, GpuShape, GpuStats, GpuShapeStats, GpuDevice, GpuDeviceCopy, GpuCounter, GpuSampling, GpuSample, GpuSampleSum, CacheEvent, Artifact, Flow, SavedGraph, Numerics, CudaGraph, CudaGraphNode, SourceFile, Loss, Pyramid, Long,
  Count,
};
std::string rowSql(RowKind kind);

}  // namespace fusebox::session
