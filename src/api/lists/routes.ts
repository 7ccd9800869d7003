import { createRoute, type RouteConfig, z } from '@hono/zod-openapi'
import type { ApiCode } from '../errors/api-error.ts'
import { findStoredResponse } from '../middleware/idempotency.ts'
import { refuseUnknown } from '../middleware/refuse-unknown.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import { HEADERS } from '../schemas/headers.ts'
import { ITEM_EXAMPLE } from '../schemas/result.ts'
import {
  BatchRequest,
  BulkRequest,
  FileDryRun,
  FileRequest,
  InstantBulk,
  QueuedBatch,
  QueuedBulk,
  QueuedFile,
} from '../schemas/verify.ts'
import type { Service } from '../service.ts'
import {
  LIST_BODY_MAX,
  SINGLE_BODY_MAX,
  unchecked,
  verifyMiddleware,
} from '../verify/verify-middleware.ts'
import { verifyBatch } from './batch.ts'
import { verifyBulk } from './bulk.ts'
import { limitConcurrency } from './crowd.ts'
import { dryRun } from './dry-run.ts'
import { verifyFile } from './file.ts'
import { readFlag } from './file-rows.ts'
import { roomOnDisk } from './room.ts'
import { FORM_BYTES_MAX, fileForms } from './upload.ts'

/** The paths for lists. */
export function listRoutes(service: Service) {
  const rule = { scope: 'verify:bulk', counts: 'bulk', bodyMax: LIST_BODY_MAX } as const
  const concurrency = limitConcurrency()
  const disk = roomOnDisk(service)
  const middleware = [concurrency, ...verifyMiddleware(service, rule, disk)]
  const ofBulk = [
    concurrency,
    ...verifyMiddleware(service, { ...rule, freeBodyMax: SINGLE_BODY_MAX }, disk),
  ]
  const receive = fileForms(service.settings.dataDir, service.random)
  const router = newRouter()
    .openapi(createRoute({ ...BULK, middleware: ofBulk }), c =>
      unchecked(verifyBulk(c, service, c.req.valid('json'))),
    )
    .openapi(createRoute({ ...BATCH, middleware }), c =>
      unchecked(verifyBatch(c, service, c.req.valid('json'))),
    )
  // Not by `openapi`, which would read the whole form into memory.
  router.openAPIRegistry.registerPath(FILE)
  const form = { ...rule, bodyMax: FORM_BYTES_MAX, body: 'stream' } as const
  const guards = verifyMiddleware(service, form, disk)
  router.on('POST', [FILE.path], concurrency, ...guards, refuseUnknown(FILE))
  router.post(FILE.path, async c => {
    const upload = await receive(c.req.raw)
    try {
      // It does nothing that could be done twice.
      if (readFlag(upload.fields, 'dry_run')) return await dryRun(c, service, upload)
      const { key } = c.get('replay') ?? {}
      const body = Buffer.from(upload.digest)
      const known = key === undefined ? null : await findStoredResponse(c, service, { key, body })
      return known ?? (await verifyFile(c, service, upload))
    } finally {
      await upload.discard()
    }
  })
  return router
}

const ALL_LISTS: readonly ApiCode[] = [
  'invalid_request',
  ...(['emails_required', 'empty_list', 'too_many_emails', 'payload_too_large'] as const),
  ...(['invalid_json', 'unsupported_media_type', 'idempotency_in_progress'] as const),
  ...(['idempotency_mismatch', 'quota_exceeded', 'request_timeout'] as const),
  ...(['concurrent_jobs_exceeded', 'stored_rows_exceeded', 'insufficient_storage'] as const),
]

const COMMON = {
  method: 'post' as const,
  tags: ['Verification'],
  security: SECURITY,
  parameters: HEADERS,
}

const QUEUED = {
  success: true as const,
  job_id: 'job_xyz789',
  status: 'queued' as const,
  total_emails: 2,
  valid_emails: 2,
  invalid_format_emails: 0,
  duplicates: 0,
  estimated_time: '10 seconds',
}

