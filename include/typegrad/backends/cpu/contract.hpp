// Contract kernels on the CPU: Eigen's matrix product on tiles that the threads share, the epilogue on the hot tile.
#pragma once

#include "typegrad/backends/cpu/evaluate.hpp"

namespace tg::cpu {

// Eigen's product on memory of ours, so that nothing is allocated while a program runs.
template <class C>
struct Gemm {
  using Index = std::ptrdiff_t;

  // The blocks that Eigen packs its factors into.
  struct Blocking : ei::level3_blocking<C, C> {
    Blocking(Index rows, Index cols, Index depth, std::byte* memory) {
      this->m_mc = rows;
      this->m_nc = cols;
      this->m_kc = depth;
      ei::computeProductBlockingSizes<C, C>(this->m_kc, this->m_mc, this->m_nc, Index{1});
      this->m_blockA = reinterpret_cast<C*>(memory);
      this->m_blockB = reinterpret_cast<C*>(memory + bytes_a());
    }
    std::int64_t bytes_a() const { return (this->m_kc * this->m_mc * static_cast<Index>(sizeof(C)) + 63) / 64 * 64; }
    std::int64_t bytes() const { return bytes_a() + (this->m_kc * this->m_nc * static_cast<Index>(sizeof(C)) + 63) / 64 * 64; }
  };
  static std::int64_t workspace(std::int64_t m, std::int64_t n, std::int64_t k) { return Blocking(n, m, k, nullptr).bytes(); }

  // c[i, j] += sum_k a[i, k] b[k, j], c row-major with rows ldc apart. One stride of each factor is 1.
  static void run(std::int64_t m, std::int64_t n, std::int64_t k, const C* a, std::int64_t a_m, std::int64_t a_k, const C* b,
                  std::int64_t b_k, std::int64_t b_n, C* c, std::int64_t ldc, std::byte* memory) {
    Blocking blocking(n, m, k, memory);
    // Eigen writes column-major results: the product is taken transposed.
    const bool b_across = b_n == 1 || n == 1, a_along = a_k == 1 || k == 1;
    auto call = [&]<int Left, int Right>() {
      ei::general_matrix_matrix_product<Index, C, Left, false, C, Right, false, Eigen::ColMajor, 1>::run(
          n, m, k, b, b_across ? b_k : b_n, a, a_along ? a_m : a_k, c, 1, ldc, C{1}, blocking, nullptr);
    };
    if (b_across && a_along) call.template operator()<Eigen::ColMajor, Eigen::ColMajor>();
    else if (b_across) call.template operator()<Eigen::ColMajor, Eigen::RowMajor>();
    else if (a_along) call.template operator()<Eigen::RowMajor, Eigen::ColMajor>();
    else call.template operator()<Eigen::RowMajor, Eigen::RowMajor>();
  }
};

template <class R>
struct ContractKernel {
  static constexpr int m_axis = R::kept - 2, n_axis = R::kept - 1, k_axis = R::axes - 1;
  static constexpr int product_step = [] {
    for (int i = 0; i < R::steps; ++i)
      if (R::info[static_cast<std::size_t>(i)].code == Code::Product) return i;
    return -1;
  }();
  using T = element_t<R::info[static_cast<std::size_t>(product_step)].dtype>;
  using C = compute_t<T>;

  // The operand whose memory the product is accumulated in before the epilogue runs over it, or -1 for scratch memory:
  // a stored value of the type in which the product is computed that depends on the product.
  static constexpr int target = [] {
    std::array<bool, static_cast<std::size_t>(R::steps)> depends{};
    int r = -1;
    for (int i = 0; i < R::steps; ++i) {
      const kernel::StepInfo& s = R::info[static_cast<std::size_t>(i)];
      depends[static_cast<std::size_t>(i)] = s.code == Code::Product;
      for (int a : s.args)
        if (a >= 0 && depends[static_cast<std::size_t>(a)]) depends[static_cast<std::size_t>(i)] = true;
      if (s.code == Code::Store && depends[static_cast<std::size_t>(i)] && s.dtype == dtype_of<C> && R::access[static_cast<std::size_t>(s.slot)] == Access::contiguous)
        r = s.slot;
    }
    for (const kernel::StepInfo& s : R::info)
      if (s.code == Code::Load && s.slot == r) r = -1;
    return r;
  }();
  // Nothing but the product itself is stored, and where it is accumulated.
  static constexpr bool plain = target >= 0 && R::steps == 2;

