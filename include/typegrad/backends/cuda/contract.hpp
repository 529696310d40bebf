// Contract kernels on the GPU: cuBLASLt's matrix product, with its own epilogue where that fits and a map kernel after it
// where not; a plain kernel for integers and for operands that no matrix layout describes.
#pragma once

#include <cublasLt.h>

#include "typegrad/backends/cuda/map.hpp"

namespace tg::cuda {

inline void check(cublasStatus_t s, const char* what) {
  if (s != CUBLAS_STATUS_SUCCESS) throw Error(tg::detail::concat_text("cuBLASLt: ", what, ": ", cublasLtGetStatusString(s)));
}

inline cublasLtHandle_t blas() {
  static const cublasLtHandle_t handle = [] {
    cublasLtHandle_t h = nullptr;
    check(cublasLtCreate(&h), "cannot create a handle");
    return h;
  }();
  return handle;
}

template <class T>
constexpr cudaDataType_t blas_type() {
  if constexpr (std::same_as<T, float>) return CUDA_R_32F;
  else if constexpr (std::same_as<T, double>) return CUDA_R_64F;
  else if constexpr (std::same_as<T, bf16>) return CUDA_R_16BF;
  else return CUDA_R_16F;
}

// A matrix operand as cuBLASLt takes it: column-major, perhaps transposed.
struct Matrix {
  const void* data = nullptr;
  cublasOperation_t op = CUBLAS_OP_N;
  std::int64_t rows = 0, cols = 0, ld = 0, batch_stride = 0;
};

// The handles of one call, destroyed when it ends.
class Layout {
 public:
  Layout(cudaDataType_t type, const Matrix& m, std::int64_t batches) {
    check(cublasLtMatrixLayoutCreate(&layout_, type, static_cast<std::uint64_t>(m.rows), static_cast<std::uint64_t>(m.cols), m.ld), "matrix layout");
    if (batches > 1) {
      const auto n = static_cast<std::int32_t>(batches);
      check(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof(n)), "batch count");
      check(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.batch_stride, sizeof(m.batch_stride)), "batch stride");
    }
  }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout() { (void)cublasLtMatrixLayoutDestroy(layout_); }
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

// d = op(a) op(b) + beta d, column-major; C is the type of d, of the accumulation and of the scale.
template <class T, class C>
void multiply(const Matrix& a, const Matrix& b, const Matrix& d, std::int64_t batches, C beta, cublasLtEpilogue_t epilogue, const void* bias, const Context& c) {
  cublasLtMatmulDesc_t desc = nullptr;
  check(cublasLtMatmulDescCreate(&desc, std::same_as<C, double> ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, blas_type<C>()), "description");
  struct Release {
    cublasLtMatmulDesc_t d;
    cublasLtMatmulPreference_t p = nullptr;
    ~Release() {
      (void)cublasLtMatmulDescDestroy(d);
      if (p != nullptr) (void)cublasLtMatmulPreferenceDestroy(p);
    }
  } release{desc};
  auto set = [&](cublasLtMatmulDescAttributes_t what, const auto& value) { check(cublasLtMatmulDescSetAttribute(desc, what, &value, sizeof(value)), "attribute"); };
  set(CUBLASLT_MATMUL_DESC_TRANSA, a.op);
  set(CUBLASLT_MATMUL_DESC_TRANSB, b.op);
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  const Layout la(blas_type<T>(), a, batches), lb(blas_type<T>(), b, batches), ld(blas_type<C>(), d, batches);
  check(cublasLtMatmulPreferenceCreate(&release.p), "preference");
  check(cublasLtMatmulPreferenceSetAttribute(release.p, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &c.workspace_bytes, sizeof(c.workspace_bytes)), "workspace");
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(blas(), desc, la.get(), lb.get(), ld.get(), ld.get(), release.p, 1, &found, &count), "no algorithm for this product");
  if (count == 0) throw Error("cuBLASLt: no algorithm for this product");
  const C alpha = 1;
  void* out = const_cast<void*>(d.data);
  check(cublasLtMatmul(blas(), desc, &alpha, a.data, la.get(), b.data, lb.get(), &beta, out, ld.get(), out, ld.get(), &found.algo, c.workspace, found.workspaceSize, c.stream),
        "matmul failed");
}

