// SPDX-License-Identifier: Apache-2.0
#include "learn/sparse/panel_softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

#include "base/aligned_array.h"
#include "base/check.h"

namespace gossamer::sparse {
namespace {

using kernels::kPanelRows;

// A factor larger than what the roundings of a sum of squares take away.
constexpr float kRoundUp = 1 + 0x1p-10F;

template <class E>
class PanelSoftmaxOf final : public PanelSoftmax {
 public:
  PanelSoftmaxOf(const OutputLayer& layer, const PanelSoftmaxOptions& options,
                 const kernels::Kernels& kernels)
      : layer_(layer),
        kernels_(kernels),
        products_(kernels.isa, options.shape),
        packed_hidden_(products_.packed_size()),
        packed_scaled_(products_.packed_size()) {
    for (int worker = 0; worker < options.workers; ++worker) shares_.emplace_back(products_);
  }

  void pack_hidden(const BatchState& batch, host::Range samples) override {
    products_.pack_hidden(batch.last().h.data(), packed_hidden_.data(), {samples.begin, samples.end});
  }
  void pack_scaled_hidden(const BatchState& batch, host::Range samples) override {
    products_.pack_scaled_hidden(batch.last().h.data(), batch.inv.data(), packed_scaled_.data(),
                                 {samples.begin, samples.end});
  }

  void forward(int worker, const ActiveSet& active, const BatchState& batch) override {
    Share& share = shares_[static_cast<std::size_t>(worker)];
    const auto [hidden, padded] = products_.shape();
    const std::size_t panels = panels_of(active);
    for (std::size_t slot = 0; slot < std::min(kPanelRows, active.size()); ++slot)
      prefetch_label(active, slot);
    share.reserve(panels * kPanelRows * padded);
    RowScores* const recorded =
        layer_.scores == nullptr ? nullptr : &(*layer_.scores)[static_cast<std::size_t>(worker)];
    if (recorded != nullptr) recorded->clear();
    std::fill_n(share.dh.data(), padded * hidden, 0.0F);
    std::fill_n(share.sums.data(), padded, 0.0F);
    for (std::size_t panel = 0; panel < panels; ++panel) {
      E* const p = share.probabilities.data() + panel * kPanelRows * padded;
      gather(share, active, panel);
      float* const scores = scores_of(share, p);
      products_.scores(share.panel.data(), packed_hidden_.data(), scores);
      probabilities(share, active, batch, {.panel = panel, .scores = scores, .p = p, .recorded = recorded});
      products_.hidden_gradient(
          {.p = p, .panel = share.panel.data(), .scratch = share.scratch.data(), .dh = share.dh.data()});
    }
  }

  [[nodiscard]] const float* sums(int worker) const override {
    return shares_[static_cast<std::size_t>(worker)].sums.data();
  }
  [[nodiscard]] const float* hidden_gradient(int worker) const override {
    return shares_[static_cast<std::size_t>(worker)].dh.data();
  }

  void backward(int worker, const ActiveSet& active, const BatchState& batch) override {
    Share& share = shares_[static_cast<std::size_t>(worker)];
    const auto [hidden, padded] = products_.shape();
    const std::size_t panels = panels_of(active);
    for (std::size_t slot = 0; slot < std::min(kUpdateAhead, active.size()); ++slot) {
      prefetch_update(active.ids()[slot]);
    }
    for (std::size_t panel = 0; panel < panels; ++panel) {
      const E* const p = share.probabilities.data() + panel * kPanelRows * padded;
      products_.weight_gradient(p, packed_scaled_.data(), share.dw.data());
      const std::size_t rows = rows_of(active, panel);
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t slot = panel * kPanelRows + i;
        if (slot + kUpdateAhead < active.size()) prefetch_update(active.ids()[slot + kUpdateAhead]);
        const float dbias = kernels::dot(kernels_, p + i * padded, batch.inv.data(), padded);
        update(share, active, slot, {.dw = share.dw.data() + i * hidden, .dbias = dbias}, batch);
      }
    }
  }

  [[nodiscard]] kernels::Element element() const override {
    return std::is_same_v<E, float> ? kernels::Element::kF32 : kernels::Element::kBf16;
  }

  [[nodiscard]] std::uint64_t bytes() const override {
    std::uint64_t total = sizeof(E) * (packed_hidden_.size() + packed_scaled_.size());
    for (const Share& share : shares_) total += share.bytes();
    return total;
  }

