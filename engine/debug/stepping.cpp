#include "engine/debug/stepping.h"

namespace fusebox::debug {

int nesting(const Event& event) {
  switch (event.kind) {
    case Kind::Pass:
      return event.depth;
    case Kind::Fusion:
      return 2;
    case Kind::KernelCompile:
      return 1;
    default:
      return 0;
  }
}

namespace {

bool isLineOf(Kind kind) {
  return kind == Kind::Line || kind == Kind::Compile || kind == Kind::Recompile || kind == Kind::GuardFailure;
}

}  // namespace

bool Step::endsAt(const Event& event, std::thread::id on) const {
  if (on != thread && event.kind != Kind::KernelCompile) return false;
  switch (event.kind) {
    case Kind::Compile:
    case Kind::GraphBreak:
    case Kind::GuardFailure:
    case Kind::Recompile:
    case Kind::Error:
      return true;
    case Kind::KernelLaunch:
      return kind == Kind::KernelLaunch;
    case Kind::Line:
      if (kind != Kind::Line) return true;
      if (how == How::Into) return byInstruction || event.frame != frame || event.line != line;
      if (event.depth != depth) return event.depth < depth;
      return how == How::Over && (byInstruction || event.frame != frame || event.line != line);
    default:
      break;
  }
  // From the program into the pipeline: its stages, in order, unless the step looks into everything.
  if (isLineOf(kind) || kind == Kind::GraphBreak || kind == Kind::KernelLaunch)
    return event.kind == Kind::Pass && event.depth == 0;
  const int level = nesting(event);
  if (how == How::Into) return true;
  return how == How::Over ? level <= depth : level < depth;
}

uint32_t Step::kinds() const {
  const uint32_t all = (1u << kKinds) - 1;
  return kind == Kind::KernelLaunch ? all : all & ~bit(Kind::KernelLaunch);
}

}  // namespace fusebox::debug
