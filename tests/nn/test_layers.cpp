// Layers: what they compute, what a training step changes in them, and the paths of their parameters.
#include "../backends/compare.hpp"

using namespace test;
using tg::dyn;

namespace {

template <class M>
std::vector<std::string> paths() {
  std::vector<std::string> r;
  for (const tg::Slot& s : tg::ParameterLayout<M>::slots()) r.emplace_back(s.path);
  for (const tg::Slot& s : tg::BufferLayout<M>::slots()) r.emplace_back(s.path);
  return r;
}

struct Dropping {
  tg::Param<float, 8> scale{tg::init::ones()};
  tg::nn::Dropout first{.rate = 0.25}, second{.rate = 0.25};
  static constexpr auto members = tg::members("scale", &Dropping::scale, "first", &Dropping::first);
};
constexpr auto dropping = [](auto m, auto x) {
  const auto a = m.first(x * m.scale), b = m.second(x * m.scale);
  return std::tuple(tg::mean(a), a, b);
};

struct Normalised {
  tg::nn::BatchNorm<3> norm;
  tg::nn::BatchNorm<3> fresh{.momentum = 0.5};
  static constexpr auto members = tg::members("norm", &Normalised::norm, "fresh", &Normalised::fresh);
};
constexpr auto normalised = [](auto m, auto x) {
  const auto y = m.norm(x);
  return std::tuple(tg::mean(tg::square(y) * 0.5 + m.fresh(m.fresh(x))), y);
};

using Images = Tensor<Cpu, float, dyn<"n">, 3, 2, 2>;

template <class V>
std::pair<double, double> channel_moments(const Images& x, int c, V correction) {
  double sum = 0, squares = 0;
  const double n = static_cast<double>(x.extent(0)) * 4;
  auto each = [&](auto f) {
    for (std::int64_t i = 0; i < x.extent(0); ++i)
      for (int p = 0; p < 4; ++p) f(static_cast<double>(x.at(i, c, p / 2, p % 2)));
  };
  each([&](double v) { sum += v; });
  each([&](double v) { squares += (v - sum / n) * (v - sum / n); });
  return {sum / n, squares / (n - correction)};
}

}  // namespace

TEST_CASE("dropout drops in training steps alone, anew each time, and as the seed says") {
  using X = Tensor<Cpu, float, dyn<"n">, 8>;
  const X x = random<float, dyn<"n">, 8>({500, 8}, 1, 1, 2);
  tg::Trainer<Cpu, Dropping, dropping, tg::optim::Sgd> a({.learning_rate = 0}, 7), b({.learning_rate = 0}, 7), c({.learning_rate = 0}, 8);
  const auto [loss, first, second] = a.step(x);
  int dropped = 0, both = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const bool one = first.data()[i] == 0, two = second.data()[i] == 0;
    dropped += one;
    both += one && two;
    if (!one) CHECK(first.data()[i] == doctest::Approx(x.data()[i] / 0.75f));
  }
  CHECK(dropped > 900);  // of 4000, of which 1000 are expected; 4 standard deviations are 110
  CHECK(dropped < 1100);
  CHECK(both > 180);  // 250 expected, 4 standard deviations 61
  CHECK(both < 320);
  const auto [same_loss, same, also_same] = b.step(x);
  CHECK(first.to_vector() == same.to_vector());
  CHECK(second.to_vector() == also_same.to_vector());
  const auto [other_loss, other, unused] = c.step(x);
  CHECK(first.to_vector() != other.to_vector());
  const auto [next_loss, next, next_second] = a.step(x);
  CHECK(first.to_vector() != next.to_vector());
  const auto [mean, passed, also_passed] = a.evaluate(x);
  CHECK(passed.to_vector() == x.to_vector());
}

TEST_CASE("the seed of the random keys is part of a checkpoint") {
  const auto path = std::filesystem::temp_directory_path() / "typegrad_test_layers_seed.safetensors";
  using X = Tensor<Cpu, float, dyn<"n">, 8>;
  const X x = random<float, dyn<"n">, 8>({5, 8}, 1, 1, 2);
  tg::Trainer<Cpu, Dropping, dropping> a({}, 7), b({}, 8);
  a.step(x);
  a.save(path);
  b.load(path);
  CHECK(std::get<1>(a.step(x)).to_vector() == std::get<1>(b.step(x)).to_vector());
  std::filesystem::remove(path);
}

