/** What a shell can ask ev for, by what is taken: a command that prints the IDs of all there are. */
export const IDS = {
  job: `ev jobs list --json 2>/dev/null | sed -n 's/^ *"job_id": "\\(job_[a-z0-9_]*\\)",*$/\\1/p'`,
  webhook: `ev webhooks list --json 2>/dev/null | sed -n 's/^ *"id": "\\(wh_[a-z0-9]*\\)",*$/\\1/p'`,
} as const
