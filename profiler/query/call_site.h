#pragma once

#include <optional>
#include <string>

#include "profiler/query/advice.h"

/// Where the program calls and compiles the code whose guard failed, and diffs of these lines. What cannot be found on
/// one line gives no diff.
namespace fusebox::query {

/// "x" of L['x'] and of PyTorch's "tensor 'x' …"; empty if the source is no parameter or local itself.
std::string localOf(const GuardProblem& problem);

/// Where the compiled function was called, and the argument that the guarded parameter got there.
struct CallSite {
  std::string file, lineText, argument;
  int line = 0;
  size_t begin = 0, end = 0;  ///< of the argument in the line
};

/// Of the user's innermost caller; none where the call was not recorded or spans lines, or where it cannot be told from others on its line.
std::optional<CallSite> callSite(const GuardProblem& problem, Sources& sources);

/// Says whether the call comes from compiled code, and where the program enters that.
void findEntrance(const session::Reader& reader, Sources& sources, GuardProblem& problem);

/// The diff that puts `before` and `after` around the argument at the call site ("", ".contiguous()").
std::string rewriteArgument(const GuardProblem& problem, Sources& sources, const std::string& before,
                            const std::string& after);

/// The diff that adds `option` ("dynamic=True") where the code is compiled: at its decorator, or at the only call of
/// torch.compile in the program; none if `keyword` is there already.
std::string compileWith(const GuardProblem& problem, Sources& sources, const std::string& option,
                        const std::string& keyword);

/// The diff that gives the first DataLoader without it drop_last=True.
std::string dropLast(Sources& sources);

}  // namespace fusebox::query
