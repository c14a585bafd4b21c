// SPDX-License-Identifier: Apache-2.0
#include "commands/lm/loaded_lm.h"

#include <utility>

#include "commands/lm/lm_memory.h"
#include "commands/lm/text_tokenizer.h"
#include "commands/run/found_model.h"

namespace gossamer::commands {

Result<LoadedLm> load_lm(const run::NodeHost& host, const LmModules& modules, const std::string& directory) {
  const auto path = find_model(host, directory);
  if (!path.ok()) return path.error();
  const auto opened = pipeline::open_lm_model(host.disk, *path);
  if (!opened.ok()) return model_error(host, directory, opened.error());
  auto tokenizer = pipeline::tokenizer_of(
      host.disk, *opened, [&](const std::string& name, std::string model, const std::string& where) {
        return load_tokenizer(host, modules.pieces, name, std::move(model), where);
      });
  if (!tokenizer.ok()) return model_error(host, directory, tokenizer.error());
  if (auto fits = check_answering_memory(host, *path, opened->header); !fits.ok()) return fits.error();
  const auto make_stage = modules.stages(host);
  if (!make_stage.ok()) return make_stage.error();
  const pipeline::LmShape& shape = opened->header.about.shape;
  auto model = (*make_stage)({.shape = shape,
                              .cut = {.first = 0, .last = shape.layers, .layers = shape.layers},
                              .precision = precision_of(opened->header),
                              .threads = host.compute.workers()});
  if (!model.ok()) return model.error();
  if (auto loaded = pipeline::load_lm_model(host.disk, *opened, **model); !loaded.ok())
    return model_error(host, directory, loaded.error());
  return LoadedLm{
      .about = opened->header.about, .tokenizer = *std::move(tokenizer), .model = *std::move(model)};
}

}  // namespace gossamer::commands
