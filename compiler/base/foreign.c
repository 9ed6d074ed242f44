/* foreign.c -- words of PyTorch, Keras and other frameworks, each with Tenon's word for the same
 * thing.  The edit distance cannot find these pairs: their spellings differ too much. */
#include "base/text.h"
#include <string.h>

static const struct {
    const char *theirs, *ours;
} words[] = {
    {"linear", "dense"},
    {"Linear", "dense"},
    {"Dense", "dense"},
    {"fc", "dense"},
    {"conv", "conv2d"},
    {"Conv2D", "conv2d"},
    {"Conv2d", "conv2d"},
    {"convolution", "conv2d"},
    {"BatchNorm2d", "batch_norm"},
    {"batchnorm", "batch_norm"},
    {"BatchNormalization", "batch_norm"},
    {"bn", "batch_norm"},
    {"MaxPool2d", "max_pool"},
    {"max_pool2d", "max_pool"},
    {"MaxPooling2D", "max_pool"},
    {"AvgPool2d", "avg_pool"},
    {"avg_pool2d", "avg_pool"},
    {"AveragePooling2D", "avg_pool"},
    {"adaptive_avg_pool2d", "global_avg_pool"},
    {"GlobalAveragePooling2D", "global_avg_pool"},
    {"cat", "concat"},
    {"concatenate", "concat"},
    {"permute", "transpose"},
    {"view", "reshape"},
    {"swish", "silu"},
    {"clip", "min"},
    {"padding", "pad"},
    {"kernel_size", "kernel"},
    {"strides", "stride"},
    {"out_channels", "filters"},
    {"out_features", "units"},
    {"dilation_rate", "dilation"},
    {"num_groups", "groups"},
    {"use_bias", "bias"},
    {"eps", "epsilon"},
    {"p", "rate"},
    {"cross_entropy", "softmax_cross_entropy"},
    {"CrossEntropyLoss", "softmax_cross_entropy"},
    {"categorical_crossentropy", "softmax_cross_entropy"},
    {"sparse_categorical_crossentropy", "softmax_cross_entropy"},
    {"mean_squared_error", "mse"},
    {"MSELoss", "mse"},
    {"mse_loss", "mse"},
    {"mae", "l1"},
    {"mean_absolute_error", "l1"},
    {"L1Loss", "l1"},
    {"l1_loss", "l1"},
    {"HuberLoss", "huber"},
    {"huber_loss", "huber"},
    {"SmoothL1Loss", "huber"},
    {"smooth_l1_loss", "huber"},
    {"SGD", "sgd"},
    {"Adam", "adam"},
    {"RMSprop", "rmsprop"},
    {"lr", "optimizer"},
    {"learning_rate", "lr"},
    {"learning_rate", "optimizer"},
    {"momentum", "optimizer"},
    {"weight_decay", "optimizer"},
    {"lr_scheduler", "schedule"},
    {"batch_size", "batch"},
    {"num_epochs", "epochs"},
    {"initializer", "init"},
    {"kaiming", "he"},
    {"kaiming_normal", "he"},
    {"xavier_uniform", "xavier"},
    {"glorot_uniform", "glorot"},
    {"random_flip", "flip_horizontal"},
    {"horizontal_flip", "flip_horizontal"},
    {"RandomHorizontalFlip", "flip_horizontal"},
    {"RandomCrop", "random_crop"},
    {"float32", "f32"},
    {"float64", "f64"},
    {"double", "f64"},
    {"Tensor", "f32"},
};

const char *foreign_word(const char *word, const char *const *candidate, int n)
{
    for (size_t w = 0; w < sizeof words / sizeof *words; w++)
        for (int i = 0; i < n && strcmp(words[w].theirs, word) == 0; i++)
            if (strcmp(words[w].ours, candidate[i]) == 0)
                return candidate[i];
    return NULL;
}
