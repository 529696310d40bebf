// Tensor<Device, T, dims...>: a row-major array on a device whose type holds its dtype and shape.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "typegrad/expr/lazy.hpp"
#include "typegrad/runtime/memory.hpp"

namespace tg {

template <class F, class... Operands>
struct Lazy;

// Each of Ds is an int or tg::dyn<"name">. A Tensor is a shared handle, as in NumPy and PyTorch: copies see the same
// elements; clone() makes new ones.
template <class Device, class T, auto... Ds>
class Tensor {
 public:
  using device = Device;
  using value_type = T;
  using expr_type = Expr<T, Ds...>;
  static constexpr int rank = static_cast<int>(sizeof...(Ds));
  static constexpr Extents extents = expr_type::extents;
  static constexpr bool is_static = extents.size().is_static();

  // Zeros. A shape with run-time extents is given in full: Tensor<Cpu, float, dyn<"n">, 3>::zeros({8, 3}).
  Tensor()
    requires is_static
      : Tensor(zeros(static_shape())) {}
  static Tensor zeros(const std::array<std::int64_t, static_cast<std::size_t>(rank)>& shape) {
    Tensor t(shape, uninitialised{});
    DeviceMemory<Device>::zero(t.data(), t.bytes());
    return t;
  }
  // The elements in row-major order.
  explicit Tensor(std::initializer_list<T> values)
    requires is_static
      : Tensor(static_shape(), uninitialised{}) {
    assign(std::span<const T>(values.begin(), values.size()));
  }
  static Tensor from(std::span<const T> values, const std::array<std::int64_t, static_cast<std::size_t>(rank)>& shape) {
    Tensor t(shape, uninitialised{});
    t.assign(values);
    return t;
  }
  static Tensor from(std::span<const T> values)
    requires is_static
  {
    return from(values, static_shape());
  }
  static Tensor full(T value, const std::array<std::int64_t, static_cast<std::size_t>(rank)>& shape) {
    Tensor t(shape, uninitialised{});
    Buffer<T> values(static_cast<std::size_t>(t.size()), value);
    DeviceMemory<Device>::from_host(t.data(), values.data(), t.bytes());
    return t;
  }
  static Tensor full(T value)
    requires is_static
  {
    return full(value, static_shape());
  }
  // Memory whose elements are not set, for results that are about to be written.
  static Tensor empty(const std::array<std::int64_t, static_cast<std::size_t>(rank)>& shape) { return Tensor(shape, uninitialised{}); }

  // Runs the expression as one program and stores its value. Defined in runtime/evaluate.hpp.
  template <class F, class... Operands>
  Tensor(const Lazy<F, Operands...>& lazy);

  const std::array<std::int64_t, static_cast<std::size_t>(rank)>& shape() const { return shape_; }
  std::int64_t extent(int axis) const { return shape_[static_cast<std::size_t>(axis)]; }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (std::int64_t e : shape_) n *= e;
    return n;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * sizeof(T); }
  // The address of the first element on the device.
  T* data() const { return static_cast<T*>(storage_.data()); }

  // Copies the elements from or to the host, in row-major order.
  void assign(std::span<const T> values) {
    if (static_cast<std::int64_t>(values.size()) != size())
      throw Error(detail::concat_text("Tensor: expected ", size(), " elements for shape ", std::span<const std::int64_t>(shape_),
                                      ", found ", values.size()));
    DeviceMemory<Device>::from_host(data(), values.data(), bytes());
  }
  void copy_to(std::span<T> values) const {
    if (static_cast<std::int64_t>(values.size()) != size())
      throw Error(detail::concat_text("Tensor: expected room for ", size(), " elements, found ", values.size()));
    DeviceMemory<Device>::to_host(values.data(), data(), bytes());
  }
  std::vector<T> to_vector() const
    requires(!std::same_as<T, bool>)
  {
    std::vector<T> v(static_cast<std::size_t>(size()));
    copy_to(v);
    return v;
  }
  // The only element of a tensor of size 1.
  T item() const {
    if (size() != 1) throw Error(detail::concat_text("item: expected one element, found shape ", std::span<const std::int64_t>(shape_)));
    T v;
    DeviceMemory<Device>::to_host(&v, data(), sizeof(T));
    return v;
  }
  // One element, by its index along each axis; negative ones count from the end.
  template <std::integral... I>
  T at(I... index) const {
    static_assert(sizeof...(I) == sizeof...(Ds), "typegrad: at() takes one index for each axis");
    std::array<std::int64_t, sizeof...(I)> x{static_cast<std::int64_t>(index)...};
    std::int64_t offset = 0;
    for (std::size_t a = 0; a < x.size(); ++a) {
      const std::int64_t i = x[a] < 0 ? x[a] + shape_[a] : x[a];
      if (i < 0 || i >= shape_[a])
        throw Error(detail::concat_text("at: index ", x[a], " is out of range for axis ", a, " of shape ", std::span<const std::int64_t>(shape_)));
      offset = offset * shape_[a] + i;
    }
    T v;
    DeviceMemory<Device>::to_host(&v, data() + offset, sizeof(T));
    return v;
  }

