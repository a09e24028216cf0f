/* The same as predict.c, with libtorch: the C++ library inside PyTorch's wheel. bench/predict compiles it.
 *
 *     torch_predict modules|functions f32|f64 THREADS SAMPLES CALLS
 *
 * It is asked as serve.h says. Nothing keeps gradients, the inputs are a tensor already, and the outputs may stay one.
 * `modules` is what a user of torch::nn writes; `functions` calls the operators, and has tanh in place.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <torch/torch.h>

static double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static torch::nn::Sequential make_model(const std::vector<int64_t> &widths) {
    torch::nn::Sequential model;
    for (size_t i = 0; i + 1 < widths.size(); i++) {
        model->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
        if (i + 2 < widths.size()) model->push_back(torch::nn::Tanh());
    }
    model->eval();
    return model;
}

/* Weights and biases in turn. */
static torch::Tensor run_functions(const std::vector<torch::Tensor> &parameters, torch::Tensor x) {
    for (size_t i = 0; i + 1 < parameters.size(); i += 2) {
        x = torch::linear(x, parameters[i], parameters[i + 1]);
        if (i + 2 < parameters.size()) x.tanh_();
    }
    return x;
}

int main(int argc, char **argv) {
    enum { FORM = 1, PRECISION, THREADS, SAMPLES, CALLS, ARGUMENTS };
    if (argc != ARGUMENTS) {
        std::fprintf(stderr, "usage: torch_predict modules|functions f32|f64 THREADS SAMPLES CALLS\n");
        return 2;
    }
    const bool modules = !std::strcmp(argv[FORM], "modules");
    const auto type = std::strcmp(argv[PRECISION], "f64") ? torch::kFloat32 : torch::kFloat64;
    const int64_t samples = std::atoll(argv[SAMPLES]), calls = std::atoll(argv[CALLS]);
    const std::vector<int64_t> widths = {32, 128, 128, 8};
    torch::set_num_threads(std::atoi(argv[THREADS]));
    c10::InferenceMode inference;
    torch::nn::Sequential model = make_model(widths);
    model->to(type);
    const std::vector<torch::Tensor> parameters = model->parameters();
    const torch::Tensor inputs = torch::rand({samples, widths.front()}, type) * 2 - 1;
    volatile double last = 0; /* so that nothing can be left out */
    const auto pass = [&] {
        for (int64_t i = 0; i < calls; i++) {
            const torch::Tensor outputs = modules ? model->forward(inputs) : run_functions(parameters, inputs);
            last = *static_cast<const unsigned char *>(outputs.const_data_ptr());
        }
    };
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        char *rest;
        const long warm = std::strtol(line.c_str(), &rest, 10), passes = std::strtol(rest, nullptr, 10);
        if (passes < 1) return 1;
        std::vector<double> took;
        for (long i = 0; i < warm; i++) pass();
        for (long i = 0; i < passes; i++) {
            const double begin = seconds();
            pass();
            took.push_back(seconds() - begin);
        }
        std::sort(took.begin(), took.end());
        std::printf("%.9f\n", took[took.size() / 2]);
        std::fflush(stdout);
    }
    return 0;
}
