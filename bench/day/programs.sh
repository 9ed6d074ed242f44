# programs.sh -- the programs of bench/first-day: networks, and the forms in which each runs on the GPU.  Sourced by bench/first-day.
#
#   network NAME FILE DATA [OPTIONS]    a model and the options of its build.  DATA: mnist, cifar, or - for the model's own samples
#   form NAME FORM [OPTIONS]            programs/NAME.FORM: this network with further options
#   processor NAME FILE STEPS [OPTIONS] a program for the processors, whose steps part t measures by threads
#
# Part a compares the gradients and losses of each form with those of a processor in f64 (want/).  Forms in tf32, bf16 and f16 round;
# their bounds stand in bench/day/run.
all_programs() {
    local op
    network lenet models/lenet.tn mnist --batch 64
    form lenet own; form lenet cudnn --kernels=cudnn; form lenet tf32 --dtype tf32; form lenet bf16 --dtype bf16; form lenet f16 --dtype f16
    form lenet persistent --kernels=persistent
    form lenet nccl --comm nccl --kernels=own
    network mlp models/mlp.tn mnist --batch 64
    form mlp own; form mlp cudnn --kernels=cudnn; form mlp tf32 --dtype tf32; form mlp bf16 --dtype bf16; form mlp f16 --dtype f16
    form mlp persistent --kernels=persistent
    for op in geometry norm sequence loops places sync products parts few narrow lanes scaled; do network $op tests/cuda/$op.tn -; form $op own; form $op cudnn --kernels=cudnn; done
    network moves tests/cuda/moves.tn cifar; form moves own
    form norm persistent --kernels=persistent
    for op in tf32 bf16 f16; do form narrow $op --dtype $op; form products $op --dtype $op; done
    network resnet20 models/resnet56_cifar10.tn cifar --set model.depth=20 --set 'augment=[]' --set normalize=none
    form resnet20 own; form resnet20 cudnn --kernels=cudnn; form resnet20 bf16 --dtype bf16; form resnet20 persistent --kernels=persistent
    for op in $("$TENON" ops | sed -n 's/^  \([a-z0-9_]*\)(.*/\1/p'); do
        "$TENON" ops "$op" --example > "$pack/models/op_$op.tn"
        network "op_$op" "$pack/models/op_$op.tn" -
        form "op_$op" own
        case $op in conv2d | dense | matmul | lstm | gru | rnn | causal_attention | batch_norm) form "op_$op" cudnn --kernels=cudnn ;; esac
    done
    processor lenet models/lenet.tn 200 --batch 128; processor mlp models/mlp.tn 1000 --batch 128
    processor resnet20 models/resnet56_cifar10.tn 10 --batch 128 --set model.depth=20 --set 'augment=[]'
    processor resnet50 models/resnet50.tn 3 --batch 16; processor lstm models/lstm_synthetic.tn 10 --batch 128; processor gpt models/gpt_char.tn 3 --batch 8
}
