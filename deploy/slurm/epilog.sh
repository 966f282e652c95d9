#!/bin/sh
# Epilog= of slurm.conf: tells the node's agent that a job has ended here. docs/howto/slurm.md
#
# As of the prolog: whatever happens it ends with 0.
jobs=${OOMWATCH_JOBS:-/run/oomwatch/jobs}

case ${SLURM_JOB_ID:-} in
    '' | *[!0-9]*) exit 0 ;;
esac
rm -f "$jobs/$SLURM_JOB_ID" "$jobs/.$SLURM_JOB_ID" 2>/dev/null
exit 0
