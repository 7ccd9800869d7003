import type { Job } from './job-store.ts'

/** How the addresses of a job are asked; kept in its `source`, so that it holds after a restart and a resume too. */
export type JobOptions = {
  /** False: everything but the mail server. */
  readonly checkSmtp: boolean
  /** True: the mail server is asked even if its answer is remembered. */
  readonly forceRefresh: boolean
}

export const DEFAULT_JOB_OPTIONS: JobOptions = { checkSmtp: true, forceRefresh: false }

/** The part of a job's `source` that says it; what is usual is left out. */
export const toSourceFields = ({ checkSmtp, forceRefresh }: JobOptions) => ({
  ...(checkSmtp ? {} : { check_smtp: false }),
  ...(forceRefresh ? { force_refresh: true } : {}),
})

/** What the `source` of a job says. */
export function parseJobOptions({ source }: Pick<Job, 'source'>): JobOptions {
  const said = JSON.parse(source) as { check_smtp?: boolean; force_refresh?: boolean }
  return { checkSmtp: said.check_smtp !== false, forceRefresh: said.force_refresh === true }
}
