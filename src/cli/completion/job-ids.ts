/** A command for a shell that prints the IDs of all jobs. */
export const JOB_IDS = `ev jobs list --json 2>/dev/null | sed -n 's/^ *"job_id": "\\(job_[a-z0-9_]*\\)",*$/\\1/p'`
