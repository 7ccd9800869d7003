import type { Context } from 'hono'
import type { Env } from '../context.ts'
import type { Service } from '../service.ts'
import { BULK_MAX, INSTANT_MAX, readEmails } from './emails.ts'
import { answerInstant } from './instant.ts'
import { type ListOptionFields, readListOptions } from './options.ts'
import { portions, presentQueued, queueList } from './queue.ts'

/** `POST /v1/verify/bulk`: a short list is answered at once, a longer one becomes a job. */
export function verifyBulk(
  c: Context<Env>,
  service: Service,
  body: ListOptionFields & { readonly emails?: unknown },
): Promise<Response> {
  const options = readListOptions(body)
  const emails = readEmails(body.emails, BULK_MAX)
  if (emails.length <= INSTANT_MAX) return answerInstant(c, service, emails, options)
  const rows = portions(emails.map(text => ({ text })))
  const listed = {
    ...{ type: 'bulk' as const, name: null, options, deduplicate: true },
    ...{ rowCount: emails.length, rows },
  }
  return queueList(c, service, listed, (job, estimated) =>
    presentQueued(job, estimated, `Queued. Check GET /v1/verify/bulk/status/${job.id}`),
  )
}
