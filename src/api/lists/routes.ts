import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { type IdempotencyDeps, repeatStored, unchecked } from '../middleware/idempotency.ts'
import { newRouter, route } from '../route.ts'
import { json } from '../schemas/answers.ts'
import {
  BatchRequest,
  BulkRequest,
  FileDryRun,
  FileRequest,
  InstantBulk,
  QueuedBatch,
  QueuedBulk,
  QueuedFile,
  UrlRequest,
} from '../schemas/verify.ts'
import { SINGLE_BODY_MAX } from '../verify/ask.ts'
import { type BatchDeps, verifyBatch, verifyFile } from './batch.ts'
import { type DryRunDeps, dryRun } from './dry-run.ts'
import { BATCH_MAX, BULK_MAX, INSTANT_MAX, readEmails } from './emails.ts'
import { answerInstant, type InstantDeps } from './instant.ts'
import { type ListLimitDeps, requireDiskSpace } from './limits.ts'
import {
  type ListOptionFields,
  presentQueued,
  type QueueDeps,
  queueList,
  readListOptions,
  toChunks,
} from './queue.ts'
import { FORM_BYTES_MAX, fileForms, readFileOptions, readFlag, textUploads } from './upload.ts'
import { listDownloads, type UrlDownloadDeps } from './url-download.ts'

export type ListDeps = Pick<ApiDeps, 'guard' | 'random' | 'settings'> &
  IdempotencyDeps &
  BatchDeps &
  DryRunDeps &
  InstantDeps &
  ListLimitDeps &
  QueueDeps &
  UrlDownloadDeps

/** Routes that verify lists. */
export function listRoutes(service: ListDeps) {
  const router = newRouter()
  const options = {
    ...LISTS,
    beforeBody: service.limitLargeLists,
    afterBody: requireDiskSpace(service),
  }

  const bulk = route(service, 'POST /v1/verify/bulk', {
    ...options,
    id: 'verifyBulk',
    summary: 'Verify a list',
    description:
      'For up to 10 addresses, the response contains the results, within ten seconds. For up to 10,000 addresses, it contains a job.',
    body: {
      schema: BulkRequest,
      example: { emails: ['user@example.com'] },
      max: BULK_BODY_MAX,
      valuesMax: BULK_VALUES_MAX,
      gzip: true,
      isList: true,
      // Ten addresses may be cached, and are then answered without credits.
      freeMax: SINGLE_BODY_MAX,
    },
    answer: BULK_ANSWER,
    errors: LIST_ERRORS,
  })
  router.handle(bulk, c => unchecked(verifyBulk(c, service, c.req.valid('json'))))

  const batch = route(service, 'POST /v1/verify/batch', {
    ...options,
    id: 'verifyBatch',
    summary: 'Verify a large list',
    description:
      'Creates a job for up to 50,000 addresses, as `emails` or as `items` with your own IDs. Poll the job, or use a webhook.',
    body: {
      schema: BatchRequest,
      example: { emails: ['a@example.com', 'b@example.com'], name: 'March list' },
      max: BATCH_BODY_MAX,
      valuesMax: BATCH_VALUES_MAX,
      gzip: true,
      isList: true,
    },
    answer: json(QueuedBatch, 'The job', {
      message: 'Batch queued. Check GET /v1/jobs/job_xyz789',
    }),
    errors: LIST_ERRORS,
  })
  router.handle(batch, c => unchecked(verifyBatch(c, service, c.req.valid('json'))))

  const file = route(service, 'POST /v1/verify/file', {
    ...options,
    id: 'verifyFile',
    summary: 'Verify a file of addresses',
    description:
      "Creates a job for a CSV file or an Excel workbook (.xlsx), which can be compressed with gzip or be the only file of a ZIP archive. The results contain the columns of the file. Limits: 100 MiB (512 MiB when expanded), 1,000,000 rows and 32,768 columns. With `dry_run`, the file is only previewed: nothing is stored, charged or verified, and the request doesn't count toward the hourly limit of lists.",
    body: {
      schema: FileRequest,
      example: FILE_EXAMPLE,
      max: FORM_BYTES_MAX,
      gzip: true,
      isForm: true,
      isList: true,
    },
    answer: FILE_ANSWER,
  })
  const withText = textUploads()
  const parseForm = fileForms(service.settings.dataDir, service.random)
  /** Reads the form, and verifies or previews its file. */
  const receiveFile = async (c: Context<Env>): Promise<Response> => {
    const { fields, digest, path, fileName, discard } = await parseForm(c.req.raw)
    try {
      const upload = { path, fileName, options: readFileOptions(fields) }
      // A dry run has no effect, so it needs no idempotency.
      if (readFlag(fields, 'dry_run'))
        return await withText(c, upload, text => dryRun(c, service, text))
      const stored = repeatStored(c, service, Buffer.from(digest))
      return stored ?? (await withText(c, upload, text => verifyFile(c, service, text)))
    } finally {
      await discard()
    }
  }
  router.handle(file, c => unchecked(receiveFile(c)))

  const url = route(service, 'POST /v1/verify/url', {
    ...options,
    id: 'verifyUrl',
    summary: 'Verify a file at a URL',
    description:
      "Like `POST /v1/verify/file`, for a file that the service downloads from an https URL or, with `s3`, from a bucket of Amazon S3 or a compatible service. The URL must have a public address, and the download can take up to 90 seconds. The query of the URL and the credentials of the bucket aren't stored.",
    // Its body is short, and must not hold the slot of an import while the file is downloaded.
    beforeBody: undefined,
    body: { schema: UrlRequest, example: URL_EXAMPLE, max: URL_BODY_MAX },
    answer: FILE_ANSWER,
    errors: [...LISTS.errors, ...DOWNLOAD_ERRORS],
  })
  const download = listDownloads(service)
  router.handle(url, c => {
    const { dry_run, ...body } = c.req.valid('json')
    const use = dry_run ? dryRun : verifyFile
    return unchecked(
      download(c, body, upload => withText(c, upload, text => use(c, service, text))),
    )
  })

  return router
}

