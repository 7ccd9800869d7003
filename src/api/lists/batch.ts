import type { Context } from 'hono'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Service } from '../service.ts'
import { readBatch } from './emails.ts'
import {
  jobLinks,
  type ListOptionFields,
  presentQueued,
  queueList,
  readListOptions,
  toChunks,
} from './queue.ts'

type BatchBody = ListOptionFields & {
  readonly emails?: unknown
  readonly items?: unknown
  readonly name?: unknown
  readonly deduplicate?: boolean | undefined
}

/** `POST /v1/verify/batch`: always creates a job, however short the list is. */
export async function verifyBatch(
  c: Context<Env>,
  service: Service,
  body: BatchBody,
): Promise<Response> {
  const name = readName(body.name)
  const all = readBatch(body)
  const options = await readListOptions(c, service, body)
  // A download has an ID column if the list was submitted with IDs.
  const source = { ids: body.items !== undefined }
  const deduplicate = body.deduplicate ?? true
  const listed = {
    ...{ type: 'batch' as const, name, source, options, deduplicate },
    ...{ rowCount: all.length, rows: toChunks(all) },
  }
  return queueList(c, service, listed, (job, estimated) => ({
    ...presentQueued(job, estimated, `Batch queued. Check GET /v1/jobs/${job.id}`),
    ...jobLinks(service, job),
  }))
}

const NAME_LENGTH_MAX = 200

/** Reads the display name of a job. */
export function readName(name: unknown): string | null {
  if (name === undefined || name === null) return null
  if (typeof name === 'string' && name.length <= NAME_LENGTH_MAX) return sanitizeText(name) || null
  throw new ApiError(
    'invalid_request',
    `"name" must be a string of at most ${NAME_LENGTH_MAX} characters.`,
  )
}