// The plain product: a thread for each element of the result.
template <class R, class T, class C>
__global__ void __launch_bounds__(256) product_kernel(Arguments<R> a, C* out, std::int64_t n, std::int64_t length) {
  for (std::int64_t i = blockIdx.x * std::int64_t{256} + threadIdx.x; i < n; i += static_cast<std::int64_t>(gridDim.x) * 256) {
    const T *x = reinterpret_cast<const T*>(a.pointers[0]), *y = reinterpret_cast<const T*>(a.pointers[1]);
    std::int64_t linear = i;
    for (int axis = R::kept; axis-- > 0;) {
      const std::int64_t at = linear % a.extents[axis];
      linear /= a.extents[axis];
      x += at * a.strides[0][axis];
      y += at * a.strides[1][axis];
    }
    C sum{};
    for (std::int64_t k = 0; k < length; ++k) {
      std::int64_t rest = k, p = 0, q = 0;
      for (int axis = R::axes; axis-- > R::kept;) {
        const std::int64_t at = rest % a.extents[axis];
        rest /= a.extents[axis];
        p += at * a.strides[0][axis];
        q += at * a.strides[1][axis];
      }
      sum = math::add(sum, math::mul(static_cast<C>(x[p]), static_cast<C>(y[q])));
    }
    out[i] = sum;
  }
}

template <class R>
struct ContractKernel {
  static constexpr int m_axis = R::kept - 2, n_axis = R::kept - 1, k_axis = R::axes - 1;
  static constexpr kernel::StepInfo product = [] {
    kernel::StepInfo r{};
    for (const kernel::StepInfo& s : R::info)
      if (s.code == Code::Product) r = s;
    return r;
  }();
  using T = element_t<product.dtype>;
  using C = compute_t<T>;

  // A program of the form [relu](product [+ bias]), stored in the type the product is computed in.
  struct Simple {
    bool is = false;
    bool relu = false;
    int bias = -1, out = -1;
  };
  static constexpr Simple simple = [] {
    Simple r{};
    int stores = 0, store = -1;
    for (int i = 0; i < R::steps; ++i)
      if (R::info[static_cast<std::size_t>(i)].code == Code::Store) {
        ++stores;
        store = i;
      }
    if (stores != 1) return r;
    const kernel::StepInfo& s = R::info[static_cast<std::size_t>(store)];
    if (s.dtype != dtype_of<C> || R::access[static_cast<std::size_t>(s.slot)] != Access::contiguous) return r;
    r.out = s.slot;
    int at = s.args[0];
    int used = 1;
    if (R::info[static_cast<std::size_t>(at)].code == Code::Compute && R::info[static_cast<std::size_t>(at)].op == Op::Relu) {
      r.relu = true;
      at = R::info[static_cast<std::size_t>(at)].args[0];
      ++used;
    }
    const kernel::StepInfo& add = R::info[static_cast<std::size_t>(at)];
    if (add.code == Code::Compute && add.op == Op::Add && add.dtype == dtype_of<C>) {
      const kernel::StepInfo &x = R::info[static_cast<std::size_t>(add.args[0])], &y = R::info[static_cast<std::size_t>(add.args[1])];
      const bool first = x.code == Code::Product;
      const kernel::StepInfo& load = first ? y : x;
      if (!(first || y.code == Code::Product) || load.code != Code::Load || R::access[static_cast<std::size_t>(load.slot)] != Access::contiguous) return r;
      r.bias = load.slot;
      used += 2;
      at = first ? add.args[0] : add.args[1];
    }
    if (R::info[static_cast<std::size_t>(at)].code != Code::Product || used + 1 != R::steps) return r;
    r.is = !r.relu || r.bias >= 0;
    return r;
  }();

  static std::int64_t stride(const kernel::Launch& l, int operand, int axis) { return l.strides[operand * R::axes + axis]; }

