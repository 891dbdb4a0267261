#include "views/widgets/absence.h"

#include <QCoreApplication>

#include "views/widgets/text.h"

namespace fusebox::views {
namespace {

struct Words {
  Q_DECLARE_TR_FUNCTIONS(fusebox::views::Absence)
 public:
  static QString headline(query::Holding what) {
    using query::Holding;
    switch (what) {
      case Holding::Breaks: return tr("This kind of file does not hold graph breaks");
      case Holding::Recompiles: return tr("This kind of file does not hold recompiles");
      case Holding::Guards: return tr("This kind of file does not hold guards");
      case Holding::Graphs: return tr("This kind of file does not hold graphs");
      case Holding::Kernels: return tr("This kind of file does not hold generated kernels");
      case Holding::FusionDecisions: return tr("This kind of file does not hold fusion decisions");
      case Holding::MemoryPlans: return tr("This kind of file does not hold memory plans");
      case Holding::CompileTimes: return tr("This kind of file does not hold the compiler's stages");
      case Holding::Launches: return tr("This recording does not hold the kernels that ran");
      case Holding::Calls: return tr("This recording does not hold the calls of compiled code");
      case Holding::RunTimes: return tr("This kind of file does not hold run times");
    }
    return {};
  }
  static QString hint(const query::Holdings& holdings) {
    if (holdings.source == "eager") return tr("It was recorded without a compiler; “fusebox run script.py” records the program with one.");
    if (holdings.source == "stock")
      return tr("It was recorded under PyTorch's own compiler, which does not tell; “fusebox run script.py” records what Fusebox's engine does.");
    return tr("It is of the format “%1”; “fusebox run script.py” records the program with all that the compiler does.").arg(str(holdings.source));
  }
};

}  // namespace

Absence absenceOf(const query::Holdings& holdings, query::Holding what) { return {Words::headline(what), Words::hint(holdings)}; }

}  // namespace fusebox::views
