#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fusebox::importing {

/// An expression of TorchScript's printed code.
struct ScriptExpression {
  enum class Kind : uint8_t {
    Name,       ///< text
    Literal,    ///< text: a number, a string with its quotes, True, None
    Attribute,  ///< parts[0] . text
    Call,       ///< parts[0] (parts[1], …); keywords[i] names parts[i + 1], or is empty
    Subscript,  ///< parts[0] [parts[1]]
    List,
    Tuple,
    Other,  ///< anything else, as an operator `text` on its parts
  } kind = Kind::Literal;
  std::string text;
  std::vector<ScriptExpression> parts;
  std::vector<std::string> keywords;
};

struct ScriptStatement {
  enum class Kind : uint8_t { Assign, Evaluate, Return, If, Loop, Pass } kind = Kind::Pass;
  std::vector<std::string> targets;  ///< Assign; the variable of a Loop
  ScriptExpression value;            ///< what is assigned, returned, asked or looped over
  std::vector<ScriptStatement> body, otherwise;
  int64_t line = 0;
};

struct ScriptFunction {
  std::vector<std::string> parameters, types;
  std::vector<ScriptExpression> defaults;  ///< by parameter; an empty literal: none
  std::vector<ScriptStatement> body;
  std::string file;
  int64_t line = 0;
};

struct ScriptClass {
  std::unordered_map<std::string, std::string> fields;     ///< name → type
  std::unordered_map<std::string, std::string> constants;  ///< Final fields: name → value
  std::unordered_map<std::string, ScriptFunction> methods;
};

/// Everything that the code files of a TorchScript archive define, by qualified name
/// (__torch__.torch.nn.modules.conv.Conv2d).
struct ScriptCode {
  std::unordered_map<std::string, ScriptClass> classes;
  std::unordered_map<std::string, ScriptFunction> functions;
  int64_t unread = 0;  ///< statements that were not understood
};

/// Adds what `text` defines; `file` is code/__torch__/….py. Read as text, never run; depth and size are bounded.
void parseScriptCode(const std::string& file, std::string_view text, ScriptCode& into);

}  // namespace fusebox::importing
