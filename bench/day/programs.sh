# programs.sh -- the programs of bench/first-day: networks, and the forms in which each runs on the GPU.  Sourced by bench/first-day.
#
#   network NAME FILE DATA [OPTIONS]    a model and the options of its build.  DATA: a directory of data/ in the pack, or - for synthetic samples
#   form NAME FORM [OPTIONS]            programs/NAME.FORM: this network with further options
#   processor MODEL BATCH SECONDS WHEN PEERS [OPTIONS]
#                                       a program for the processors, cpu/MODEL-BATCH, whose steps part t measures by threads.  SECONDS: how
#                                       long with one thread; three steps at least.  WHEN: first, later or last, as one thread takes longer.
#                                       PEERS, with commas: eager and cl (channels last) of PyTorch, the same on one thread (eager1, cl1), jax
#
# Part a compares the gradients and losses of each form with those of a processor in f64 (want/).  Forms in tf32, bf16 and f16 round;
# their bounds stand in bench/day/run.
gpu_programs() {
    local op
    network lenet models/lenet.tn mnist --batch 64
    form lenet own; form lenet cudnn --kernels=cudnn; form lenet tf32 --dtype tf32; form lenet bf16 --dtype bf16; form lenet f16 --dtype f16
    form lenet persistent --kernels=persistent
    form lenet nccl --comm nccl --kernels=own
    network mlp models/mlp.tn mnist --batch 64
    form mlp own; form mlp cudnn --kernels=cudnn; form mlp tf32 --dtype tf32; form mlp bf16 --dtype bf16; form mlp f16 --dtype f16
    form mlp persistent --kernels=persistent
    for op in geometry norm sequence loops recurrence elements edges places sync products parts few narrow lanes scaled last tokens packs \
        layers inputs outputs target own; do network $op tests/cuda/$op.tn -; form $op own; form $op cudnn --kernels=cudnn; done
    network moves tests/cuda/moves.tn cifar; form moves own
    network up bench/day/up.tn -; form up own; form up cudnn --kernels=cudnn; form up bf16 --dtype bf16
    form norm persistent --kernels=persistent
    for op in layers inputs outputs target; do form $op persistent --kernels=persistent; done
    for op in inputs outputs target; do form $op bf16 --dtype bf16; done
    for op in tf32 bf16 f16; do form narrow $op --dtype $op; form products $op --dtype $op; form layers $op --dtype $op; done
    network two_heads models/two_heads.tn heads; form two_heads own; form two_heads cudnn --kernels=cudnn; form two_heads bf16 --dtype bf16
    form two_heads f16 --dtype f16; form outputs f16 --dtype f16
    network siamese models/siamese.tn pairs; form siamese own; form siamese cudnn --kernels=cudnn; form siamese bf16 --dtype bf16
    network resnet20 models/resnet56_cifar10.tn cifar --set model.depth=20 --set 'augment=[]' --set normalize=none
    form resnet20 own; form resnet20 cudnn --kernels=cudnn; form resnet20 bf16 --dtype bf16; form resnet20 persistent --kernels=persistent
    for op in $("$TENON" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p'); do
        "$TENON" ops "$op" --example > "$pack/models/op_$op.tn"
        network "op_$op" "$pack/models/op_$op.tn" -
        form "op_$op" own
        case $op in conv2d | dense | matmul | lstm | gru | rnn | causal_attention | batch_norm) form "op_$op" cudnn --kernels=cudnn ;; esac
    done
}

# The networks of bench/threads, as bench/run sets them: without what a peer does not do, such as dropout and changed images.
processor_programs() {
    local batch
    for batch in 64 128; do
        processor lenet $batch 0.5 first cl,cl1,jax
        processor lenet_relu $batch 0.5 first cl,cl1,jax
    done
    processor lenet 4096 1 first cl,jax
    processor mlp 4096 0.5 first eager,eager1,jax
    processor lstm_synthetic 128 0.5 first eager,eager1,jax
    processor lstm_imdb 32 0.5 first eager,eager1,jax --set 'data=synthetic(samples=640, test_samples=64, vocab=20000, classes=2)'
    processor resnet56_cifar10 32 0.5 first cl --set 'augment=[]' --set normalize=none
    processor resnet50_cifar10 32 0.5 first eager
    processor resnet50 16 6.8 later eager,cl --set 'optimizer=sgd(lr=0.01)'
    processor inception_v3 16 10 later eager --set 'optimizer=sgd(lr=0.01)'
    processor gpt_char 64 27 later eager,jax --set 'data=synthetic(samples=640, test_samples=64, vocab=65)' --set model.dropout=0
    processor resnet50 32 13.5 last cl --set 'optimizer=sgd(lr=0.01)'
}
