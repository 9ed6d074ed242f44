"""works.py -- what is measured: the works (networks with a batch and goals), and the peers with their modes."""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Work:
    """A training step.  must, aim: Tenon's samples/s over the best peer's; *_v3: where the program is for AVX2."""
    model: str
    batch: int
    must: float
    aim: float
    threads: int = 0                                  # 0: all processors
    must_v3: float = 0                                # goal with AVX2; 0: the same goal
    aim_v3: float = 0
    share: tuple = ()                                 # goals for the share of the FMA peak (nominal), required and desired, with AVX-512
    share_v3: tuple = ()                              # the same with AVX2
    quick: bool = False
    image: tuple = ()                                 # (C, H, W) of synthetic samples; (): MNIST
    no_zeros: bool = False                            # synthetic images instead of MNIST: four fifths of MNIST are zeros, which Tenon skips
    classes: int = 10
    settings: tuple = ()                              # --set of `tenon build`: no randomness, no change of the samples
    tokens: int = 0                                   # samples are tokens below this number; 0: bytes
    labels: tuple = ()                                # shape of a sample's labels: (T,) if every position has one
    deep: bool = False                                # has batch norm: the first loss and gradient are compared, not later losses
    layer: str = ""                                   # a single layer, in bench/yardsticks: the mode of the peer; compared like deep networks

    @property
    def name(self):
        if self.layer:
            return f"lstm layer, f, b, {self.layer} B={self.batch}"
        return f"{self.model} B={self.batch}" + (f", {self.threads} thread" if self.threads else "") + (", no zeros" if self.no_zeros else "")

    def wanted(self, v3):
        """-> must, aim, and the goals for the share, or ()"""
        if v3:
            return self.must_v3 or self.must, self.aim_v3 or self.aim, self.share_v3
        return self.must, self.aim, self.share


WORKS = [
    Work("lenet", 64, 3, 4.5),
    Work("lenet", 128, 3, 4.5, share=(1.0, 1.3), share_v3=(1.2, 1.5), quick=True),
    Work("lenet", 512, 3, 4.5),
    Work("lenet", 4096, 3, 4.5),
    Work("lenet_relu", 64, 2.5, 3.5),
    Work("lenet_relu", 512, 2.5, 3.5),
    Work("mlp", 64, 2, 2.6, must_v3=1.5),
    Work("mlp", 128, 2, 2.6, must_v3=1.5, quick=True),
    Work("mlp", 4096, 1.3, 1.5),
    Work("mlp_wide", 32, 1.3, 2),
    Work("lenet", 128, 2.5, 3, threads=1, quick=True),
    Work("mlp", 128, 1.3, 1.45, threads=1, must_v3=0.9, quick=True),
    Work("mlp", 128, 2, 2.6, must_v3=1.5, no_zeros=True),
    Work("mlp", 128, 1.3, 1.45, threads=1, must_v3=0.9, no_zeros=True),
    Work("lstm_synthetic", 128, 1.4, 1.6, image=(40, 60), classes=60),
    Work("lstm_synthetic", 32, 1.5, 1.85, image=(40, 60), classes=60),
    Work("lstm_imdb", 32, 1.5, 2.2, image=(80,), classes=2, tokens=20000,
         settings=("data=synthetic(samples=640, test_samples=64, vocab=20000, classes=2)", "schedule=constant")),
    Work("gpt_char", 64, 1.2, 1.6, image=(64,), classes=65, tokens=65, labels=(64,),
         settings=("data=synthetic(samples=640, test_samples=64, vocab=65)", "schedule=constant", "model.dropout=0", "model.layers=4", "model.heads=4",
                   "model.width=128", "model.time=64")),
    Work("lstm_layer", 128, 1.1, 1.25, image=(40, 60), deep=True, layer="40,60,128"),
    Work("lstm_layer", 16, 1.1, 1.25, image=(128, 256), deep=True, layer="128,256,256",
         settings=("model.time=128", "model.features=256", "model.width=256")),
    Work("resnet50_cifar10", 32, 1.8, 2.5, image=(3, 32, 32), deep=True),
    Work("resnet56_cifar10", 32, 1.5, 2.2, image=(3, 32, 32), settings=("augment=[]", "normalize=none", "schedule=constant"), deep=True),
    Work("resnet50", 16, 1.2, 1.5, image=(3, 224, 224), classes=1000, settings=("optimizer=sgd(lr=0.01)",), deep=True),
    Work("inception_v3", 8, 1.2, 1.6, image=(3, 299, 299), classes=1000, settings=("optimizer=sgd(lr=0.01)",), deep=True),
]

