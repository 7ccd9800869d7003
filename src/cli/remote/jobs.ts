import type { EvClient } from '../../client/client.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'

/** Shorter prefixes could select the wrong job by a typo. */
const PREFIX_MIN = 4

/** Adds what users leave out. Throws EvError if the prefix of an ID is too short. */
export function parseJobPrefix(idOrPrefix: string): string {
  const prefix = /^(job|ver)_/.test(idOrPrefix) ? idOrPrefix : `job_${idOrPrefix}`
  if (prefix.length >= 'job_'.length + PREFIX_MIN) return prefix
  throw new EvError(
    'usage',
    `"${sanitizeText(idOrPrefix)}" is too short for a job ID. Give at least ${PREFIX_MIN} characters after "job_".`,
  )
}

/** Returns the ID of the job with this ID or unique prefix. */
export async function resolveJobId({ jobs }: EvClient, idOrPrefix: string): Promise<string> {
  const prefix = parseJobPrefix(idOrPrefix)
  if (WHOLE_ID.test(prefix)) return prefix
  const found: string[] = []
  for await (const { job_id } of jobs.list({ limit: 100 })) {
    if (job_id.startsWith(prefix)) found.push(job_id)
  }
  return selectJob(found, idOrPrefix, prefix, id => id)
}

const WHOLE_ID = /^(?:job_sbx|job|ver)_[a-z0-9]{16,}$/

/** Returns the only job that was found by a prefix, or the one with this ID. */
export function selectJob<J>(
  found: readonly J[],
  idOrPrefix: string,
  prefix: string,
  idOf: (job: J) => string,
): J {
  const [first, second] = found
  if (first === undefined) {
    throw new EvError(
      'no_input',
      `Job ${sanitizeText(idOrPrefix)} does not exist. To list jobs, run "ev jobs".`,
    )
  }
  if (second === undefined || idOf(first) === prefix) return first
  throw new EvError(
    'usage',
    `"${sanitizeText(idOrPrefix)}" matches ${idOf(first)} and ${idOf(second)}. Give more characters of the ID.`,
  )
}