 private:
  // One worker's buffers.
  struct Share {
    explicit Share(const kernels::PanelProducts<E>& products)
        : panel(products.panel_size()),
          scratch(products.scratch_size()),
          scores(std::is_same_v<E, float> ? 0 : kPanelRows * products.shape().batch),
          dw(kPanelRows * products.shape().hidden),
          dh(products.shape().batch * products.shape().hidden),
          sums(products.shape().batch),
          kept(products.shape().batch),
          before(products.shape().hidden) {}

    // Room for that many probabilities; old ones are lost.
    void reserve(std::size_t elements) {
      if (probabilities.size() >= elements) return;
      const std::size_t size = std::max(elements, probabilities.size() + probabilities.size() / 2);
      probabilities = {};
      probabilities = AlignedArray<E>(size);
    }
    [[nodiscard]] std::uint64_t bytes() const {
      return sizeof(E) * (panel.size() + scratch.size() + probabilities.size()) +
             sizeof(float) * (scores.size() + dw.size() + dh.size() + sums.size() + bias.size() +
                              kept.size() + before.size());
    }

    AlignedArray<E> panel;                       // [64][panel stride] weights
    AlignedArray<E> scratch;                     // of the products
    AlignedArray<float> scores;                  // [64][padded] where P has another type
    AlignedArray<float> dw;                      // [64][hidden]
    AlignedArray<float> dh;                      // [padded][hidden]
    AlignedArray<float> sums;                    // [padded]
    AlignedArray<E> probabilities;               // [panels][64][padded]
    std::array<float, kPanelRows> bias{};        // with the correction
    std::array<float, kPanelRows> correction{};  // -ln q
    std::array<float, kPanelRows> own_extra{};   // what it differs by for the samples that have the label
    AlignedArray<float> kept;                    // [padded]
    AlignedArray<float> before;                  // [hidden]: a row before its update, where changes are noted
  };
  struct PanelScores {
    std::size_t panel;
    float* scores;
    E* p;
    RowScores* recorded;  // there too; null: nobody wants it
  };
  struct RowGradient {
    float* dw;
    float dbias;
  };

  [[nodiscard]] static std::size_t panels_of(const ActiveSet& active) {
    return (active.size() + kPanelRows - 1) / kPanelRows;
  }
  // Rows of a panel that exist; the last one may be short.
  [[nodiscard]] static std::size_t rows_of(const ActiveSet& active, std::size_t panel) {
    return std::min(kPanelRows, active.size() - panel * kPanelRows);
  }
  // f32: probabilities take the place of their scores.
  [[nodiscard]] static float* scores_of(Share& share, E* p) {
    if constexpr (std::is_same_v<E, float>) {
      return p;
    } else {
      return share.scores.data();
    }
  }

  struct SlotRow {
    std::size_t slot;
    std::size_t row;  // in its panel
  };
  // LogQ::kExact: for samples that ask, the labels of the first sample that does not ask are certain.
  void correct_for_asking(const Share& share, const ActiveSet& active, const SlotRow& at,
                          float* scores) const {
    const std::size_t asking = layer_.logq.asking();
    if (!layer_.logq.own_labels_certain() || share.correction[at.row] == 0) return;
    if (!std::ranges::binary_search(active.samples(at.slot), static_cast<std::uint32_t>(asking))) return;
    for (std::size_t sample = 0; sample < asking; ++sample) scores[sample] -= share.correction[at.row];
  }

  // Excludes all samples that neither have the label nor found the row; exp_row gives them e^-60.
  void keep_own(Share& share, const ActiveSet& active, std::size_t slot, float* scores) const {
    const std::size_t padded = products_.shape().batch;
    std::copy_n(scores, padded, share.kept.data());
    std::fill_n(scores, padded, kNotScored);
    for (const std::uint32_t sample : active.samples(slot)) scores[sample] = share.kept[sample];
    for (const std::uint32_t sample : active.finders(slot)) scores[sample] = share.kept[sample];
  }

  void prefetch_label(const ActiveSet& active, std::size_t slot) const {
    const std::uint32_t label = active.ids()[slot];
    prefetch_weights(layer_.network.output, label);
    __builtin_prefetch(&layer_.network.bias[label]);
    __builtin_prefetch(&layer_.labels.count[label]);
  }

  void prefetch_update(std::uint32_t label) const {
    Network& network = layer_.network;
    prefetch_row(network.output, label);
    __builtin_prefetch(&network.bias_moment1[label]);
    __builtin_prefetch(&network.bias_moment2[label]);
  }

