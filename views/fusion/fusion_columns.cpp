#include "views/fusion/fusion_columns.h"

#include "views/fusion/fusion_view.h"

namespace fusebox::views {

std::vector<TableColumn> decisionColumns() {
  return {{FusionView::tr("Decision"), FusionView::tr("Whether the two became one kernel")},
          {FusionView::tr("Kind"),
           FusionView::tr("vertical: the second reads what the first writes; horizontal: both read the same; epilogue "
                          "and prologue: pointwise work after or before a reduction")},
          {FusionView::tr("First"), {}},
          {FusionView::tr("Second"), {}},
          {FusionView::tr("Saves"), FusionView::tr("Bytes of memory traffic that fusing saves"), true},
          {FusionView::tr("Reason"), {}},
          {FusionView::tr("Your wish"), FusionView::tr("Used when the graph is compiled again")}};
}

std::vector<TableColumn> groupColumns() {
  return {{FusionView::tr("Kernel"),
           FusionView::tr("What the nodes of the group became: a generated kernel, or a call of an operator")},
          {FusionView::tr("Kind"), {}},
          {FusionView::tr("Nodes"), {}, true},
          {FusionView::tr("Reads"), FusionView::tr("Bytes that one launch reads"), true},
          {FusionView::tr("Writes"), FusionView::tr("Bytes that one launch writes"), true},
          {FusionView::tr("Saved"), FusionView::tr("Bytes of memory traffic that fusing saved"), true},
          {FusionView::tr("Time"), FusionView::tr("Of all launches"), true},
          {FusionView::tr("Reason"), FusionView::tr("Why no kernel was generated")}};
}

std::vector<TableColumn> bufferColumns() {
  return {{FusionView::tr("Buffer"), {}},
          {FusionView::tr("Kind"),
           FusionView::tr("planned: a place in the graph's pool; owned: memory of its own, as results have")},
          {FusionView::tr("Type"), {}},
          {FusionView::tr("Shape"), {}},
          {FusionView::tr("Bytes"), {}, true},
          {FusionView::tr("Lives"), FusionView::tr("First and last group that touches it"), true},
          {FusionView::tr("Line"), {}}};
}

std::vector<TableColumn> numericsColumns() {
  return {
      {FusionView::tr("Node"), {}},
      {FusionView::tr("Operator"), {}},
      {FusionView::tr("Type"), {}},
      {FusionView::tr("Compiled"),
       FusionView::tr("Largest error of the compiled graph against float64, relative to the largest value"), true},
      {FusionView::tr("Eager"), FusionView::tr("The same of eager PyTorch"), true},
      {FusionView::tr("Alone"),
       FusionView::tr("The node's own part: its compiled error when it starts from eager's inputs. Measured for the "
                      "least exact nodes"),
       true},
      {FusionView::tr("ULP"),
       FusionView::tr("Compiled against eager in units in the last place, over values that are not almost cancelled"),
       true},
      {FusionView::tr("Note"), {}}};
}

std::vector<TableColumn> resultColumns() {
  return {
      {FusionView::tr("Compiled as"), {}},
      {FusionView::tr("Median"), FusionView::tr("Of 20 runs, taken in turns"), true},
      {FusionView::tr("Fastest"), {}, true},
      {FusionView::tr("Launches"), FusionView::tr("Generated kernels launched in one run"), true},
      {FusionView::tr("Extern calls"), {}, true},
      {FusionView::tr("Traffic"), FusionView::tr("Bytes that all kernels and calls read and write in one run"), true},
      {FusionView::tr("Error"),
       FusionView::tr("Largest difference from eager's results, relative to the largest value"), true}};
}

}  // namespace fusebox::views
