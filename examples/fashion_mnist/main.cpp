// Trains a 784-512-256-10 perceptron on Fashion-MNIST, saves it, loads it again and compares devices.
//
//   fashion_mnist [--device cpu|cuda] [--epochs N] [--seed N] [--limit IMAGES] [--data DIR] [--save FILE]
//
// The model is written once; with nvcc the same file is compiled for both devices.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "typegrad/typegrad.hpp"
#if defined(__CUDACC__)
#include "typegrad/cuda.hpp"
#endif

struct Mlp {
  tg::nn::Linear<784, 512> hidden1;
  tg::nn::Linear<512, 256> hidden2;
  tg::nn::Linear<256, 10> head;
  constexpr auto operator()(auto images) const {
    return head(tg::relu(hidden2(tg::relu(hidden1(images)))));
  }
  static constexpr auto members = tg::members("hidden1", &Mlp::hidden1, "hidden2", &Mlp::hidden2, "head", &Mlp::head);
};

constexpr auto loss = [](const Mlp& model, auto images, auto labels) {
  const auto logits = model(images);
  return std::tuple(tg::cross_entropy(logits, labels), tg::accuracy(logits, labels));
};

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string device = "cpu";
  int epochs = 5;
  std::uint64_t seed = 1;
  std::int64_t limit = 0;  // images to use; 0 for all
  std::filesystem::path data{tg::data::fashion_mnist_directory};
  std::filesystem::path save = "fashion_mnist.safetensors";
};

struct Report {
  double images_per_second = 0, gflops = 0, gigabytes = 0;
  std::size_t kernels = 0;
  std::int64_t arena = 0;
};

constexpr std::int64_t batch = 128;
constexpr float pixel_mean = 0.2860f, pixel_stddev = 0.3530f;  // of the training images

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void keep_first(tg::data::ImageDataset& d, std::int64_t count) {
  if (count <= 0 || count >= d.count) return;
  d.count = count;
  d.images.resize(static_cast<std::size_t>(count * d.rows * d.cols));
  d.labels.resize(static_cast<std::size_t>(count));
}

template <class Device>
using Images = tg::Tensor<Device, float, tg::dyn<"batch">, 784>;
template <class Device>
using Labels = tg::Tensor<Device, std::int32_t, tg::dyn<"batch">>;

template <class Device, class Trainer>
double test_accuracy(const Trainer& trainer, const tg::data::ImageDataset& test) {
  tg::data::BatchLoader loader(test, {.batch = batch, .shuffle = false, .mean = pixel_mean, .stddev = pixel_stddev});
  loader.start_epoch(0);
  double correct = 0;
  while (const tg::data::Batch* b = loader.next()) {
    const auto [l, accuracy] = trainer.evaluate(Images<Device>::from(b->images, {b->size, 784}), Labels<Device>::from(b->labels, {b->size}));
    correct += static_cast<double>(accuracy.item()) * static_cast<double>(b->size);
  }
  return correct / static_cast<double>(test.count);
}

