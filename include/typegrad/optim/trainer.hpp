// Trainer: forward, loss, backward and update of a model as one program.
#pragma once

#include "typegrad/nn/parameters.hpp"
#include "typegrad/optim/optimizers.hpp"
#include "typegrad/optim/schedules.hpp"
#include "typegrad/optim/wrappers.hpp"

namespace tg {
namespace detail {

// The gradients of all parameters, one after the other as in the flat buffer.
template <class M>
constexpr Value flat_gradient(Value loss, const M& bound) {
  using Layout = ParameterLayout<M>;
  std::vector<int> ids;
  for_each_parameter(bound, [&](const Path&, const auto& p) { ids.push_back(p.id); });
  const std::vector<Value> d = gradient(loss, ids);
  Value flat;
  for (const std::size_t i : Layout::order) {
    const Value part = build::reshape(d[i], Shape{Dim(Layout::slots[i].size)});
    flat = flat.graph == nullptr ? part : build::concat(flat, part, 0);
  }
  return flat;
}

template <class R>
constexpr auto first_of(const R& r) {
  if constexpr (TypedExpr<R>) return r;
  else return std::get<0>(r);
}

// Inputs: parameters, state, hyperparameters, and the loss function's inputs. Results: the new parameters and state, in
// place, and what the loss function returns.
template <class M, auto Loss, class Optimizer>
struct TrainStep {
  static constexpr std::size_t states = Optimizer::states;
  static constexpr auto donors = [] {
    std::array<int, states + 1> r{};
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<int>(i);
    return r;
  }();

  template <class P, class... Rest>
  constexpr auto operator()(const P& flat, const Rest&... rest) const {
    return run(flat, std::tuple<const Rest&...>(rest...), std::make_index_sequence<states>{}, std::make_index_sequence<sizeof...(Rest) - states - 1>{});
  }

 private:
  template <class P, class Rest, std::size_t... S, std::size_t... I>
  static constexpr auto run(const P& flat, const Rest& rest, std::index_sequence<S...>, std::index_sequence<I...>) {
    const auto hyper = std::get<states>(rest);
    const auto h = [&](int i) {
      AttributeList start, step;
      start.push(i);
      step.push(1);
      using T = typename P::value_type;
      return Expr<T>(build::cast(build::reshape(build::slice(hyper, Shape{1}, start, step), Shape{}), dtype_of<T>));
    };
    const M model = bind_parameters<M>(flat);
    const auto result = call(Loss, model, std::get<states + 1 + I>(rest)...);
    const auto loss = first_of(result);
    static_assert(is_floating(std::remove_cvref_t<decltype(loss)>::element) && std::remove_cvref_t<decltype(loss)>::extents.size().is(1),
                  "typegrad: the first result of a loss function is a floating-point scalar; reduce it with tg::mean");
    const P g(flat_gradient(loss, model));
    const auto updated = Optimizer::update(flat, g, std::array<P, states>{P(std::get<S>(rest))...}, h);
    return std::tuple_cat(std::tuple(updated.parameters), std::tuple(updated.state[S]...), flatten(result));
  }
};

}  // namespace detail

// Trains model M on a device. Loss is a constexpr function of (model, inputs...) that returns the loss, or a tuple of
// the loss and other values to report. Optimizer is one of tg::optim, perhaps wrapped (clipping, averaged weights,
// accumulation: optim/wrappers.hpp). Parameters and state live in flat buffers and are
// updated in place; after the first step with given extents a step allocates nothing.
template <class Device, class M, auto Loss, class Optimizer = optim::AdamW>
class Trainer {
 public:
  using parameters_type = Parameters<Device, M>;
  using T = typename parameters_type::T;
  static constexpr std::size_t states = Optimizer::states;
  static constexpr auto hyper_count = static_cast<int>(std::tuple_size_v<decltype(Optimizer{}.hyperparameters(1))>);

  explicit Trainer(Optimizer with = {}, std::uint64_t seed = 0) : optimizer(with), parameters_(seed) {}

  // May be changed between steps (learning-rate schedules).
  Optimizer optimizer;

  // One step on a batch. Returns what Loss returns, computed with the parameters before the update.
  template <class... X>
  auto step(const X&... x) {
    hyper_.assign(optimizer.hyperparameters(step_ + 1));
    auto results = [&]<std::size_t... S>(std::index_sequence<S...>) {
      return program(x...)(parameters_.flat(), state_[S]..., hyper_, x...);
    }(std::make_index_sequence<states>{});
    ++step_;
    return detail::nest<states + 1, loss_result<X...>>(results);
  }