  struct Tiles {
    std::int64_t batches, m, n, k, rows, cols, down, across, depth, workspace, tile, packed_a, packed_b;
    std::int64_t count() const { return batches * down * across; }
    std::int64_t per_thread() const { return workspace + tile + packed_a + packed_b; }
  };

  static std::int64_t align(std::int64_t n) { return (n + 63) / 64 * 64; }
  static std::int64_t stride(const kernel::Launch& l, int operand, int axis) { return l.strides[operand * R::axes + axis]; }
  static bool packs(const kernel::Launch& l, int operand, int outer, int inner) {
    if constexpr (!std::same_as<T, C>) return true;
    const bool unit = stride(l, operand, inner) == 1 || l.extents[inner] == 1 || stride(l, operand, outer) == 1 || l.extents[outer] == 1;
    return !unit || stride(l, operand, inner) < 1 || stride(l, operand, outer) < 1;
  }

  static Tiles tiles(const kernel::Launch& l, int threads) {
    Tiles t{};
    t.batches = Walk<R, 0, m_axis>::count(l);
    t.m = l.extents[m_axis];
    t.n = l.extents[n_axis];
    t.k = l.extents[k_axis];
    t.depth = Walk<R, R::kept, k_axis>::count(l);
    t.rows = t.m;
    t.cols = t.n;
    const bool small = t.batches * t.m * t.n * t.k * t.depth < std::int64_t{64} * 1024;
    if (!small && t.batches < threads) {
      const std::int64_t parts = (threads + t.batches - 1) / (t.batches > 0 ? t.batches : 1);
      // Boundaries at multiples of the micro-kernel's tile: each element is computed as in the whole product.
      if (t.n > t.m) t.cols = ((t.n + parts - 1) / parts + 47) / 48 * 48;
      else t.rows = ((t.m + parts - 1) / parts + 7) / 8 * 8;
    }
    t.cols = t.cols < t.n ? t.cols : t.n;
    t.rows = t.rows < t.m ? t.rows : t.m;
    t.down = t.rows > 0 ? (t.m + t.rows - 1) / t.rows : 0;
    t.across = t.cols > 0 ? (t.n + t.cols - 1) / t.cols : 0;
    if (t.count() == 0) return t;
    const auto size = static_cast<std::int64_t>(sizeof(C));
    if (t.k > 0) {
      // The last tiles of a row or column are smaller, and Eigen may choose larger blocks for them.
      const std::int64_t last_rows = t.m - (t.down - 1) * t.rows, last_cols = t.n - (t.across - 1) * t.cols;
      for (const std::int64_t rows : std::array{t.rows, last_rows})
        for (const std::int64_t cols : std::array{t.cols, last_cols}) {
          const std::int64_t bytes = align(Gemm<C>::workspace(rows, cols, t.k));
          t.workspace = bytes > t.workspace ? bytes : t.workspace;
        }
    }
    t.tile = target >= 0 ? 0 : align(t.rows * t.cols * size);
    t.packed_a = packs(l, 0, m_axis, k_axis) ? align(t.rows * t.k * size) : 0;
    t.packed_b = packs(l, 1, k_axis, n_axis) ? align(t.k * t.cols * size) : 0;
    return t;
  }
  static std::int64_t scratch(const kernel::Launch& l, int threads) { return tiles(l, threads).per_thread() * threads; }

  static void run(const kernel::Launch& l, const Context& c) {
    const Tiles t = tiles(l, c.threads);
    const Faults faults{c.fault};
    const bool small = t.batches * t.m * t.n * t.k * t.depth < std::int64_t{64} * 1024;
    parallel(t.count(), small ? 1 : c.threads, [&](std::int64_t begin, std::int64_t end) {
      std::byte* memory = c.scratch + thread_index() * t.per_thread();
      for (std::int64_t i = begin; i < end; ++i) tile(l, t, i, memory, faults);
    });
  }