  // Whether cuBLASLt can do it, and how: the matrices of the transposed, column-major problem.
  static bool matrices(const kernel::Launch& l, Matrix& a, Matrix& b) {
    if constexpr (std::integral<T>) return false;
    const std::int64_t m = l.extents[m_axis], n = l.extents[n_axis], k = l.extents[k_axis];
    return matrix(b, stride(l, 1, n_axis), stride(l, 1, k_axis), n, k) && matrix(a, stride(l, 0, k_axis), stride(l, 0, m_axis), k, m);
  }
  // rows x cols, element (i, j) at i * down + j * across.
  static bool matrix(Matrix& m, std::int64_t down, std::int64_t across, std::int64_t rows, std::int64_t cols) {
    if ((down == 1 || rows == 1) && (across >= rows || cols == 1)) {
      m.op = CUBLAS_OP_N;
      m.rows = rows;
      m.cols = cols;
      m.ld = cols == 1 ? rows : across;
      return true;
    }
    if ((across == 1 || cols == 1) && (down >= cols || rows == 1)) {
      m.op = CUBLAS_OP_T;
      m.rows = cols;
      m.cols = rows;
      m.ld = rows == 1 ? cols : down;
      return true;
    }
    return false;
  }
  static bool in_place(const kernel::Launch& l) {
    if (!simple.is || stride(l, simple.out, m_axis) < l.extents[n_axis]) return false;
    if (simple.bias < 0) return true;
    for (int axis = 0; axis + 1 < R::kept; ++axis)
      if (stride(l, simple.bias, axis) != 0) return false;
    return true;
  }

  static std::int64_t scratch(const kernel::Launch& l) {
    return count<R, 0, R::kept>(l) * static_cast<std::int64_t>(sizeof(C));
  }

  static void run(const kernel::Launch& l, const Context& c) {
    const std::int64_t m = l.extents[m_axis], n = l.extents[n_axis], k = l.extents[k_axis];
    const std::int64_t total = count<R, 0, R::kept>(l), length = count<R, R::kept, R::axes>(l);
    if (total == 0) return;
    Matrix a, b;
    if (length == 0 || !matrices(l, a, b)) {
      const std::int64_t blocks = (total + 255) / 256;
      product_kernel<R, T, C><<<static_cast<unsigned>(blocks < 65536 ? blocks : 65536), 256, 0, c.stream>>>(arguments<R>(l, c), reinterpret_cast<C*>(c.scratch), total, length);
      check(cudaGetLastError(), "cannot launch a contraction");
      return MapKernel<R>::run(l, c, c.scratch);
    }
    if constexpr (!std::integral<T>) {
      const bool direct = in_place(l);
      Matrix d;
      d.rows = n;
      d.cols = m;
      d.ld = direct ? (m == 1 ? n : stride(l, simple.out, m_axis)) : n;
      // The last batched axis is cuBLASLt's batch; further ones, and all but the last contracted axis, are loops.
      constexpr int batch_axis = m_axis - 1;
      const std::int64_t batches = batch_axis >= 0 ? l.extents[batch_axis] : 1;
      if (batch_axis >= 0) {
        a.batch_stride = stride(l, 0, batch_axis);
        b.batch_stride = stride(l, 1, batch_axis);
        d.batch_stride = direct ? stride(l, simple.out, batch_axis) : m * n;
      }
      const std::int64_t outer = batch_axis > 0 ? total / (batches * m * n) : 1, depth = length / k;
      for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t r = 0; r < depth; ++r) {
          std::int64_t offset[3] = {0, 0, direct ? 0 : o * batches * m * n};
          walk(l, o, batch_axis, 0, offset, direct);
          walk(l, r, k_axis, R::kept, offset, false);
          a.data = l.pointers[0] + offset[0] * static_cast<std::int64_t>(sizeof(T));
          b.data = l.pointers[1] + offset[1] * static_cast<std::int64_t>(sizeof(T));
          d.data = (direct ? l.pointers[simple.out < 0 ? 0 : simple.out] : c.scratch) + offset[2] * static_cast<std::int64_t>(sizeof(C));
          const bool last = direct && r + 1 == depth;
          const cublasLtEpilogue_t epilogue = !last || simple.bias < 0 ? CUBLASLT_EPILOGUE_DEFAULT : simple.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
          multiply<T, C>(b, a, d, batches, r == 0 ? C{0} : C{1}, epilogue, simple.bias < 0 ? nullptr : l.pointers[simple.bias], c);
        }
      if (!direct) MapKernel<R>::run(l, c, c.scratch);
    }
  }

 private:
  // Adds the offsets of a linear index over the axes [first, end) of both factors, and of the result if asked.
  static void walk(const kernel::Launch& l, std::int64_t linear, int end, int first, std::int64_t (&offset)[3], bool result) {
    for (int axis = end; axis-- > first;) {
      const std::int64_t at = linear % l.extents[axis];
      linear /= l.extents[axis];
      offset[0] += at * stride(l, 0, axis);
      offset[1] += at * stride(l, 1, axis);
      if (result) offset[2] += at * stride(l, simple.out, axis);
    }
  }
};

}  // namespace tg::cuda