TEST_CASE("batch norm keeps running statistics") {
  const Images x = random<float, dyn<"n">, 3, 2, 2>({5, 3, 2, 2}, 2, -1, 3);
  tg::Trainer<Cpu, Normalised, normalised, tg::optim::Sgd> t({.learning_rate = 0}, 1);
  tg::Trainer<Reference, Normalised, normalised, tg::optim::Sgd> reference({.learning_rate = 0}, 1);
  const auto [loss, y] = t.step(x);
  check_close(std::tuple(loss, y), reference.step(x.to<Reference>()), 1e-5);
  const auto held = std::get<0>(t.parameters().buffers()).to_vector();
  const auto& slots = tg::BufferLayout<Normalised>::slots();
  REQUIRE(slots.size() == 4);
  for (int c = 0; c < 3; ++c) {
    const auto [mean, biased] = channel_moments(x, c, 0);
    const double unbiased = biased * 20 / 19;
    CHECK(y.at(3, c, 1, 0) == doctest::Approx((x.at(3, c, 1, 0) - mean) / std::sqrt(biased + 1e-5)).epsilon(1e-5));
    const auto at = [&](int slot) { return held[static_cast<std::size_t>(slots[static_cast<std::size_t>(slot)].offset + c)]; };
    CHECK(at(0) == doctest::Approx(0.1 * mean).epsilon(1e-5));
    CHECK(at(1) == doctest::Approx(0.9 + 0.1 * unbiased).epsilon(1e-5));
    // The other norm sees x and then its own result, of mean 0 and biased variance 1.
    CHECK(at(2) == doctest::Approx(0.5 * (0.5 * mean)).epsilon(1e-4));
    CHECK(at(3) == doctest::Approx(0.5 * (0.5 + 0.5 * unbiased) + 0.5 * 20.0 / 19).epsilon(1e-4));
  }
  // Inference uses them and leaves them.
  const auto [unused, inferred] = t.evaluate(x);
  for (int c = 0; c < 3; ++c) {
    const auto mean = static_cast<double>(held[static_cast<std::size_t>(slots[0].offset + c)]), var = static_cast<double>(held[static_cast<std::size_t>(slots[1].offset + c)]);
    CHECK(inferred.at(1, c, 0, 1) == doctest::Approx((x.at(1, c, 0, 1) - mean) / std::sqrt(var + 1e-5)).epsilon(1e-5));
  }
  CHECK(std::get<0>(t.parameters().buffers()).to_vector() == held);

  const auto path = std::filesystem::temp_directory_path() / "typegrad_test_layers.safetensors";
  t.save(path);
  tg::Parameters<Cpu, Normalised> loaded(9);
  loaded.load(path);
  CHECK(std::get<0>(loaded.buffers()).to_vector() == held);
  std::filesystem::remove(path);
}

TEST_CASE("the variance of one number does not spoil a running one") {
  static constexpr auto one = [](auto m, auto x) { return tg::mean(m(x)); };
  tg::Trainer<Cpu, tg::nn::BatchNorm<3>, one> t({}, 1);
  t.step(Tensor<Cpu, float, dyn<"n">, 3>::full(2.0f, {1, 3}));
  const auto held = std::get<0>(t.parameters().buffers()).to_vector();
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK(held[c] == doctest::Approx(0.2));
    CHECK(held[3 + c] == doctest::Approx(0.9));
  }
}

TEST_CASE("buffers are averaged neither by the optimizer nor lost without an update") {
  static constexpr auto loss = [](auto m, auto x) { return tg::mean(tg::square(m(x) - 1.0)); };
  using Averaged = tg::optim::WithEma<tg::optim::Sgd>;
  tg::Trainer<Cpu, tg::nn::BatchNorm<3>, loss, Averaged> t(Averaged{{.learning_rate = 0.1f}}, 1);
  for (int i = 0; i < 3; ++i) t.step(random<float, dyn<"n">, 3>({6, 3}, static_cast<std::uint64_t>(i)));
  CHECK(std::get<0>(t.averaged().buffers()).to_vector() == std::get<0>(t.parameters().buffers()).to_vector());
  CHECK(t.averaged().flat().to_vector() != t.parameters().flat().to_vector());
}

namespace {

struct Tower {
  tg::nn::Conv2d<1, 4, 3, tg::nn::ConvOptions{.stride = 2, .padding = 1, .bias = false}> stem;
  std::array<tg::nn::Residual<tg::nn::Sequential<tg::nn::Conv2d<4, 4, 3, tg::nn::ConvOptions{.padding = tg::same_padding}>, tg::nn::BatchNorm<4>, tg::nn::Relu>>, 2> blocks;
  tg::nn::Sequential<tg::nn::GlobalAvgPool2d, tg::nn::Linear<4, 3, float, false>> head;
  constexpr auto operator()(auto x) const { return head(blocks[1](blocks[0](tg::relu(stem(x))))); }
  static constexpr auto members = tg::members("stem", &Tower::stem, "blocks", &Tower::blocks, "head", &Tower::head);
};
constexpr auto tower_loss = [](auto m, auto x, auto y) { return tg::cross_entropy(m(x), y); };

}  // namespace