  // What Loss returns, without an update.
  template <class... X>
  auto evaluate(const X&... x) const {
    return parameters_.template apply<Loss>(x...);
  }
  // f(model, inputs...) with the present parameters.
  template <auto F, class... X>
  auto apply(const X&... x) const {
    return parameters_.template apply<F>(x...);
  }

  const parameters_type& parameters() const { return parameters_; }
  std::int64_t steps() const { return step_; }
  // Updates of the parameters so far: fewer than steps where the optimizer accumulates gradients.
  std::int64_t updates() const {
    if constexpr (requires { optimizer.updates(step_); }) return optimizer.updates(step_);
    else return step_;
  }
  // A copy of the averaged parameters that optim::WithEma keeps; before the first update, of the parameters.
  // trainer.averaged().apply<loss>(x, y) evaluates with them, trainer.averaged().save(path) writes them.
  parameters_type averaged() const
    requires requires { Optimizer::average; }
  {
    parameters_type copy;
    auto flat = copy.flat();  // a handle to the same memory
    flat.assign((updates() == 0 ? parameters_.flat() : state_[Optimizer::average]).to_vector());
    return copy;
  }

  // Parameters under their paths, the optimizer's state and the number of steps: enough to go on exactly.
  void save(const std::filesystem::path& path) const {
    const std::vector<T> values = parameters_.flat().to_vector();
    std::vector<io::TensorView> views = parameters_.views(values);
    std::array<std::vector<T>, states> kept;
    for (std::size_t s = 0; s < states; ++s) {
      kept[s] = state_[s].to_vector();
      views.push_back(detail::view_of(state_name(s), dtype_of<T>, std::vector<std::int64_t>{parameters_type::count}, reinterpret_cast<const std::byte*>(kept[s].data())));
    }
    io::write_safetensors(path, views, {{"format", "pt"}, {"step", std::to_string(step_)}});
  }
  // Reads what save() wrote, or parameters alone, in which case the optimizer starts anew. On Error nothing is changed.
  void load(const std::filesystem::path& path) {
    const io::SafetensorsFile file(path);
    const std::vector<T> values = parameters_.read(file);
    std::array<std::vector<T>, states> kept;
    bool resumed = file.find(state_name(0)) != nullptr;
    std::int64_t step = 0;
    for (std::size_t s = 0; s < states; ++s) {
      kept[s].resize(values.size());
      if (!resumed) continue;
      file.read(detail::find_tensor(file, state_name(s), dtype_of<T>, std::vector<std::int64_t>{parameters_type::count}), std::as_writable_bytes(std::span(kept[s])));
    }
    if (const auto found = file.metadata().find("step"); resumed && found != file.metadata().end()) {
      const auto [end, error] = std::from_chars(found->second.data(), found->second.data() + found->second.size(), step);
      if (error != std::errc{} || end != found->second.data() + found->second.size() || step < 0)
        throw Error(detail::concat_text("'", path.string(), "': expected a number of steps, found '", found->second, "'"));
    }
    auto flat = parameters_.flat();  // a handle to the same memory
    flat.assign(values);
    for (std::size_t s = 0; s < states; ++s) state_[s].assign(kept[s]);
    step_ = step;
  }

  // The program of a step on inputs of these types, for reports and profiles.
  template <class... X>
  static auto& program(const X&...) {
    return with_state<X...>(std::make_index_sequence<states>{});
  }

 private:
  using flat_tensor = typename parameters_type::flat_tensor;
  using flat_expr = typename flat_tensor::expr_type;
  template <class... X>
  using loss_result = typename Tracer<detail::ModelFunction<M, Loss>, flat_expr, typename X::expr_type...>::result;

  template <class... X, std::size_t... S>
  static auto& with_state(std::index_sequence<S...>) {
    return Program<Device, detail::TrainStep<M, Loss, Optimizer>, flat_expr, std::enable_if_t<(S >= 0), flat_expr>..., Expr<float, hyper_count>,
                   typename X::expr_type...>::instance();
  }
  static std::string state_name(std::size_t s) { return detail::concat_text("optimizer.state.", s); }

  parameters_type parameters_;
  std::array<flat_tensor, states> state_;
  Tensor<Device, float, hyper_count> hyper_;
  std::int64_t step_ = 0;
};

}  // namespace tg