 private:
  static void tile(const kernel::Launch& l, const Tiles& t, std::int64_t i, std::byte* memory, const Faults& faults) {
    const std::int64_t m0 = i / t.across % t.down * t.rows, n0 = i % t.across * t.cols;
    const std::int64_t m = m0 + t.rows < t.m ? t.rows : t.m - m0, n = n0 + t.cols < t.n ? t.cols : t.n - n0;
    Position<R> at = position<R>(l, n_axis);
    Walk<R, 0, m_axis> batch{l, at};
    batch.seek(i / (t.down * t.across));
    move(at, l, m_axis, m0);
    move(at, l, n_axis, n0);

    C* out = reinterpret_cast<C*>(memory + t.workspace);
    std::int64_t ldc = n;
    if constexpr (target >= 0) {
      out = reinterpret_cast<C*>(at.pointer[target]);
      ldc = stride(l, target, m_axis);
    }
    for (std::int64_t r = 0; r < m; ++r) std::fill_n(out + r * ldc, n, C{0});
    multiply(l, t, at, m, n, out, ldc, memory);
    if constexpr (!plain) {
      for (std::int64_t r = 0; r < m; ++r) {
        row(at, n, reinterpret_cast<const std::byte*>(out + r * ldc), faults);
        move(at, l, m_axis, 1);
      }
    }
  }

  static void multiply(const kernel::Launch& l, const Tiles& t, Position<R> at, std::int64_t m, std::int64_t n, C* out, std::int64_t ldc,
                       std::byte* memory) {
    if (t.k == 0 || m == 0 || n == 0) return;
    const bool pack_a = packs(l, 0, m_axis, k_axis), pack_b = packs(l, 1, k_axis, n_axis);
    C* packed_a = reinterpret_cast<C*>(memory + t.workspace + t.tile);
    C* packed_b = reinterpret_cast<C*>(memory + t.workspace + t.tile + t.packed_a);
    Walk<R, R::kept, k_axis> depth{l, at};
    for (std::int64_t d = 0; d < t.depth; ++d, depth.next()) {
      const T* a = reinterpret_cast<const T*>(at.pointer[0]);
      const T* b = reinterpret_cast<const T*>(at.pointer[1]);
      std::int64_t a_m = stride(l, 0, m_axis), a_k = stride(l, 0, k_axis), b_k = stride(l, 1, k_axis), b_n = stride(l, 1, n_axis);
      if (pack_a) {
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < t.k; ++j) packed_a[i * t.k + j] = static_cast<C>(a[i * a_m + j * a_k]);
        a_m = t.k;
        a_k = 1;
      }
      if (pack_b) {
        for (std::int64_t i = 0; i < t.k; ++i)
          for (std::int64_t j = 0; j < n; ++j) packed_b[i * n + j] = static_cast<C>(b[i * b_k + j * b_n]);
        b_k = n;
        b_n = 1;
      }
      const C *x = packed_a, *y = packed_b;
      if constexpr (std::same_as<T, C>) {
        if (!pack_a) x = a;
        if (!pack_b) y = b;
      }
      Gemm<C>::run(m, n, t.k, x, a_m, a_k, y, b_k, b_n, out, ldc, memory);
    }
  }

  static void row(const Position<R>& at, std::int64_t n, const std::byte* product, const Faults& faults) {
    using L = lanes_of<R>;
    const values_of<ScalarLanes, R> none{};
    std::int64_t i = 0;
    for (; i + L::size <= n; i += L::size) {
      values_of<L, R> v;
      Evaluator<R>::template elements<L, 0>(at, i, v, none, product, nullptr, 0, faults);
    }
    if constexpr (L::size > 1)
      for (; i < n; ++i) {
        values_of<ScalarLanes, R> v;
        Evaluator<R>::template elements<ScalarLanes, 0>(at, i, v, v, product, nullptr, 0, faults);
      }
  }
};

}  // namespace tg::cpu