TEST_CASE("sequences and residuals name their parts and train as the reference does") {
  CHECK(paths<Tower>() == std::vector<std::string>{"stem.weight", "blocks.0.0.weight", "blocks.0.0.bias", "blocks.0.1.weight", "blocks.0.1.bias", "blocks.1.0.weight",
                                                   "blocks.1.0.bias", "blocks.1.1.weight", "blocks.1.1.bias", "head.1.weight", "blocks.0.1.running_mean",
                                                   "blocks.0.1.running_var", "blocks.1.1.running_mean", "blocks.1.1.running_var"});
  // Not Adam: the gradient of a bias in front of a norm is rounding alone, which Adam would blow up to full steps.
  tg::Trainer<Cpu, Tower, tower_loss, tg::optim::Sgd> cpu({.learning_rate = 0.1f}, 3);
  tg::Trainer<Reference, Tower, tower_loss, tg::optim::Sgd> reference({.learning_rate = 0.1f}, 3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto x = random<float, dyn<"n">, 1, 8, 8>({4, 1, 8, 8}, i);
    const auto y = Tensor<Cpu, int, dyn<"n">>::from(std::vector<int>{0, 1, 2, 1}, {4});
    check_close(cpu.step(x, y), reference.step(x.to<Reference>(), y.to<Reference>()), 1e-4);
  }
  check_close(cpu.parameters().flat(), reference.parameters().flat(), 1e-4);
  check_close(cpu.parameters().buffers(), reference.parameters().buffers(), 1e-4);
}

namespace {

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

// What PyTorch's documentation says the cells compute, on plain numbers; the parameters are as in the flat buffer's slots.
template <class Cell>
struct Plain {
  std::vector<double> wi, wh, bi, bh;
  int in, hidden;
  explicit Plain(const tg::Parameters<Cpu, Cell>& p, int i, int h) : in(i), hidden(h) {
    const auto flat = p.flat().to_vector();
    std::vector<double>* parts[] = {&wi, &wh, &bi, &bh};
    for (std::size_t k = 0; k < 4; ++k) {
      const tg::Slot& s = tg::ParameterLayout<Cell>::slots()[k];
      parts[k]->assign(flat.begin() + s.offset, flat.begin() + s.offset + s.size);
    }
  }
  double input(const double* x, int row) const {
    double r = bi[static_cast<std::size_t>(row)];
    for (int k = 0; k < in; ++k) r += wi[static_cast<std::size_t>(row * in + k)] * x[k];
    return r;
  }
  double recurrent(const std::vector<double>& h, int row) const {
    double r = bh[static_cast<std::size_t>(row)];
    for (int k = 0; k < hidden; ++k) r += wh[static_cast<std::size_t>(row * hidden + k)] * h[static_cast<std::size_t>(k)];
    return r;
  }
};

constexpr int times = 3, in = 4, hidden = 5;
constexpr auto sequence = [](auto cell, auto x) { return tg::nn::scan(cell, x).first; };

template <class Cell, class Next>
void check_cell(Next next) {
  const tg::Parameters<Cpu, Cell> p(4);
  const auto x = random<double, times, dyn<"batch">, in>({times, 2, in}, 5);
  const auto y = p.template apply<sequence>(x);
  const Plain<Cell> plain(p, in, hidden);
  for (int b = 0; b < 2; ++b) {
    std::vector<double> h(hidden, 0.0), c(hidden, 0.0);
    for (int t = 0; t < times; ++t) {
      double now[in];
      for (int k = 0; k < in; ++k) now[k] = x.at(t, b, k);
      next(plain, now, h, c);
      for (int k = 0; k < hidden; ++k) CHECK(y.at(t, b, k) == doctest::Approx(h[static_cast<std::size_t>(k)]).epsilon(1e-12));
    }
  }
}

// A cell of a user's own: no projection, a state of its own.
struct Decay {
  tg::Param<double, 4> rate{tg::init::constant(0.5)};
  constexpr auto initial(auto x) const { return tg::full_like(x, 1.0); }
  constexpr auto operator()(auto x, auto s) const { return s * rate + x; }
  static constexpr auto members = tg::members("rate", &Decay::rate);
};

}  // namespace

