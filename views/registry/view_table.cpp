#include "views/registry/view_table.h"

#include "views/artifacts/artifacts_view.h"
#include "views/breaks/breaks_view.h"
#include "views/cuda_graphs/cuda_graphs_view.h"
#include "views/find/find_view.h"
#include "views/fusion/fusion_view.h"
#include "views/graph/graph_view.h"
#include "views/guards/guards_view.h"
#include "views/kernels/kernels_view.h"
#include "views/memory/memory_view.h"
#include "views/overview/overview_view.h"
#include "views/query/query_view.h"
#include "views/recompiles/recompiles_view.h"
#include "views/slowness/slowness_view.h"
#include "views/source/source_view.h"
#include "views/timeline/timeline_view.h"

namespace fusebox::views {
namespace {

template <class T>
View* make(const ViewContext& context) {
  return new T(context);
}

constexpr ViewEntry kViews[] = {{make<OverviewView>}, {make<SourceView>},  {make<GraphView>},
                                {make<GuardsView>},   {make<KernelsView>}, {make<TimelineView>},
                                {make<RecompilesView>}, {make<BreaksView>}, {make<SlownessView>},
                                {make<MemoryView>},   {make<CudaGraphsView>}, {make<FusionView>},
                                {make<ArtifactsView>}, {make<FindView>}, {make<QueryView>}};

}  // namespace

std::span<const ViewEntry> viewTable() { return kViews; }

}  // namespace fusebox::views
