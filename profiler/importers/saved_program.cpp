#include "profiler/importers/saved_program.h"

namespace fusebox::importing {

int64_t putProgram(SessionBuilder& session, const std::string& name, const std::string& backend) {
  const int64_t frame = session.newId(RowKind::Frame), compile = session.newId(RowKind::Compile), at = session.time(0);
  session.put(rows::Frame{.id = frame, .name = name, .status = std::string("saved"), .first_seen_ns = at});
  session.put(rows::Compile{.id = compile, .frame_id = frame, .kind = std::string("graph"), .backend = backend, .start_ns = at, .end_ns = at,
      .status = std::string("saved")});
  return compile;
}

}  // namespace fusebox::importing
