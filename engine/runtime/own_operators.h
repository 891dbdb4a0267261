#pragma once

namespace fusebox::runtime {

/// The engine's own operators, as the dispatcher has them for graphs that run operator by operator and for extern calls:
///   fusebox::exact_bmm(a, b): the batched product in the operands' type, float32 never as TF32 or bfloat16 whatever the program allows
///   fusebox::uniform(seed, stream, size): the numbers of inductor::Op::RandUniform (codegen/cpu/philox.h) for counters from stream * 2^40 on
///   fusebox::overwritten(now, before): an alias of `now` that has the history of `before` (graph::kOverwritten)
///   fusebox::laid_out(self, stride): a copy that lies in memory as strides say, be it that elements share places
/// Registers them at its first call; any thread.
void registerOwnOperators();

}  // namespace fusebox::runtime