/**
 * The largest valid batch: 50,000 addresses of 254 octets with quotes and commas have 13 MB, plus
 * their IDs.
 */
export const BATCH_BODY_MAX = 16 * 1024 * 1024
/** Three values for each item with an ID; the rest is for lists that are told their length. */
export const BATCH_VALUES_MAX = 8 * BATCH_MAX

/** A fifth of the addresses of a batch, and their escapes. */
const BULK_BODY_MAX = 4 * 1024 * 1024
/** Longer lists, up to this length, are told where they belong. */
const BULK_VALUES_MAX = 2 * BATCH_MAX

/** The metadata and a session token take less. */
const URL_BODY_MAX = 128 * 1024

const LISTS = {
  scope: 'verify:bulk',
  counts: 'bulk',
  idempotent: true,
  errors: [
    ...(['empty_list', 'too_many_emails', 'quota_exceeded', 'concurrent_jobs_exceeded'] as const),
    ...(['stored_rows_exceeded', 'insufficient_storage', 'invalid_webhook_url'] as const),
  ],
} as const

const DOWNLOAD_ERRORS = [
  ...(['invalid_list_url', 'list_unreachable', 'list_access_denied', 'list_http_error'] as const),
] as const

/** A list of addresses in a JSON body. */
const LIST_ERRORS = [...LISTS.errors, 'emails_required'] as const

const BULK_ANSWER = {
  description: 'The results, or the job',
  content: {
    'application/json': {
      schema: z.union([InstantBulk, QueuedBulk]),
      examples: {
        results: {
          value: {
            total_emails: 1,
            valid_emails: 1,
            summary: { total: 1, valid: 1 },
            message: 'Verified 1 address',
          },
        },
        job: { value: {} },
      },
    },
  },
}

const FILE_EXAMPLE = {
  file: 'name,email\nAnn,a@example.com\nBob,b@example.com\n',
  column: 'email',
  name: 'March list',
}

const URL_EXAMPLE = {
  url: 's3://lists/march.csv',
  s3: {},
  column: 'email',
  name: 'March list',
}

const FILE_ANSWER = {
  description: 'The job; with `dry_run`, a preview of the file',
  content: {
    'application/json': {
      schema: z.union([QueuedFile, FileDryRun]),
      examples: {
        job: { value: { message: 'File queued. Check GET /v1/jobs/job_xyz789' } },
        dry_run: { value: { columns: [{ number: 1, name: 'name' }, {}] } },
      },
    },
  },
}

/** `POST /v1/verify/bulk`: a short list is answered at once, a longer one becomes a job. */
async function verifyBulk(
  c: Context<Env>,
  service: ListDeps,
  body: ListOptionFields & { readonly emails?: unknown },
): Promise<Response> {
  const emails = readEmails(body.emails, BULK_MAX)
  const options = await readListOptions(c, service, body)
  if (emails.length <= INSTANT_MAX) return answerInstant(c, service, emails, options)
  const rows = toChunks(emails.map(text => ({ text })))
  const listed = {
    type: 'bulk' as const,
    name: null,
    options,
    deduplicate: true,
    rowCount: emails.length,
    rows,
  }
  return queueList(c, service, listed, (job, estimated) =>
    presentQueued(job, estimated, `Queued. Check GET /v1/verify/bulk/status/${job.id}`),
  )
}