const LINKS = {
  status_url: 'https://api.example.com/v1/jobs/job_xyz789',
  download_url: 'https://api.example.com/v1/jobs/job_xyz789/download',
}

const INSTANT_EXAMPLE = {
  success: true as const,
  instant: true as const,
  job_id: 'job_abc123',
  status: 'completed' as const,
  ...{ total_emails: 1, valid_emails: 1, invalid_format_emails: 0 },
  results: [ITEM_EXAMPLE],
  summary: { total: 1, valid: 1, invalid: 0 },
  message: 'Verified 1 address',
}

const BULK = {
  ...{ ...COMMON, path: '/v1/verify/bulk', operationId: 'verifyBulk' },
  summary: 'Verify a list',
  description:
    'At most 10 addresses are answered at once, within ten seconds; more become a job, up to 10,000.',
  request: {
    body: {
      required: true,
      content: {
        'application/json': { schema: BulkRequest, example: { emails: ['user@example.com'] } },
      },
    },
  },
  responses: {
    200: json(z.union([InstantBulk, QueuedBulk]), 'The results, or the job', INSTANT_EXAMPLE),
    ...errorResponses(...ALL_LISTS),
  },
}

const BATCH = {
  ...{ ...COMMON, path: '/v1/verify/batch', operationId: 'verifyBatch' },
  summary: 'Verify a large list',
  description:
    'Up to 50,000 addresses, as `emails` or as `items` with ids of yours. Always a job: ask for it, or have a webhook tell you.',
  request: {
    body: {
      required: true,
      content: {
        'application/json': {
          schema: BatchRequest,
          example: { emails: ['a@example.com', 'b@example.com'], name: 'March list' },
        },
      },
    },
  },
  responses: {
    200: json(QueuedBatch, 'The job', {
      ...QUEUED,
      message: 'Batch queued. Check GET /v1/jobs/job_xyz789',
      ...LINKS,
    }),
    ...errorResponses(...ALL_LISTS),
  },
}

const FILE_EXAMPLE = {
  file: 'name,email\nAnn,a@example.com\nBob,b@example.com\n',
  column: 'email',
  name: 'March list',
}

const QUEUED_FILE = {
  ...QUEUED,
  message: 'File queued. Check GET /v1/jobs/job_xyz789',
  ...LINKS,
  ...{ column: 'email', column_number: 2, header: true, encoding: 'utf-8', rows: 2 },
}

const DRY_RUN = {
  ...{ success: true, dry_run: true },
  columns: [
    { number: 1, name: 'name' },
    { number: 2, name: 'email' },
  ],
  ...{
    column: 'email',
    column_number: 2,
    header: true,
    encoding: 'utf-8',
    delimiter: ',',
    rows: 2,
  },
  ...{ total_emails: 2, valid_emails: 2, invalid_format_emails: 0, duplicates: 0 },
  ...{ credits_needed: 2, credits_balance: 100, estimated_time: '10 seconds' },
  preview: [
    ['Ann', 'a@example.com'],
    ['Bob', 'b@example.com'],
  ],
}

const FILE = {
  ...{ ...COMMON, path: '/v1/verify/file', operationId: 'verifyFile' },
  summary: 'Verify the addresses of a file',
  description:
    'CSV in the dialects that people have, up to 100 MiB and 1,000,000 rows. Its columns come back with the results. With `dry_run` it is read and counted, and nothing is stored, charged or asked; that is no list of the ten an hour.',
  request: {
    body: {
      required: true,
      content: { 'multipart/form-data': { schema: FileRequest, example: FILE_EXAMPLE } },
    },
  },
  responses: {
    200: {
      description: 'The job; with `dry_run` what would come of the file',
      content: {
        'application/json': {
          schema: z.union([QueuedFile, FileDryRun]),
          examples: { job: { value: QUEUED_FILE }, dry_run: { value: DRY_RUN } },
        },
      },
    },
    ...errorResponses(...ALL_LISTS),
  },
} satisfies RouteConfig
