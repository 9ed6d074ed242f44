# slurm.sh -- sourced: starts a Slurm of its own in $slurm.  Set slurm (its directory) and port (of its controller; the ports of the
# nodes follow it) before.

# slurm_conf NAME CONTROLLER NODES [SETTINGS]: the configuration of cluster NAME in $SLURM_CONF, and a munge for it.
# NODES is what stands in a line of nodes, SETTINGS are lines of their own.  Nodes called N need $slurm/spool/N and $slurm/tmp/N.
slurm_conf() {
    mkdir -p "$slurm/state"
    export SLURM_CONF=$slurm/slurm.conf
    cat > "$SLURM_CONF" << END
ClusterName=$1
SlurmctldHost=$2
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge.sock
CredType=cred/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool/%n
TmpFS=$slurm/tmp/%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=5
JobRequeue=1
SchedulerParameters=bf_interval=2,sched_interval=2,requeue_delay=1
${4:-}
NodeName=$3 CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
    head -c 128 /dev/urandom > "$slurm/munge.key"
    chmod 600 "$slurm/munge.key"
    munged --force --key-file="$slurm/munge.key" --socket="$slurm/munge.sock" --seed-file="$slurm/munge.seed" \
        --pid-file="$slurm/munged.pid" --log-file="$slurm/munged.log" 2> /dev/null
}

# slurm_idle NODES COMMAND...: waits up to half a minute for that many idle nodes; COMMAND runs a program on the
# controller's host
slurm_idle() {
    local nodes=$1 _; shift
    for _ in $(seq 150); do
        [ "$("$@" sinfo -h -t idle -o %D 2> /dev/null | head -n 1)" = "$nodes" ] && return
        sleep 0.2
    done
    return 1
}

# slurm_end: ends what was started from $slurm, and removes $work
slurm_end() {
    local file
    for file in "$slurm"/*.pid; do [ ! -e "$file" ] || kill "$(cat "$file")" 2> /dev/null || true; done
    rm -rf "$work" 2> /dev/null || { sleep 1; rm -rf "$work"; }
}
