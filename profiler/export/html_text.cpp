#include "profiler/export/html_text.h"

namespace fusebox::exporting {

const std::string_view kHtmlStyle = R"(<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: #0b6bcb; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; white-space: nowrap; }
td, th { padding: .2rem .6rem .2rem 0; vertical-align: top; border-bottom: 1px solid var(--soft); overflow-wrap: break-word; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font: 12px/1.4 ui-monospace, monospace; } pre { background: var(--soft); padding: .6rem; overflow: auto; max-height: 32rem; }
.graph { background: #fff; overflow: auto; max-height: 48rem; } .graph svg { max-width: 100%; height: auto; }
h3 { font-size: 1rem; font-weight: 600; }
.bar { display: inline-block; height: .6rem; background: var(--accent); } .note { opacity: .7; }
</style>)";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace fusebox::exporting
