#pragma once

namespace fusebox::capture {

/// Whether the thread has default hooks on saved tensors (torch.autograd.graph.saved_tensors_hooks), which capture sets aside until the graph runs.
bool savedTensorHooksWait();

}  // namespace fusebox::capture
