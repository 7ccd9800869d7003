import type { CliContext } from '../context.ts'
import { type DataFlags, openBackend } from '../data-command.ts'
import { createRemoteJobs, type JobsBackend } from '../remote/jobs.ts'

/** Opens the jobs of a service or of this machine. */
export const openJobs = (context: CliContext, flags: DataFlags): Promise<JobsBackend> =>
  openBackend(context, flags, {
    remote: createRemoteJobs,
    loadLocal: async () => (await import('../local/jobs.ts')).createLocalJobs,
  })
