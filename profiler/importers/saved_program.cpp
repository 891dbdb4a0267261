#include "profiler/importers/saved_program.h"

namespace fusebox::importing {

int64_t putProgram(SessionBuilder& session, const std::string& name, const std::string& backend) {
  const int64_t frame = session.newId(RowKind::Frame), compile = session.newId(RowKind::Compile), at = session.time(0);
  session.put(RowKind::Frame, {frame, {}, name, {}, {}, {}, {}, std::string("compiled"), {}, at});
  session.put(RowKind::Compile, {compile,
                                 frame,
                                 {},
                                 {},
                                 std::string("graph"),
                                 backend,
                                 {},
                                 {},
                                 at,
                                 at,
                                 std::string("ok"),
                                 {},
                                 {},
                                 {},
                                 {},
                                 {},
                                 {},
                                 {}});
  return compile;
}

}  // namespace fusebox::importing
