#!/bin/sh
# Prolog= of slurm.conf: tells the node's agent which job begins here. docs/howto/slurm.md
#
# Slurm drains a node whose prolog fails, and keeps a job waiting for one that hangs. So whatever happens this ends with
# 0; it calls no command of Slurm's, and nothing but a folder in memory is written to.
jobs=${OOMWATCH_JOBS:-/run/oomwatch/jobs}

case ${SLURM_JOB_ID:-} in
    '' | *[!0-9]*) exit 0 ;;
esac
[ -d "$jobs" ] || exit 0 # no agent here wants to know

umask 022
# To the end under another name: the agent reads whole files only.
{
    printf 'user=%s\n' "${SLURM_JOB_USER:-}"
    printf 'partition=%s\n' "${SLURM_JOB_PARTITION:-}"
    printf 'nodes=%s\n' "${SLURM_JOB_NODELIST:-${SLURM_NODELIST:-}}"
    printf 'gpus=%s\n' "${SLURM_JOB_GPUS:-}"
} >"$jobs/.$SLURM_JOB_ID" 2>/dev/null && mv -f "$jobs/.$SLURM_JOB_ID" "$jobs/$SLURM_JOB_ID" 2>/dev/null
exit 0
