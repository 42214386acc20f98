#!/usr/bin/env bash
# A real Slurm on one machine, for tests and experiments: munged, slurmctld and slurmd on loopback, with all their
# files in one folder. No accounting database. Debian or Ubuntu, as root.
#
#   tools/slurm_loopback.sh install          Debian's slurm-wlm and munge, where they are missing
#   tools/slurm_loopback.sh start FOLDER     then: export SLURM_CONF=FOLDER/slurm.conf
#   tools/slurm_loopback.sh status FOLDER
#   tools/slurm_loopback.sh stop FOLDER      the daemons and remaining jobs; the folder stays
#
# Two nodes with 2 CPUs each, and three partitions: 'low' and 'high' have the first node, 'wide' has both. A job in 'high'
# pre-empts one in 'low' or 'wide', which is requeued.
set -euo pipefail

NODES=(loopback loopback2)

fail() { echo "slurm_loopback: $*" >&2; exit 2; }

installed() {
  local name
  for name in munged slurmctld slurmd sbatch; do command -v "$name" > /dev/null || return 1; done
}

install() {
  installed && return
  [ "$(id -u)" = 0 ] || fail "installing Slurm needs root."
  command -v apt-get > /dev/null || fail "there is no apt-get here: install Slurm and munge another way."
  export DEBIAN_FRONTEND=noninteractive
  local get=(apt-get -qq -o DPkg::Lock::Timeout=300)
  # The packages start their services with an empty configuration; only the daemons of this script should run.
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod +x "$policy"
    trap "rm -f $policy" EXIT
  fi
  "${get[@]}" update
  "${get[@]}" install --no-install-recommends --yes slurm-wlm munge
}

free_ports() {
  python3 -c '
import socket
held = [socket.socket() for _ in range(3)]
for each in held:
    each.bind(("127.0.0.1", 0))
print(*(each.getsockname()[1] for each in held))'
}

configure() {  # FOLDER CONTROLLER_PORT NODE_PORT NODE_PORT
  local host
  host=$(hostname -s)
  cat > "$1/slurm.conf" << CONF
ClusterName=loopback
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$2
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# cred_expire is also how long a requeued job waits before it starts again.
AuthInfo=socket=$1/munge/socket,cred_expire=5
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool/%n
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/%n.pid
SlurmctldLogFile=$1/slurmctld.log
SlurmdLogFile=$1/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
JobRequeue=1
KillWait=20
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=200000,bf_interval=2
NodeName=${NODES[0]} NodeHostname=$host NodeAddr=127.0.0.1 Port=$3 CPUs=2 RealMemory=2000 State=UNKNOWN
NodeName=${NODES[1]} NodeHostname=$host NodeAddr=127.0.0.1 Port=$4 CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=low Nodes=${NODES[0]} Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=30 MaxTime=60
PartitionName=high Nodes=${NODES[0]} PriorityTier=10 PreemptMode=OFF MaxTime=60
PartitionName=wide Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=30 MaxTime=60
CONF
}

start() {
  local folder=$1
  installed || fail "Slurm and munge are not installed: run '$0 install' first."
  [ "$(id -u)" = 0 ] || fail "starting Slurm needs root."
  [ ! -e "$folder/slurm.conf" ] || fail "$folder/slurm.conf is there already: 'stop' it and choose another folder."
  mkdir -p "$folder"
  folder=$(cd "$folder" && pwd)
  chmod 755 "$folder"
  mkdir -p "$folder/munge" "$folder/state" "$folder/spool"
  dd if=/dev/urandom of="$folder/munge/key" bs=1 count=1024 status=none
  chmod 600 "$folder/munge/key"
  chown -R munge: "$folder/munge"
  runuser -u munge -- munged --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" \
    || { cat "$folder/munge/log" >&2; fail "munged does not start."; }
  # shellcheck disable=SC2046
  configure "$folder" $(free_ports)
  export SLURM_CONF="$folder/slurm.conf"
  slurmctld -c
  local node
  for node in "${NODES[@]}"; do
    mkdir -p "$folder/spool/$node"
    slurmd -N "$node"
  done
  for _ in $(seq 100); do
    if [ "$(sinfo --noheader --Node --partition wide --format %t 2> /dev/null | grep -c idle)" = "${#NODES[@]}" ]; then
      echo "export SLURM_CONF=$SLURM_CONF"
      return
    fi
    sleep 0.2
  done
  tail -n 20 "$folder"/*.log >&2
  stop "$folder"
  fail "Slurm does not come up; its logs are in $folder."
}

pid_of() { cat "$1" 2> /dev/null || true; }

# A pid in a file may belong to another process by now: only one with the daemon's name counts.
is() {  # NAME PID
  [ -n "$2" ] && [ "$(cat "/proc/$2/comm" 2> /dev/null)" = "$1" ]
}

end() {  # NAME PIDFILE
  local pid
  pid=$(pid_of "$2")
  is "$1" "$pid" || return 0
  kill "$pid"
  for _ in $(seq 100); do
    is "$1" "$pid" || return 0
    sleep 0.1
  done
  kill -KILL "$pid" 2> /dev/null || true
}

stop() {
  local folder=$1
  [ -e "$folder/slurm.conf" ] || fail "$folder holds no Slurm: there is no slurm.conf in it."
  export SLURM_CONF="$folder/slurm.conf"
  if is slurmctld "$(pid_of "$folder/slurmctld.pid")"; then
    timeout 10 scancel --full --signal=KILL --state=RUNNING --user=root 2> /dev/null || true
    timeout 10 scancel --user=root 2> /dev/null || true
    for _ in $(seq 50); do
      [ -n "$(timeout 5 squeue --noheader 2> /dev/null)" ] || break
      sleep 0.2
    done
  fi
  local node
  for node in "${NODES[@]}"; do end slurmd "$folder/$node.pid"; done
  end slurmctld "$folder/slurmctld.pid"
  end munged "$folder/munge/pid"
  rm -f "$folder/slurm.conf"
}

status() {
  local folder=$1 node
  tell munged "$folder/munge/pid"
  tell slurmctld "$folder/slurmctld.pid"
  for node in "${NODES[@]}"; do tell slurmd "$folder/$node.pid"; done
  [ ! -e "$folder/slurm.conf" ] || SLURM_CONF="$folder/slurm.conf" sinfo
}

tell() {  # NAME PIDFILE
  if is "$1" "$(pid_of "$2")"; then echo "$1: running"; else echo "$1: not running"; fi
}

case "${1:-}:$#" in
  install:1) install ;;
  start:2) start "$2" ;;
  stop:2) stop "$2" ;;
  status:2) status "$2" ;;
  *) fail "use: $0 install | start FOLDER | status FOLDER | stop FOLDER" ;;
esac
