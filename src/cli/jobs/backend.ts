import type { CliContext } from '../context.ts'
import { createRemoteJobs, type JobsBackend } from '../remote/jobs.ts'
import { connectService, type ServiceFlags } from '../service.ts'
import { readConfig } from '../settings.ts'

/** Flags that several commands have. */
export type JobFlags = ServiceFlags & {
  readonly json?: boolean
  readonly yes?: boolean
  readonly [setting: string]: unknown
}

/** Opens the jobs of a service or of this machine. */
export async function openJobs(context: CliContext, flags: JobFlags): Promise<JobsBackend> {
  if (flags.service !== undefined) {
    return createRemoteJobs(flags.service.url, await connectService(flags.service))
  }
  const config = readConfig(context, flags)
  const { createLocalJobs } = await import('../local/jobs.ts')
  return createLocalJobs(context, config)
}
