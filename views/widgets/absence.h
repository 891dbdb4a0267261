#pragma once

#include <QString>

#include "profiler/query/holdings.h"

namespace fusebox::views {

/// What an empty list says where the session's source cannot fill it.
struct Absence {
  QString headline, hint;
};
Absence absenceOf(const query::Holdings& holdings, query::Holding what);

}  // namespace fusebox::views
