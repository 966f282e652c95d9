# shellcheck shell=sh
# To be read into a batch script ("." or "source"): an agent on each node of this job, for as long as the job runs.
# docs/howto/slurm.md
#
#   #SBATCH --nodes=2 --gpus-per-node=8
#   export OOMWATCH_SERVER=http://monitor:8642 OOMWATCH_TOKEN_FILE=$HOME/.oomwatch-token
#   . $HOME/oomwatch/deploy/slurm/job-agent.sh
#   srun python train.py
#
# OOMWATCH_AGENT names the agent's program, oomwatch-agent.pyz included; OOMWATCH_AGENT_LOG a folder for what it says.
# All other settings are the agent's own (OOMWATCH_...). A training goes on where no agent can be started.

oomwatch_agents_start() {
    if [ -z "${SLURM_JOB_ID:-}" ]; then
        echo "oomwatch: this is no job of Slurm; no agent is started" >&2
        return 0
    fi
    # The name by which an agent of the node would call the run, which it reads from the trainer's environment.
    OOMWATCH_RUN=${OOMWATCH_RUN:-${SLURM_JOB_NAME:-job}-$SLURM_JOB_ID}
    export OOMWATCH_RUN
    oomwatch_nodes=${SLURM_JOB_NUM_NODES:-${SLURM_NNODES:-1}}
    # A step beside the training's (--overlap takes nothing from it), within the job's limits, so that the limit on memory
    # which the kernel enforces on this very job is seen. One that ends takes nobody along (--kill-on-bad-exit=0).
    srun --overlap --nodes="$oomwatch_nodes" --ntasks="$oomwatch_nodes" --ntasks-per-node=1 --cpus-per-task=1 \
        --kill-on-bad-exit=0 --input=none --job-name=oomwatch --mpi=none \
        --output="${OOMWATCH_AGENT_LOG:-.}/oomwatch-$SLURM_JOB_ID-%N.log" \
        "${OOMWATCH_AGENT:-oomwatch-agent}" &
    oomwatch_agents=$!
    trap 'oomwatch_agents_stop' EXIT
}

# Has them say goodbye, so that nobody is alarmed: Slurm would kill them when the script ends, and srun does when it is
# sent SIGTERM itself. They take three seconds at most. Whatever fails here fails alone: under "set -e" the job would be
# told as failed for it.
oomwatch_agents_stop() {
    [ -n "${oomwatch_agents:-}" ] || return 0
    for oomwatch_step in $(squeue --steps --noheader --jobs="$SLURM_JOB_ID" --format='%i/%j' 2>/dev/null); do
        case $oomwatch_step in
            */oomwatch) scancel --signal=TERM "${oomwatch_step%/*}" 2>/dev/null || : ;;
        esac
    done
    oomwatch_seconds=15
    while [ "$oomwatch_seconds" -gt 0 ] && kill -0 "$oomwatch_agents" 2>/dev/null; do
        sleep 1
        oomwatch_seconds=$((oomwatch_seconds - 1))
    done
    kill -TERM "$oomwatch_agents" 2>/dev/null || :
    wait "$oomwatch_agents" 2>/dev/null || :
    oomwatch_agents=
}

oomwatch_agents_start