  Tensor clone() const { return to<Device>(); }
  // A copy on another device (or a clone on the same).
  template <class Other>
  Tensor<Other, T, Ds...> to() const {
    auto r = Tensor<Other, T, Ds...>::empty(shape_);
    if constexpr (DeviceMemory<Device>::on_host) {
      DeviceMemory<Other>::from_host(r.data(), data(), bytes());
    } else {
      Buffer<T> values(static_cast<std::size_t>(size()));
      DeviceMemory<Device>::to_host(values.data(), data(), bytes());
      DeviceMemory<Other>::from_host(r.data(), values.data(), bytes());
    }
    return r;
  }

  static constexpr std::array<std::int64_t, static_cast<std::size_t>(rank)> static_shape()
    requires is_static
  {
    return {Extent(Ds).coefficient...};
  }

 private:
  struct uninitialised {};
  // A vector of plain elements, for bool as well.
  template <class U>
  struct Buffer {
    std::vector<std::byte> memory;
    explicit Buffer(std::size_t n) : memory(n * sizeof(U)) {}
    Buffer(std::size_t n, U value) : memory(n * sizeof(U)) {
      for (std::size_t i = 0; i < n; ++i) std::memcpy(memory.data() + i * sizeof(U), &value, sizeof(U));
    }
    void* data() { return memory.data(); }
  };

  Tensor(const std::array<std::int64_t, static_cast<std::size_t>(rank)>& shape, uninitialised) : shape_(shape) {
    std::int64_t n = sizeof(T);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t e = shape[i];
      const Extent& declared = extents[static_cast<int>(i)];
      if (e < 0 || (declared.is_static() && declared.coefficient != e) ||
          (!declared.is_static() && e % declared.coefficient != 0))
        throw Error(detail::concat_text("Tensor: axis ", i, " of shape ", std::span<const std::int64_t>(shape), ": expected ",
                                        declared.is_static() ? "extent " : "a multiple of ", declared.coefficient, ", found ", e));
      if (e != 0 && __builtin_mul_overflow(n, e, &n))
        throw Error(detail::concat_text("Tensor: shape ", std::span<const std::int64_t>(shape), " is larger than 64 bits can address"));
    }
    storage_ = detail::Storage<Device>(bytes());
  }

  detail::Storage<Device> storage_;
  std::array<std::int64_t, static_cast<std::size_t>(rank)> shape_;
};

namespace detail {
template <class Device, class E>
struct tensor_of;
template <class Device, class T, auto... Ds>
struct tensor_of<Device, Expr<T, Ds...>> {
  using type = Tensor<Device, T, Ds...>;
};

template <class X>
struct is_tensor : std::false_type {};
template <class Device, class T, auto... Ds>
struct is_tensor<Tensor<Device, T, Ds...>> : std::true_type {};

// The device of the first tensor among operands, looking into Lazy ones; void if there is none.
template <class... X>
struct first_device {
  using type = void;
};
template <class Device, class T, auto... Ds, class... Rest>
struct first_device<Tensor<Device, T, Ds...>, Rest...> {
  using type = Device;
};
template <class F, class... Operands, class... Rest>
struct first_device<Lazy<F, Operands...>, Rest...> {
  using type = std::conditional_t<std::is_void_v<typename first_device<Operands...>::type>, typename first_device<Rest...>::type,
                                  typename first_device<Operands...>::type>;
};
template <class T, class... Rest>
struct first_device<ScalarOperand<T>, Rest...> : first_device<Rest...> {};
}  // namespace detail

// The tensor on a device for an expression's type.
template <class Device, class E>
using tensor_t = typename detail::tensor_of<Device, expr_t<E>>::type;

}  // namespace tg
