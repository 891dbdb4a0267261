#pragma once

#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::session {

struct RankFile {
  std::string rank, path;
};

/// Sessions of the other ranks of a run, by rank: they lie beside the session of one ("train-rank1.fusebox" beside "train-rank0.fusebox").
std::vector<RankFile> otherRanks(const Reader& reader);

}  // namespace fusebox::session