template <class Device>
Report train(const Options& options, const tg::data::ImageSplits& data) {
  using Trainer = tg::Trainer<Device, Mlp, loss, tg::optim::AdamW>;
  Trainer trainer({.learning_rate = 1e-3f, .weight_decay = 0.01f}, options.seed);
  tg::data::BatchLoader loader(data.train, {.batch = batch, .seed = options.seed, .mean = pixel_mean, .stddev = pixel_stddev});
  const std::int64_t per_epoch = loader.batches_per_epoch(), total = per_epoch * options.epochs;
  const auto start = Clock::now();
  double training = 0;
  std::printf("%d parameters on %s\n", Trainer::parameters_type::count, options.device.c_str());
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    // The rate falls linearly to a tenth, which makes the last epochs settle.
    trainer.optimizer.learning_rate = 1e-3f * (1.0f - 0.9f * static_cast<float>(epoch) / static_cast<float>((std::max)(options.epochs - 1, 1)));
    loader.start_epoch(static_cast<std::uint32_t>(epoch));
    const auto epoch_start = Clock::now();
    double loss_sum = 0, correct = 0;
    std::int64_t seen = 0;
    while (const tg::data::Batch* b = loader.next()) {
      const auto [l, accuracy] = trainer.step(Images<Device>::from(b->images, {b->size, 784}), Labels<Device>::from(b->labels, {b->size}));
      if (b->index == 0 && epoch == 0) std::printf("first step after %.2f s\n", seconds_since(start));
      if (b->index % 50 != 0 && b->index + 1 != per_epoch) {
        seen += b->size;
        continue;
      }
      // Reading a value waits for the device, so it is not done at every step.
      seen += b->size;
      loss_sum += static_cast<double>(l.item());
      correct += static_cast<double>(accuracy.item());
      const double elapsed = seconds_since(epoch_start), done = static_cast<double>(epoch * per_epoch + b->index + 1);
      const double left = (training + elapsed) / done * (static_cast<double>(total) - done);
      const double samples = static_cast<double>(b->index / 50 + 1 + (b->index % 50 != 0));
      std::printf("\repoch %2d/%d  loss %.4f  accuracy %.4f  %8.0f images/s  %4.0f s left ", epoch + 1, options.epochs, loss_sum / samples, correct / samples,
                  static_cast<double>(seen) / elapsed, left);
      std::fflush(stdout);
    }
    training += seconds_since(epoch_start);
    std::printf(" test accuracy %.4f\n", test_accuracy<Device>(trainer, data.test));
  }
  const double before = test_accuracy<Device>(trainer, data.test);
  trainer.save(options.save);
  Trainer restored({}, options.seed + 1);
  restored.load(options.save);
  const double after = test_accuracy<Device>(restored, data.test);
  std::printf("saved to %s; reloaded: test accuracy %.4f, %s\n", options.save.c_str(), after, before == after ? "identical" : "DIFFERENT");
  if (before != after) throw tg::Error("the reloaded model does not behave as the saved one");

  Report r;
  r.images_per_second = training > 0 ? static_cast<double>(data.train.count * options.epochs) / training : 0;
  auto& program = Trainer::program(Images<Device>::zeros({batch, 784}), Labels<Device>::zeros({batch}));
  const tg::Plan& plan = program.plan();
  const std::int64_t size = batch;
  const tg::Cost cost = tg::cost_of(plan, &size);
  r.gflops = cost.flops * r.images_per_second / static_cast<double>(batch) * 1e-9;
  r.gigabytes = cost.bytes * r.images_per_second / static_cast<double>(batch) * 1e-9;
  r.kernels = plan.kernels.size();
  r.arena = program.device_program().executor.arena_bytes();
  return r;
}

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (i + 1 >= argc) throw tg::Error("expected a value after " + key);
    const std::string value = argv[++i];
    auto number = [&] {
      std::int64_t n = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), n);
      if (error != std::errc{} || end != value.data() + value.size() || n < 0) throw tg::Error(key + ": expected a number, found '" + value + "'");
      return n;
    };
    if (key == "--device") options.device = value;
    else if (key == "--epochs") options.epochs = static_cast<int>(number());
    else if (key == "--seed") options.seed = static_cast<std::uint64_t>(number());
    else if (key == "--limit") options.limit = number();
    else if (key == "--data") options.data = value;
    else if (key == "--save") options.save = value;
    else throw tg::Error("unknown option " + key + "; known: --device --epochs --seed --limit --data --save");
  }
  tg::data::ImageSplits data = tg::data::load_fashion_mnist(options.data);
  keep_first(data.train, options.limit);
  keep_first(data.test, options.limit);
  std::string gpu_note;
  Report cpu, gpu;
  bool ran_gpu = false;
  if (options.device == "cpu") {
    cpu = train<tg::Cpu>(options, data);
  } else if (options.device == "cuda") {
#if defined(__CUDACC__)
    gpu = train<tg::Cuda>(options, data);
    ran_gpu = true;
#else
    throw tg::Error("this program was compiled without CUDA; build the target fashion_mnist_cuda with nvcc");
#endif
  } else {
    throw tg::Error("--device: expected cpu or cuda, found '" + options.device + "'");
  }
#if defined(__CUDACC__)
  gpu_note = tg::cuda_device_count() > 0 ? (ran_gpu ? "" : "not run (--device cuda)") : "no GPU present";
#else
  gpu_note = "compiled without CUDA";
#endif
  const std::string cpu_note = ran_gpu ? "not run (--device cpu)" : "";
  auto line = [&](const char* what, auto value_of, const char* format) {
    char a[64], b[64];
    std::snprintf(a, sizeof(a), format, value_of(cpu));
    std::snprintf(b, sizeof(b), format, value_of(gpu));
    std::printf("%-22s %24s %24s\n", what, cpu_note.empty() ? a : cpu_note.c_str(), ran_gpu ? b : gpu_note.c_str());
  };
  std::printf("\n%-22s %24s %24s\n", "training", "CPU", "GPU");
  line("images/s", [](const Report& r) { return r.images_per_second; }, "%.0f");
  line("GFLOP/s", [](const Report& r) { return r.gflops; }, "%.1f");
  line("GB/s", [](const Report& r) { return r.gigabytes; }, "%.1f");
  line("kernels per step", [](const Report& r) { return static_cast<double>(r.kernels); }, "%.0f");
  line("peak arena bytes", [](const Report& r) { return static_cast<double>(r.arena); }, "%.0f");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "fashion_mnist: %s\n", e.what());
    return 1;
  }
}
