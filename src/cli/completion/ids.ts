/** Shell commands that print all IDs of a kind, for completion. */
export const IDS = {
  job: `ev jobs list --json 2>/dev/null | sed -n 's/^ *"job_id": "\\(job_[a-z0-9_]*\\)",*$/\\1/p'`,
  webhook: `ev webhooks list --json 2>/dev/null | sed -n 's/^ *"id": "\\(wh_[a-z0-9]*\\)",*$/\\1/p'`,
} as const