SMALL = ("lenet", "lenet_relu", "mlp", "mlp_wide")
DEEP = tuple(w.model for w in WORKS if w.deep and not w.layer)
LSTMS = ("lstm_synthetic", "lstm_imdb")
SEQUENCES = LSTMS + ("gpt_char",)
CONVOLUTIONS = ("lenet", "lenet_relu") + DEEP


@dataclass(frozen=True)
class Peer:
    """A program to compare with.  kind: python (script in bench/peers), c (source in bench/yardsticks), tenon (Tenon with other options)."""
    name: str
    kind: str
    source: str                                       # the script, the source file, or flags of `tenon build`
    mode: str = "-"                                   # argument for the script; options for a program of Tenon
    models: tuple = SMALL
    venv: str = "peers"                               # or "mxnet"
    env: dict = field(default_factory=dict)
    libraries: tuple = ()                             # that a yardstick is linked with
    quick: bool = False
    further: bool = False                             # shown, but never the best peer: a library used by hand, or an old framework

    @property
    def ours(self):
        return self.kind == "tenon"


MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "2000000000"}   # else glibc returns the pages in every step: -12 % to -60 %
XLA = {"JAX_PLATFORMS": "cpu"}
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2"}

PEERS = [
    Peer("tenon --kernels=blas", "tenon", "--kernels=blas", quick=True),
    Peer("openblas", "c", "lenet_openblas.c", models=("lenet",), libraries=("openblas",), quick=True, further=True),
    Peer("openblas", "c", "mlp_openblas.c", models=("mlp",), libraries=("openblas",), quick=True, further=True),
    Peer("onednn", "c", "onednn.cpp", models=("lenet", "lenet_relu", "mlp"), libraries=("dnnl",), quick=True),
    Peer("onednn", "c", "lstm_onednn.cpp", models=("lstm_layer",), libraries=("dnnl",)),
    Peer("torch eager", "python", "torch_step.py", "eager", SMALL + SEQUENCES + DEEP, env=MALLOC),
    Peer("torch eager, channels last", "python", "torch_step.py", "eager_cl", CONVOLUTIONS, env=MALLOC),
    Peer("torch compile", "python", "torch_step.py", "compile", SMALL + SEQUENCES + DEEP, env=MALLOC),
    Peer("torch compile, channels last", "python", "torch_step.py", "compile_cl", CONVOLUTIONS, env=MALLOC),
    Peer("jax", "python", "jax_step.py", models=SMALL + SEQUENCES, env=XLA),
    Peer("tensorflow graph", "python", "tf_step.py", "graph", SMALL + DEEP, env=QUIET),
    Peer("tensorflow xla", "python", "tf_step.py", "xla", env=QUIET),
    Peer("keras tensorflow", "python", "keras_step.py", "tensorflow", LSTMS, env=QUIET),
    Peer("keras jax", "python", "keras_step.py", "jax", LSTMS, env=XLA),
    Peer("mxnet", "python", "mxnet_step.py", models=SMALL + DEEP, venv="mxnet", further=True),
]

# Settings that keep the peers from AVX-512 (--isa avx2).  PyTorch's MKL and TensorFlow's Eigen have no such setting
# and use all instructions.
AVX2_ONLY = {"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2",
             "XLA_FLAGS": "--xla_cpu_max_isa=AVX2", "OPENBLAS_CORETYPE": "Haswell"}
