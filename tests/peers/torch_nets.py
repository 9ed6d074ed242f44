"""torch_nets.py -- the shipped networks in PyTorch, written after the model files, without dropout.

NETS[name](size) is a module whose parameters and running statistics come in the order of the model file's, so that weights are
handed over by position; shapes are compared on the way.
"""
from torch import cat, nn, tanh
from torch.nn.functional import max_pool2d, relu


class Lenet(nn.Module):
    def __init__(self, _size):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.dense1, self.dense2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = max_pool2d(tanh(self.conv1(x)), 2)
        x = max_pool2d(tanh(self.conv2(x)), 2)
        return self.dense2(tanh(self.dense1(x.flatten(1))))


def mlp(_size):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


class Conv(nn.Sequential):
    """A convolution without bias, batch norm, and an activation or none."""

    def __init__(self, c, k, kernel, stride=1, pad=0, groups=1, eps=1e-5, act=nn.ReLU):
        super().__init__(nn.Conv2d(c, k, kernel, stride, pad, groups=groups, bias=False), nn.BatchNorm2d(k, eps=eps),
                         *([act()] if act else []))


class Head(nn.Sequential):
    """The mean of each channel, and a dense layer."""

    def __init__(self, c, classes):
        super().__init__(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, classes))


# ---- residual networks

class Basic(nn.Module):
    def __init__(self, c, k, stride):
        super().__init__()
        self.body = nn.Sequential(Conv(c, k, 3, stride, 1), Conv(k, k, 3, 1, 1, act=None))
        self.shortcut = nn.Identity() if stride == 1 else nn.Conv2d(c, k, 1, stride, bias=False)

    def forward(self, x):
        return relu(self.body(x) + self.shortcut(x))


def resnet_cifar(depth):
    layers, c = [Conv(3, 16, 3, 1, 1)], 16
    for k in 16, 32, 64:
        for i in range((depth - 2) // 6):
            layers.append(Basic(c, k, 2 if i == 0 and k > 16 else 1))
            c = k
    return nn.Sequential(*layers, Head(64, 10))


class Bottleneck(nn.Module):
    def __init__(self, c, width, stride):
        super().__init__()
        self.body = nn.Sequential(Conv(c, width, 1, stride), Conv(width, width, 3, 1, 1), Conv(width, 4 * width, 1, act=None))
        plain = stride == 1 and c == 4 * width
        self.shortcut = nn.Identity() if plain else Conv(c, 4 * width, 1, stride, act=None)

    def forward(self, x):
        return relu(self.body(x) + self.shortcut(x))


def resnet50(classes):
    layers, c = [Conv(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1)], 64
    for width, blocks in (64, 3), (128, 4), (256, 6), (512, 3):
        for i in range(blocks):
            layers.append(Bottleneck(c, width, 2 if i == 0 and width > 64 else 1))
            c = 4 * width
    return nn.Sequential(*layers, Head(c, classes))


# ---- MobileNetV2

class Inverted(nn.Module):
    def __init__(self, c, k, expand, stride):
        super().__init__()
        inner = expand * c
        widen = [] if expand == 1 else [Conv(c, inner, 1, act=nn.ReLU6)]
        self.body = nn.Sequential(*widen, Conv(inner, inner, 3, stride, 1, groups=inner, act=nn.ReLU6), Conv(inner, k, 1, act=None))
        self.added = stride == 1 and c == k

    def forward(self, x):
        return self.body(x) + x if self.added else self.body(x)


def mobilenet_v2(_size):
    layers, c = [Conv(3, 32, 3, 2, 1, act=nn.ReLU6)], 32
    for expand, k, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                      (6, 320, 1, 1)):
        for i in range(blocks):
            layers.append(Inverted(c, k, expand, stride if i == 0 else 1))
            c = k
    return nn.Sequential(*layers, Conv(c, 1280, 1, act=nn.ReLU6), Head(1280, 1000))


# ---- Inception-v3

class Pooled(nn.Sequential):
    def __init__(self, c, k):
        super().__init__(nn.AvgPool2d(3, 1, 1, count_include_pad=False), conv(c, k))


class Side(nn.Module):
    """Branches of the same input, their channels side by side."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return cat([b(x) for b in self.branches], 1)


def conv(c, k, rows=1, columns=1, stride=1, same=True):
    return Conv(c, k, (rows, columns), stride, (rows // 2, columns // 2) if same else 0, eps=1e-3)


def chain(c, *layers):
    """Of (filters, rows, columns, further words of conv)."""
    convs = []
    for k, rows, columns, *more in layers:
        convs.append(conv(c, k, rows, columns, *more))
        c = k
    return nn.Sequential(*convs)


HALF = (2, False)                                     # stride 2, no padding


def grid35(c, pool):
    return Side(conv(c, 64), chain(c, (48, 1, 1), (64, 5, 5)), chain(c, (64, 1, 1), (96, 3, 3), (96, 3, 3)), Pooled(c, pool))


def reduce35(c):
    return Side(conv(c, 384, 3, 3, *HALF), chain(c, (64, 1, 1), (96, 3, 3), (96, 3, 3, *HALF)), nn.MaxPool2d(3, 2))


def grid17(c, w):
    return Side(conv(c, 192), chain(c, (w, 1, 1), (w, 1, 7), (192, 7, 1)),
                chain(c, (w, 1, 1), (w, 7, 1), (w, 1, 7), (w, 7, 1), (192, 1, 7)), Pooled(c, 192))


def reduce17(c):
    return Side(chain(c, (192, 1, 1), (320, 3, 3, *HALF)), chain(c, (192, 1, 1), (192, 1, 7), (192, 7, 1), (192, 3, 3, *HALF)),
                nn.MaxPool2d(3, 2))


def split(c):
    return Side(conv(c, 384, 1, 3), conv(c, 384, 3, 1))


def grid8(c):
    return Side(conv(c, 320), nn.Sequential(conv(c, 384), split(384)),
                nn.Sequential(conv(c, 448), conv(448, 384, 3, 3), split(384)), Pooled(c, 192))


def inception_v3(_size):
    return nn.Sequential(
        conv(3, 32, 3, 3, *HALF), conv(32, 32, 3, 3, 1, False), conv(32, 64, 3, 3), nn.MaxPool2d(3, 2),
        conv(64, 80), conv(80, 192, 3, 3, 1, False), nn.MaxPool2d(3, 2),
        grid35(192, 32), grid35(256, 64), grid35(288, 64), reduce35(288),
        grid17(768, 128), grid17(768, 160), grid17(768, 160), grid17(768, 192), reduce17(768), grid8(1280), grid8(2048),
        Head(2048, 1000))


# ---- DenseNet-BC

class Grown(nn.Module):
    def __init__(self, c, growth):
        super().__init__()
        self.body = nn.Sequential(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 4 * growth, 1, bias=False),
                                  nn.BatchNorm2d(4 * growth), nn.ReLU(), nn.Conv2d(4 * growth, growth, 3, 1, 1, bias=False))

    def forward(self, x):
        return cat([x, self.body(x)], 1)


def densenet(depth, growth=12):
    c = 2 * growth
    layers = [nn.Conv2d(3, c, 3, 1, 1, bias=False)]
    for stage in range(3):
        if stage > 0:
            layers += [nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, c // 2, 1, bias=False), nn.AvgPool2d(2)]
            c //= 2
        for _ in range((depth - 4) // 6):
            layers.append(Grown(c, growth))
            c += growth
    return nn.Sequential(*layers, nn.BatchNorm2d(c), nn.ReLU(), Head(c, 10))