TEST_CASE("recurrent cells compute what PyTorch documents") {
  check_cell<tg::nn::RnnCell<in, hidden, double>>([](const auto& p, const double* x, std::vector<double>& h, std::vector<double>&) {
    const auto before = h;
    for (int k = 0; k < hidden; ++k) h[static_cast<std::size_t>(k)] = std::tanh(p.input(x, k) + p.recurrent(before, k));
  });
  check_cell<tg::nn::LstmCell<in, hidden, double>>([](const auto& p, const double* x, std::vector<double>& h, std::vector<double>& c) {
    const auto before = h;
    for (int k = 0; k < hidden; ++k) {
      const auto gate = [&](int g) { return p.input(x, g * hidden + k) + p.recurrent(before, g * hidden + k); };
      double& cell = c[static_cast<std::size_t>(k)];
      cell = logistic(gate(1)) * cell + logistic(gate(0)) * std::tanh(gate(2));
      h[static_cast<std::size_t>(k)] = logistic(gate(3)) * std::tanh(cell);
    }
  });
  check_cell<tg::nn::GruCell<in, hidden, double>>([](const auto& p, const double* x, std::vector<double>& h, std::vector<double>&) {
    const auto before = h;
    for (int k = 0; k < hidden; ++k) {
      const auto gate = [&](int g) { return p.input(x, g * hidden + k) + p.recurrent(before, g * hidden + k); };
      const double z = logistic(gate(1)), n = std::tanh(p.input(x, 2 * hidden + k) + logistic(gate(0)) * p.recurrent(before, 2 * hidden + k));
      h[static_cast<std::size_t>(k)] = (1 - z) * n + z * before[static_cast<std::size_t>(k)];
    }
  });
}

TEST_CASE("any cell runs over a sequence, and its gradient is the reference's") {
  const tg::Parameters<Cpu, Decay> p(1);
  const auto x = random<double, times, 2, in>({times, 2, in}, 6);
  const auto y = p.apply<sequence>(x);
  double s = 1;
  for (int t = 0; t < times; ++t) CHECK(y.at(t, 1, 2) == doctest::Approx(s = s * 0.5 + x.at(t, 1, 2)));

  using Cell = tg::nn::LstmCell<in, hidden>;
  static constexpr auto loss = [](auto cell, auto v) { return tg::mean(tg::square(tg::nn::scan(cell, v).first)); };
  tg::Trainer<Cpu, Cell, loss> cpu({.learning_rate = 0.01f}, 3);
  tg::Trainer<Reference, Cell, loss> reference({.learning_rate = 0.01f}, 3);
  const auto v = random<float, times, dyn<"batch">, in>({times, 6, in}, 7);
  for (int i = 0; i < 3; ++i) check_close(cpu.step(v), reference.step(v.to<Reference>()), 1e-4);
  check_close(cpu.parameters().flat(), reference.parameters().flat(), 1e-3);
}

namespace {

struct Mixed {
  tg::nn::Embedding<7, 16> table;
  tg::nn::LayerNorm<16> layer;
  tg::nn::RmsNorm<16> rms;
  tg::nn::GroupNorm<2, 16> group;
  tg::nn::Conv1d<16, 8, 3, tg::nn::ConvOptions{.padding = 1, .groups = 2}> mix;
  tg::nn::ConvTranspose2d<8, 2, 2, 2> enlarge;
  constexpr auto operator()(auto ids) const {
    const auto rows = rms(layer(table(ids)));                     // [n, 6, 16]
    const auto image = tg::reshape<dyn<"n">, 8, 2, 3>(mix(group(tg::transpose<1, 2>(rows))));
    return enlarge(image);  // [n, 2, 4, 6]
  }
  static constexpr auto members = tg::members("table", &Mixed::table, "layer", &Mixed::layer, "rms", &Mixed::rms, "group", &Mixed::group, "mix", &Mixed::mix, "enlarge",
                                              &Mixed::enlarge);
};

}  // namespace

TEST_CASE("embedding, norms and convolutions train as the reference does") {
  static constexpr auto loss = [](auto m, auto ids) { return tg::mean(tg::square(m(ids) - 0.5)); };
  tg::Trainer<Cpu, Mixed, loss> cpu({.learning_rate = 0.01f}, 3);
  tg::Trainer<Reference, Mixed, loss> reference({.learning_rate = 0.01f}, 3);
  const auto ids = Tensor<Cpu, int, dyn<"n">, 6>::from(std::vector<int>{0, 1, 2, 3, 4, 5, 6, 6, 6, 0, 0, 1}, {2, 6});
  for (int i = 0; i < 3; ++i) check_close(cpu.step(ids), reference.step(ids.to<Reference>()), 1e-4);
  check_close(cpu.parameters().flat(), reference.parameters().flat(), 2e-3);
}
