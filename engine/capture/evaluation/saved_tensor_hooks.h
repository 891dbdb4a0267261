#pragma once

#include <cstdint>

namespace fusebox::capture {

/// Whose default hooks on saved tensors (torch.autograd.graph.saved_tensors_hooks) are asked for.
enum class SavedTensorHooks : int8_t {
  None = 0,
  Programs = 1,  ///< may give back other numbers than they were given
  Torchs = -1    ///< those of checkpoints and save_on_cpu, which do not
};

/// Those that are set in this thread. With the GIL.
SavedTensorHooks savedTensorHooksSet();
/// Those that this thread had when capture began, which sets them aside until the graph runs.
SavedTensorHooks savedTensorHooksWaiting();

}  // namespace fusebox::capture
