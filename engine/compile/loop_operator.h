#pragma once

namespace fusebox {

/// The dispatcher's operator of a loop that data end (torch's while_loop):
///   fusebox::while_loop(Tensor[] carried, Tensor[] others, str condition, str body, SymInt[] sizes) -> Tensor[]
/// `condition` and `body` are saved graphs (graph/serialize.h) without constants over the placeholders `carried` + `others`; the one gives a bool without
/// dimensions, the other what is carried to the next turn, of the same types, sizes and dense rows. `sizes`: values of the symbols (graph::symbolsOf) of the one, and of the other.
/// The results share no memory with the arguments. Both graphs are compiled when they first run in a process, and found by their text after that.
/// No gradients.
///   fusebox::carried(Tensor[] initial) -> Tensor[]
/// what the functions of a loop are traced with: like the first values, of which nothing is known but how they lie. Registers both at its first call; any thread.
void registerLoopOperator();

}  // namespace fusebox
