// Trainer: forward, loss, backward and update of a model as one program.
#pragma once

#include "typegrad/nn/parameters.hpp"
#include "typegrad/nn/training.hpp"
#include "typegrad/optim/optimizers.hpp"
#include "typegrad/optim/schedules.hpp"
#include "typegrad/optim/wrappers.hpp"

namespace tg {
namespace detail {

template <class M>
constexpr Value flat_gradient(Value loss, const M& bound) {
  std::vector<int> ids;
  for_each_leaf<is_param>(bound, [&](NoPath, const auto& p) { ids.push_back(p.id); }, NoPath{});
  return concatenate<ParameterLayout<M>>(gradient(loss, ids));
}

// What the step leaves in the buffers: their updates, and what they held where there is none.
template <class M>
constexpr Value flat_buffers(const M& bound) {
  std::vector<Value> after;
  for_each_leaf<is_buffer>(bound, [&](NoPath, const auto& b) { after.push_back(latest(b)); }, NoPath{});
  return concatenate<BufferLayout<M>>(after);
}

template <class R>
constexpr auto first_of(const R& r) {
  if constexpr (TypedExpr<R>) return r;
  else return std::get<0>(r);
}

// Inputs: parameters, state, buffers (if the model has any), hyperparameters, random key, and the loss function's inputs.
// Results: the new parameters, state and buffers, in place, and what the loss function returns.
template <class M, auto Loss, class Optimizer>
struct TrainStep {
  static constexpr std::size_t states = Optimizer::states;
  static constexpr std::size_t buffers = BufferLayout<M>::count > 0 ? 1 : 0;
  static constexpr auto donors = [] {
    std::array<int, 1 + states + buffers> r{};
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<int>(i);
    return r;
  }();

  template <class P, class... Rest>
  constexpr auto operator()(const P& flat, const Rest&... rest) const {
    return run(flat, std::tuple<const Rest&...>(rest...), std::make_index_sequence<states>{}, std::make_index_sequence<buffers>{},
               std::make_index_sequence<sizeof...(Rest) - states - buffers - 2>{});
  }

