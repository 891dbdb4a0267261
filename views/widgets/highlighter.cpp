#include "views/widgets/highlighter.h"

#include <QTextDocument>

#include <span>

namespace fusebox::views {
namespace {

struct RuleText {
  const char* pattern;
  Token token;
  Token second = Token::Count;  ///< of what the group "second" found: what begins first decides between strings and comments
};

// Later rules win over earlier ones.
constexpr RuleText kPython[] = {
    {R"(\b\d[\d_]*(\.\d+)?([eE][+-]?\d+)?j?\b|\b0[xob][\da-fA-F_]+\b)", Token::CodeNumber},
    {R"(\b(False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|match|case)\b)",
     Token::CodeKeyword},
    {R"(\b(self|cls|super|print|len|range|int|float|str|list|dict|tuple|set|bool)\b)", Token::CodeType},
    {R"((?<=\bdef )\w+|(?<=\bclass )\w+|@[\w.]+)", Token::CodeName},
    {R"("([^"\\]|\\.)*"|'([^'\\]|\\.)*'|(?<second>#[^\n]*))", Token::CodeString, Token::CodeComment}};

constexpr RuleText kCpp[] = {
    {R"(\b(0[xX][\da-fA-F']+|\d[\d']*(\.\d+)?([eE][+-]?\d+)?)[uUlLfF]*\b)", Token::CodeNumber},
    {R"(\b(alignas|auto|break|case|catch|class|const|constexpr|continue|default|delete|do|else|enum|explicit|extern|for|friend|goto|if|inline|namespace|new|noexcept|operator|private|protected|public|return|sizeof|static|static_cast|reinterpret_cast|struct|switch|template|this|throw|try|typedef|typename|union|using|virtual|volatile|while|__global__|__device__|__shared__|__restrict__)\b)",
     Token::CodeKeyword},
    {R"(\b(bool|char|double|float|half|int|long|short|signed|unsigned|void|size_t|u?int(8|16|32|64)_t|bfloat16|std|at|c10)\b)", Token::CodeType},
    {R"(^\s*#\s*\w+)", Token::CodeName},
    {R"("([^"\\]|\\.)*"|'([^'\\]|\\.)+'|(?<second>//[^\n]*|/\*.*?(\*/|$)))", Token::CodeString, Token::CodeComment}};

constexpr RuleText kLoopIr[] = {
    {R"((?<![\w%])-?\d+(\.\d+)?(e[+-]?\d+)?\b)", Token::CodeNumber},
    {R"(\b(for|in|loop|load|store|reduce|kernel|group|let|body|range|parallel|vector|buffer|index|if|else|where|accumulate|return|input|output|var|extern|call)\b)",
     Token::CodeKeyword},
    {R"(\b(float(16|32|64)|bfloat16|int(8|16|32|64)|uint8|bool|[fiu](8|16|32|64)|bf16)\b)", Token::CodeType},
    {R"(%\w+|\bbuf\d+\b|\barg\d+(_\d+)?\b)", Token::CodeName},
    {R"("[^"]*"|(?<second>(#|//|;)[^\n]*))", Token::CodeString, Token::CodeComment}};

constexpr RuleText kLlvm[] = {
    {R"((?<![\w.%@])-?(0x[\dA-Fa-f]+|\d+(\.\d+)?(e[+-]?\d+)?)\b)", Token::CodeNumber},
    {R"(\b(define|declare|ret|br|switch|phi|select|load|store|getelementptr|inbounds|call|tail|add|fadd|sub|fsub|mul|fmul|fdiv|sdiv|udiv|srem|urem|icmp|fcmp|zext|sext|trunc|fptrunc|fpext|bitcast|ptrtoint|inttoptr|alloca|extractelement|insertelement|shufflevector|extractvalue|insertvalue|and|or|xor|shl|lshr|ashr|sitofp|uitofp|fptosi|fptoui|fneg|atomicrmw|fence|unreachable|to|align|label|nsw|nuw|fast|contract|reassoc|nnan|ninf|nsz|arcp|afn|eq|ne|slt|sgt|sle|sge|ult|ugt|ule|uge|oeq|olt|ogt|ole|oge|une|private|internal|constant|global|target|attributes|source_filename|noundef|nocapture|readonly|noalias|local_unnamed_addr|dso_local)\b)",
     Token::CodeKeyword},
    {R"(\b(i\d+|float|double|half|bfloat|void|ptr|x86_fp80)\b|<\d+ x [\w]+>)", Token::CodeType},
    {R"([%@][\w.$-]+)", Token::CodeName},
    {R"(![\w.]+)", Token::CodeComment},
    {R"("[^"]*"|(?<second>;[^\n]*))", Token::CodeString, Token::CodeComment}};

constexpr RuleText kAssembly[] = {
    {R"([$]?-?\b(0x[\da-fA-F]+|\d+)\b)", Token::CodeNumber},
    {R"(^\s+[a-z][\w.]*)", Token::CodeKeyword},
    {R"(%[a-z]\w*|\b[xyz]mm\d+\b|\b[re]?(ax|bx|cx|dx|si|di|sp|bp|ip)\b|\br\d+[dwb]?\b|\bk[0-7]\b)", Token::CodeName},
    {R"(^[\w.$@]+:)", Token::CodeType},
    {R"(^\s*\.[a-z_]\w*)", Token::CodeComment},
    {R"("[^"]*"|(?<second>(#|//)[^\n]*))", Token::CodeString, Token::CodeComment}};

constexpr RuleText kJson[] = {
    {R"(-?\b\d+(\.\d+)?([eE][+-]?\d+)?\b)", Token::CodeNumber},
    {R"(\b(true|false|null)\b)", Token::CodeKeyword},
    {R"("([^"\\]|\\.)*")", Token::CodeString},
    {R"("([^"\\]|\\.)*"(?=\s*:))", Token::CodeName}};

std::span<const RuleText> rulesOf(Language language) {
  switch (language) {
    case Language::Python: return kPython;
    case Language::Cpp: return kCpp;
    case Language::LoopIr: return kLoopIr;
    case Language::LlvmIr: return kLlvm;
    case Language::Assembly: return kAssembly;
    case Language::Json: return kJson;
    case Language::Plain: break;
  }
  return {};
}

constexpr int kLongText = 3000;  // lines
constexpr int kNotShown = 4;    // state of a line that is coloured once it is seen
constexpr int kLongestLine = 4000;  // beyond this a line is machine output that nobody reads coloured

}  // namespace

Highlighter::Highlighter(Language language, QTextDocument* document)
    : QSyntaxHighlighter(document), language_(Language::Plain) {
  setLanguage(language);
  connect(&Theme::instance(), &Theme::changed, this, &QSyntaxHighlighter::rehighlight);
}

void Highlighter::setLanguage(Language language) {
  if (language == language_) return;
  language_ = language;
  rules_.clear();
  for (const RuleText& rule : rulesOf(language)) {
    rules_.append({QRegularExpression(QString::fromLatin1(rule.pattern)), rule.token, rule.second});
  }
  rehighlight();
}

bool Highlighter::isLong() const { return language_ != Language::Python && document()->blockCount() > kLongText; }

void Highlighter::showLines(int first, int last) {
  first_ = first;
  last_ = last;
  if (!isLong()) return;
  for (QTextBlock line = document()->findBlockByNumber(first); line.isValid() && line.blockNumber() <= last; line = line.next()) {
    if (line.userState() == kNotShown) rehighlightBlock(line);
  }
}

void Highlighter::highlightBlock(const QString& text) {
  const int line = currentBlock().blockNumber();
  const bool isSeen = (line >= first_ && line <= last_) || !isLong();
  setCurrentBlockState(isSeen ? 0 : kNotShown);
  if (!isSeen) return;
  if (text.size() > kLongestLine) return;
  for (const Rule& rule : rules_) {
    for (auto it = rule.pattern.globalMatch(text); it.hasNext();) {
      const auto match = it.next();
      const bool isSecond = rule.second != Token::Count && match.hasCaptured(QStringLiteral("second"));
      setFormat(static_cast<int>(match.capturedStart()), static_cast<int>(match.capturedLength()), themed(isSecond ? rule.second : rule.token));
    }
  }
  if (language_ == Language::Python) highlightPythonStrings(text);
}

/// Triple-quoted strings span lines: state 1 is inside """, 2 inside '''.
void Highlighter::highlightPythonStrings(const QString& text) {
  const QString quotes[] = {QStringLiteral("\"\"\""), QStringLiteral("'''")};
  int state = std::max(previousBlockState(), 0);
  qsizetype at = 0;
  while (at < text.size()) {
    if (state == 0) {
      const qsizetype a = text.indexOf(quotes[0], at), b = text.indexOf(quotes[1], at);
      const qsizetype start = a < 0 ? b : b < 0 ? a : std::min(a, b);
      const qsizetype comment = text.indexOf(QLatin1Char('#'), at);
      if (start < 0 || (comment >= 0 && comment < start)) break;
      state = start == a ? 1 : 2;
      setFormat(static_cast<int>(start), 3, themed(Token::CodeString));
      at = start + 3;
      continue;
    }
    const qsizetype end = text.indexOf(quotes[state - 1], at);
    const qsizetype until = end < 0 ? text.size() : end + 3;
    setFormat(static_cast<int>(at), static_cast<int>(until - at), themed(Token::CodeString));
    at = until;
    if (end < 0) break;
    state = 0;
  }
  setCurrentBlockState(state);
}

}  // namespace fusebox::views
