// Binding: run-time extents become numbers in a plan's launches, and its buffers get their places in one arena.
#pragma once

#include <cstring>
#include <vector>

#include "typegrad/kernels/region.hpp"
#include "typegrad/runtime/error.hpp"

namespace tg {

class Binding {
 public:
  // The plan must outlive its binding.
  explicit Binding(const Compiled& c) : plan_(c.plan), shapes_(c.graph.shapes) {
    const Plan& plan = c.plan;
    std::size_t axes = 0, strides = 0;
    for (const Kernel& k : plan.kernels) {
      starts_.push_back({axes, strides, static_cast<std::size_t>(k.first_operand)});
      axes += static_cast<std::size_t>(k.kept + k.reduced);
      strides += static_cast<std::size_t>((k.kept + k.reduced) * k.operands);
    }
    extents_.resize(axes);
    strides_.resize(strides);
    offsets_.resize(plan.operands.size());
    pointers_.resize(plan.operands.size());
    places_.resize(plan.buffers.size());
    sizes_.resize(plan.buffers.size());
    values_.resize(c.graph.symbols.size());
  }

  const std::vector<std::int64_t>& values() const { return values_; }

  // values: the extents, in the order of the plan's names. Everything that depends on them is computed again.
  void bind(const std::vector<std::int64_t>& values) {
    values_ = values;
    const std::int64_t* v = values_.data();
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
      const Kernel& k = plan_.kernels[i];
      const int axes = k.kept + k.reduced;
      for (int a = 0; a < axes; ++a) extents_[starts_[i].axes + static_cast<std::size_t>(a)] = k.extents[static_cast<std::size_t>(a)].evaluate(v);
      for (int o = 0; o < k.operands; ++o) {
        const KernelOperand& operand = plan_.operands[static_cast<std::size_t>(k.first_operand + o)];
        offsets_[static_cast<std::size_t>(k.first_operand + o)] = operand.offset.evaluate(v) * (operand.buffer < 0 ? 1 : size_of(operand.dtype));
        for (int a = 0; a < axes; ++a)
          strides_[starts_[i].strides + static_cast<std::size_t>(o * axes + a)] = operand.strides[static_cast<std::size_t>(a)].evaluate(v);
      }
    }
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) sizes_[b] = arena_size(plan_.buffers[b], v);
    arena_ = place_buffers(
        static_cast<int>(plan_.buffers.size()),
        [&](int i, int j) { return alive_together(plan_.buffers[static_cast<std::size_t>(i)], plan_.buffers[static_cast<std::size_t>(j)]); },
        [&](int i) { return sizes_[static_cast<std::size_t>(i)]; }, places_, order_);
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b)
      if (plan_.buffers[b].kind == PlanBuffer::Kind::Size) {
        places_[b] = arena_;
        arena_ += scalar_bytes;
      }
  }

  std::int64_t arena_bytes() const { return arena_; }

  // The numbers that the program reads as tensors (how many elements a mean divides by), for the arena's tail:
  // write(offset, bytes, size) is called for each.
  template <class Write>
  void write_sizes(Write write) const {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const PlanBuffer& buffer = plan_.buffers[b];
      if (buffer.kind != PlanBuffer::Kind::Size) continue;
      const std::int64_t n = shapes_[static_cast<std::size_t>(buffer.position)].size().evaluate(values_.data());
      alignas(8) std::byte bytes[8]{};
      auto put = [&](auto value) { std::memcpy(bytes, &value, sizeof(value)); };
      switch (buffer.dtype) {
        case DType::f32: put(static_cast<float>(n)); break;
        case DType::f64: put(static_cast<double>(n)); break;
        case DType::bf16: put(bf16(static_cast<float>(n))); break;
        case DType::f16: put(f16(static_cast<float>(n))); break;
        case DType::i8: put(static_cast<std::int8_t>(n)); break;
        case DType::i32: put(static_cast<std::int32_t>(n)); break;
        case DType::i64: put(n); break;
        case DType::boolean: put(n != 0); break;
      }
      write(places_[b], bytes, static_cast<std::size_t>(size_of(buffer.dtype)));
    }
  }

  // The addresses of all operands.
  void point(void* const* inputs, void* const* outputs, std::byte* arena) {
    for (std::size_t o = 0; o < plan_.operands.size(); ++o) {
      const int b = plan_.operands[o].buffer;
      if (b < 0) {  // an Index: the number it starts from
        pointers_[o] = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(offsets_[o]));
        continue;
      }
      const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(b)];
      std::byte* base = nullptr;
      switch (buffer.kind) {
        case PlanBuffer::Kind::Input: base = static_cast<std::byte*>(inputs[buffer.position]); break;
        case PlanBuffer::Kind::Output: base = static_cast<std::byte*>(outputs[buffer.position]); break;
        case PlanBuffer::Kind::Arena:
        case PlanBuffer::Kind::Size: base = arena + places_[static_cast<std::size_t>(b)]; break;
      }
      pointers_[o] = base + offsets_[o];
    }
  }

  kernel::Launch launch(std::size_t k) const {
    return {extents_.data() + starts_[k].axes, strides_.data() + starts_[k].strides, pointers_.data() + starts_[k].operands};
  }

 private:
  struct Start {
    std::size_t axes, strides, operands;
  };

  const Plan& plan_;
  const std::vector<Shape>& shapes_;
  std::vector<Start> starts_;
  std::vector<std::int64_t> values_, extents_, strides_, offsets_, places_, sizes_;
  std::vector<std::byte*> pointers_;
  std::vector<int> order_;
  std::int64_t arena_ = 0;
};

}  // namespace tg