 private:
  template <class P, class Rest, std::size_t... S, std::size_t... B, std::size_t... I>
  static constexpr auto run(const P& flat, const Rest& rest, std::index_sequence<S...>, std::index_sequence<B...>, std::index_sequence<I...>) {
    constexpr std::size_t numbers = states + buffers;
    const auto hyper = std::get<numbers>(rest);
    const auto h = [&](int i) {
      AttributeList start, step;
      start.push(i);
      step.push(1);
      using T = typename P::value_type;
      return Expr<T>(build::cast(build::reshape(build::slice(hyper, Shape{1}, start, step), Shape{}), dtype_of<T>));
    };
    const M model = bind_model<M>(flat, Value(std::get<states>(rest)));  // buffers, or what is there instead
    flat.graph->training = {true, std::get<numbers + 1>(rest).id, 0, {}};
    const auto result = call(Loss, model, std::get<numbers + 2 + I>(rest)...);
    const auto loss = first_of(result);
    static_assert(is_floating(std::remove_cvref_t<decltype(loss)>::element) && std::remove_cvref_t<decltype(loss)>::extents.size().is(1),
                  "typegrad: the first result of a loss function is a floating-point scalar; reduce it with tg::mean");
    const P g(flat_gradient(loss, model));
    const auto updated = Optimizer::update(flat, g, std::array<P, states>{P(std::get<S>(rest))...}, h);
    return std::tuple_cat(std::tuple(updated.parameters), std::tuple(updated.state[S]...),
                          std::tuple(std::remove_cvref_t<std::tuple_element_t<states + B, Rest>>(flat_buffers(model))...), flatten(result));
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

  // The seed decides the initial values and what the layers draw in each step.
  explicit Trainer(Optimizer with = {}, std::uint64_t seed = 0) : optimizer(with), parameters_(seed), seed_(seed) {}

  // May be changed between steps (learning-rate schedules).
  Optimizer optimizer;

  // One step on a batch. Returns what Loss returns, computed with the parameters before the update.
  template <class... X>
  auto step(const X&... x) {
    hyper_.assign(optimizer.hyperparameters(step_ + 1));
    const auto bits = rng::block(seed_, 0, rng::step_node, static_cast<std::uint64_t>(step_));
    key_.assign(std::array{static_cast<std::int64_t>((std::uint64_t{bits.word[1]} << 32) | bits.word[0])});
    auto results = std::apply([&](const auto&... kept) { return program(x...)(parameters_.flat(), kept..., hyper_, key_, x...); },
                              std::tuple_cat(state_, parameters_.buffers()));
    ++step_;
    return detail::nest<1 + states + buffers, loss_result<X...>>(results);
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
  // A copy of the averaged parameters that optim::WithEma keeps; before the first update, of the parameters. Buffers are
  // those of the model.
  // trainer.averaged().apply<loss>(x, y) evaluates with them, trainer.averaged().save(path) writes them.
  parameters_type averaged() const
    requires requires { Optimizer::average; }
  {
    auto values = parameters_.values();
    if (updates() > 0) values.parameters.values = state_[Optimizer::average].to_vector();
    parameters_type copy;
    copy.assign(values);
    return copy;
  }

  // Parameters under their paths, the optimizer's state and the number of steps: enough to go on exactly.
  void save(const std::filesystem::path& path) const {
    const auto values = parameters_.values();
    std::vector<io::TensorView> views = values.views();
    std::array<std::vector<T>, states> kept;
    for (std::size_t s = 0; s < states; ++s) {
      kept[s] = state_[s].to_vector();
      views.push_back(detail::view_of(state_name(s), dtype_of<T>, std::vector<std::int64_t>{parameters_type::count}, reinterpret_cast<const std::byte*>(kept[s].data())));
    }
    io::write_safetensors(path, views, {{"format", "pt"}, {"step", std::to_string(step_)}, {"seed", std::to_string(seed_)}});
  }
  // Reads what save() wrote, or a model alone, in which case the optimizer starts anew. On Error nothing is changed.
  void load(const std::filesystem::path& path) {
    const io::SafetensorsFile file(path);
    auto values = parameters_.values();
    values.read(file);
    std::array<std::vector<T>, states> kept;
    const bool resumed = file.find(state_name(0)) != nullptr;
    for (std::size_t s = 0; s < states; ++s) {
      kept[s].resize(values.parameters.values.size());
      if (!resumed) continue;
      file.read(detail::find_tensor(file, state_name(s), dtype_of<T>, std::vector<std::int64_t>{parameters_type::count}), std::as_writable_bytes(std::span(kept[s])));
    }
    const auto step = resumed ? number_in(file, "step", std::int64_t{0}) : 0;
    const auto seed = resumed ? number_in(file, "seed", seed_) : seed_;
    parameters_.assign(values);
    for (std::size_t s = 0; s < states; ++s) state_[s].assign(kept[s]);
    step_ = step;
    seed_ = seed;
  }

  // The program of a step on inputs of these types, for reports and profiles.
  template <class... X>
  static auto& program(const X&...) {
    return step_program<X...>::instance();
  }

 private:
  using flat_tensor = typename parameters_type::flat_tensor;
  using flat_expr = typename flat_tensor::expr_type;
  static constexpr std::size_t buffers = std::tuple_size_v<typename parameters_type::buffer_tensors>;

  template <class... B>
  static std::tuple<typename B::expr_type...> exprs_of(const std::tuple<B...>&);
  using buffer_exprs = decltype(exprs_of(std::declval<typename parameters_type::buffer_tensors>()));
  template <template <class...> class F, class... E>
  static std::type_identity<F<E...>> with_inputs(const std::tuple<E...>&);

  template <class... E>
  using LossTracer = Tracer<detail::ModelFunction<M, Loss>, E...>;
  template <class... X>
  using loss_result = typename decltype(with_inputs<LossTracer>(
      std::tuple_cat(std::tuple<flat_expr>(), buffer_exprs(), std::tuple<typename X::expr_type...>())))::type::result;
  template <class... E>
  using StepProgram = Program<Device, detail::TrainStep<M, Loss, Optimizer>, E...>;
  template <class... X>
  using step_program = typename decltype(with_inputs<StepProgram>(
      std::tuple_cat(std::array<flat_expr, 1 + states>(), buffer_exprs(),
                     std::tuple<Expr<float, hyper_count>, Expr<std::int64_t>, typename X::expr_type...>())))::type;

  static std::string state_name(std::size_t s) { return detail::concat_text("optimizer.state.", s); }
  // A number in the file's metadata, or the other one where it has none of that name.
  template <class N>
  static N number_in(const io::SafetensorsFile& file, const char* name, N otherwise) {
    const auto found = file.metadata().find(name);
    if (found == file.metadata().end()) return otherwise;
    const char* last = found->second.data() + found->second.size();
    N n = 0;
    const auto [end, error] = std::from_chars(found->second.data(), last, n);
    if (error != std::errc{} || end != last || n < N{0})
      throw Error(detail::concat_text("'", file.path().string(), "': expected a number as '", name, "', found '", found->second, "'"));
    return n;
  }

  parameters_type parameters_;
  std::array<flat_tensor, states> state_;
  Tensor<Device, float, hyper_count> hyper_;
  Tensor<Device, std::int64_t> key_;
  std::uint64_t seed_;
  std::int64_t step_ = 0;
};

}  // namespace tg