  // Copies a panel's rows and biases together; missing rows are zero.
  void gather(Share& share, const ActiveSet& active, std::size_t panel) const {
    const std::size_t rows = rows_of(active, panel);
    for (std::size_t i = 0; i < rows; ++i) {
      const std::uint32_t label = active.ids()[panel * kPanelRows + i];
      products_.pack_row(layer_.network.output.weights(label),
                         share.panel.data() + i * products_.panel_stride());
      const std::uint32_t count = layer_.labels.count[label];
      share.correction[i] = active.certain(panel * kPanelRows + i) ? 0 : layer_.logq.correction(count);
      share.own_extra[i] = layer_.logq.own_correction(count) - share.correction[i];
      share.bias[i] = layer_.network.bias[label] + share.correction[i];
    }
    std::fill(share.panel.data() + rows * products_.panel_stride(), share.panel.data() + share.panel.size(),
              E{});
  }

  // Scores into exponentials, row by row, while the next panel's rows are on their way.
  void probabilities(Share& share, const ActiveSet& active, const BatchState& batch,
                     const PanelScores& at) const {
    const std::size_t padded = products_.shape().batch;
    const std::size_t rows = rows_of(active, at.panel);
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t slot = at.panel * kPanelRows + i;
      float* const scores = at.scores + i * padded;
      if (share.own_extra[i] != 0) {
        for (const std::uint32_t sample : active.samples(slot)) scores[sample] += share.own_extra[i];
      }
      if (layer_.logq.asking() > 0) correct_for_asking(share, active, {.slot = slot, .row = i}, scores);
      if (active.own_sets()) keep_own(share, active, slot, scores);
      if (at.recorded != nullptr)
        at.recorded->add(active.ids()[slot], {scores, batch.samples}, share.bias[i]);
      kernels::exp_row(kernels_,
                       {.scores = scores,
                        .bias = share.bias[i],
                        .shift = batch.shift.data(),
                        .sums = share.sums.data(),
                        .n = padded},
                       at.p + i * padded);
      if (slot + kPanelRows < active.size()) prefetch_label(active, slot + kPanelRows);
    }
    std::fill(at.p + rows * padded, at.p + kPanelRows * padded, E{});
  }

  // Subtracts the targets (exact, in f32) and updates the row and its bias.
  void update(Share& share, const ActiveSet& active, std::size_t slot, RowGradient gradient,
              const BatchState& batch) const {
    const float per_sample = 1.0F / static_cast<float>(batch.samples);
    const LayerState& layer = batch.last();
    for (const std::uint32_t sample : active.samples(slot)) {
      const float target = batch.target[sample] * per_sample;
      kernels_.add_scaled(gradient.dw, layer.h.data() + sample * layer.stride, -target, layer.stride);
      gradient.dbias -= target;
    }
    const std::uint32_t label = active.ids()[slot];
    RowTable& output = layer_.network.output;
    const bool noted = layer_.hashed != nullptr && layer_.hashed->follows();
    if (noted) std::copy_n(output.weights(label), output.stride(), share.before.data());
    const auto coefficients = layer_.optimizer.update(kernels_, output, label, gradient.dw);
    layer_.optimizer.update_scalar(layer_.network.bias_scalar(label), gradient.dbias, coefficients);
    if (noted) {
      kernels_.add_scaled(share.before.data(), output.weights(label), -1, output.stride());
      const float squares = kernels_.squared_norm(share.before.data(), output.stride());
      layer_.hashed->note_change(label, std::sqrt(squares) * kRoundUp);
    }
  }

  OutputLayer layer_;
  const kernels::Kernels& kernels_;
  kernels::PanelProducts<E> products_;
  AlignedArray<E> packed_hidden_;
  AlignedArray<E> packed_scaled_;
  std::vector<Share> shares_;
};

}  // namespace

std::unique_ptr<PanelSoftmax> make_panel_softmax(const OutputLayer& layer, const PanelSoftmaxOptions& options,
                                                 const kernels::Kernels& kernels) {
  CHECK(options.workers >= 1, options.workers);
  if (options.element == kernels::Element::kF32) {
    return std::make_unique<PanelSoftmaxOf<float>>(layer, options, kernels);
  }
  return std::make_unique<PanelSoftmaxOf<kernels::Bf16>>(layer, options, kernels);
}

}  // namespace gossamer::sparse
