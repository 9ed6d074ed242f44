"""deep_nets.py -- the deep networks, written once for the frameworks that have no module of them: NETS[name](b, x, word).

`b` builds in its framework and knows these words; x is whatever it hands on:
    conv(x, filters, rows, columns, stride, pad_rows, pad_columns)    without bias
    norm(x, epsilon)   relu(x)   add(x, y)   concat(parts)
    max_pool(x, size, stride, pad)   avg_pool(x)     3 x 3, stride 1, padded by 1, which does not count
    head(x, classes)                                 the mean of each channel, and a dense layer
Weights are asked for in the order of our model files, which tests/peers/torch_nets.py keeps too.
"""


class Shapes:
    """A builder that only counts channels: `found` becomes the list of (kind, shape) of all weights, with shapes as in Tenon's files."""

    def __init__(self):
        self.found = []

    def conv(self, x, filters, rows, columns, *_):
        self.found.append(("weight", (filters, x, rows, columns)))
        return filters

    def norm(self, x, _epsilon):
        self.found += [(kind, (x,)) for kind in ("gain", "shift", "mean", "variance")]
        return x

    def relu(self, x):
        return x

    def add(self, x, _y):
        return x

    def concat(self, parts):
        return sum(parts)

    def max_pool(self, x, *_):
        return x

    def avg_pool(self, x):
        return x

    def head(self, x, classes):
        self.found += [("weight", (classes, x)), ("bias", (classes,))]
        return classes


def shapes(net, word):
    b = Shapes()
    NETS[net](b, 3, word)
    return b.found


def layer(b, x, filters, kernel=1, stride=1, pad=0, act=True, eps=1e-5):
    """A convolution, batch norm, and relu or none; kernel and pad: a number or (rows, columns)."""
    (r, s), (p, q) = [v if isinstance(v, tuple) else (v, v) for v in (kernel, pad)]
    x = b.norm(b.conv(x, filters, r, s, stride, p, q), eps)
    return b.relu(x) if act else x


# ---- residual networks

def resnet_cifar(b, x, depth):
    x = layer(b, x, 16, 3, 1, 1)
    for k in 16, 32, 64:
        for i in range((depth - 2) // 6):
            stride = 2 if i == 0 and k > 16 else 1
            y = layer(b, layer(b, x, k, 3, stride, 1), k, 3, 1, 1, act=False)
            x = b.relu(b.add(y, x if stride == 1 else b.conv(x, k, 1, 1, stride, 0, 0)))
    return b.head(x, 10)


def resnet50(b, x, classes):
    x = b.max_pool(layer(b, x, 64, 7, 2, 3), 3, 2, 1)
    for width, blocks in (64, 3), (128, 4), (256, 6), (512, 3):
        for i in range(blocks):
            stride = 2 if i == 0 and width > 64 else 1
            y = layer(b, layer(b, x, width, 1, stride), width, 3, 1, 1)
            y = layer(b, y, 4 * width, act=False)
            x = b.relu(b.add(y, x if i else layer(b, x, 4 * width, 1, stride, act=False)))
    return b.head(x, classes)


# ---- Inception-v3

def same(b, x, k, rows=1, columns=1):
    return layer(b, x, k, (rows, columns), 1, (rows // 2, columns // 2), eps=1e-3)


def half(b, x, k):
    return layer(b, x, k, 3, 2, eps=1e-3)


def grid35(b, x, pool):
    return b.concat([same(b, x, 64), same(b, same(b, x, 48), 64, 5, 5),
                     same(b, same(b, same(b, x, 64), 96, 3, 3), 96, 3, 3), same(b, b.avg_pool(x), pool)])


def reduce35(b, x):
    return b.concat([half(b, x, 384), half(b, same(b, same(b, x, 64), 96, 3, 3), 96), b.max_pool(x, 3, 2, 0)])


def grid17(b, x, w):
    parts = [same(b, x, 192), same(b, same(b, same(b, x, w), w, 1, 7), 192, 7, 1)]
    y = same(b, x, w)
    for k, rows, columns in (w, 7, 1), (w, 1, 7), (w, 7, 1), (192, 1, 7):
        y = same(b, y, k, rows, columns)
    return b.concat([*parts, y, same(b, b.avg_pool(x), 192)])


def reduce17(b, x):
    y = half(b, same(b, x, 192), 320)
    z = half(b, same(b, same(b, same(b, x, 192), 192, 1, 7), 192, 7, 1), 192)
    return b.concat([y, z, b.max_pool(x, 3, 2, 0)])


def split(b, x):
    return [same(b, x, 384, 1, 3), same(b, x, 384, 3, 1)]


def grid8(b, x):
    first = same(b, x, 320)
    second = split(b, same(b, x, 384))
    third = split(b, same(b, same(b, x, 448), 384, 3, 3))
    return b.concat([first, *second, *third, same(b, b.avg_pool(x), 192)])


def inception_v3(b, x, _size):
    x = same(b, layer(b, half(b, x, 32), 32, 3, eps=1e-3), 64, 3, 3)
    x = layer(b, same(b, b.max_pool(x, 3, 2, 0), 80), 192, 3, eps=1e-3)
    x = b.max_pool(x, 3, 2, 0)
    for pool in 32, 64, 64:
        x = grid35(b, x, pool)
    x = reduce35(b, x)
    for w in 128, 160, 160, 192:
        x = grid17(b, x, w)
    x = reduce17(b, x)
    return b.head(grid8(b, grid8(b, x)), 1000)


NETS = {"resnet50": resnet50, "resnet_cifar": resnet_cifar, "inception_v3": inception_v3}
