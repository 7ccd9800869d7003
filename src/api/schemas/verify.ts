import { z } from '@hono/zod-openapi'
import { BATCH_MAX, BULK_MAX, INSTANT_MAX } from '../lists/emails.ts'
import { BulkItem } from './result.ts'

// What is asked of the paths that verify. Addresses and lists are checked by the rooms themselves, which say more than
// a schema can; here they are only described.

const email = z.unknown().optional().openapi({
  type: 'string',
  description: 'The address, at most 254 octets.',
  example: 'user@example.com',
})

const CHECK_SMTP = 'false: everything but the mail server (reason `smtp_skipped`).'
const FORCE_REFRESH = 'true: the mail server is asked even if its answer is known.'

const optionFields = {
  check_smtp: z.boolean().optional().openapi({ description: CHECK_SMTP }),
  force_refresh: z.boolean().optional().openapi({ description: FORCE_REFRESH }),
}

export const SingleRequest = z
  .strictObject({
    email,
    ...optionFields,
    async: z.boolean().optional().openapi({
      description:
        'true: answered at once; the result comes by the event `verification.completed`.',
    }),
  })
  .openapi('SingleRequest', { required: ['email'] })

/** Its answer has a score, so there is none to be sent later. */
export const ScoredRequest = SingleRequest.omit({ async: true }).openapi('ScoredRequest', {
  required: ['email'],
})

export const SingleQuery = z.object({
  include: z.string().optional().openapi({
    description: 'What to tell beside the plain result: `flags`, `evidence`, or both with a comma.',
    example: 'flags',
  }),
})

export const AsyncAccepted = z
  .object({
    success: z.literal(true),
    verification_id: z.string(),
    status: z.literal('queued'),
  })
  .openapi('AsyncAccepted')

const name = z
  .unknown()
  .optional()
  .openapi({ type: 'string', maxLength: 200, description: 'For people.' })
const deduplicate = z.boolean().optional().openapi({
  description: 'false: an address that comes again is asked again, and charged again.',
  default: true,
})

const list = (max: number) =>
  z
    .unknown()
    .optional()
    .openapi({
      type: 'array',
      items: { type: 'string' },
      maxItems: max,
      minItems: 1,
      example: ['user@example.com', 'info@example.com'],
    })

const webhook_url = z.unknown().optional().openapi({
  type: 'string',
  description: 'Refused: endpoints are registered once, with `POST /v1/webhooks`.',
  deprecated: true,
})

export const BulkRequest = z
  .strictObject({ emails: list(BULK_MAX), ...optionFields, webhook_url })
  .openapi('BulkRequest', { required: ['emails'] })

export const BatchRequest = z
  .strictObject({
    emails: list(BATCH_MAX),
    items: z
      .unknown()
      .optional()
      .openapi({
        type: 'array',
        maxItems: BATCH_MAX,
        minItems: 1,
        description:
          'In place of `emails`: each with an id of yours, which comes back in downloads.',
        items: {
          type: 'object',
          required: ['email'],
          additionalProperties: false,
          properties: { email: { type: 'string' }, id: { type: 'string', maxLength: 256 } },
        },
      }),
    name,
    deduplicate,
    ...optionFields,
    webhook_url,
  })
  .openapi('BatchRequest', { required: [] })

export const FileRequest = z
  .strictObject({
    file: z.unknown().optional().openapi({
      type: 'string',
      format: 'binary',
      description: 'A list: CSV, TSV, or one address a line, in any usual encoding.',
    }),
    column: z.string().optional().openapi({
      description:
        'The column of addresses, by its name or its number from 1. Left out: it is looked for.',
    }),
    header: z.enum(['true', 'false']).optional().openapi({
      description: 'Whether the first row names the columns. Left out: it is looked for.',
    }),
    encoding: z.string().optional().openapi({
      description:
        'A label of the WHATWG Encoding Standard, such as `windows-1252`. Left out: it is found.',
    }),
    name: z.string().optional(),
    deduplicate: z.enum(['true', 'false']).optional(),
    check_smtp: z.enum(['true', 'false']).optional().openapi({ description: CHECK_SMTP }),
    force_refresh: z.enum(['true', 'false']).optional().openapi({ description: FORCE_REFRESH }),
    webhook_url,
    dry_run: z.enum(['true', 'false']).optional().openapi({
      description: 'true: says what would come of it; nothing is stored, charged or asked.',
    }),
  })
  .openapi('FileRequest', { required: ['file'] })

const WELL_FORMED =
  'Rows that are well-formed addresses, whether they exist or not: `total_emails` without `invalid_format_emails`.'
const MALFORMED = 'Rows that are no addresses.'

const counts = {
  total_emails: z.int().min(0),
  valid_emails: z.int().min(0).openapi({ description: WELL_FORMED }),
  invalid_format_emails: z.int().min(0).openapi({ description: MALFORMED }),
}

export const InstantBulk = z
  .object({
    success: z.literal(true),
    instant: z.literal(true),
    job_id: z.string(),
    status: z.literal('completed'),
    ...counts,
    results: z.array(BulkItem).max(INSTANT_MAX),
    summary: z.object({
      total: z.int(),
      valid: z.int().openapi({ description: 'Rows that are deliverable or risky.' }),
      invalid: z.int().openapi({
        description: 'All other rows: undeliverable, unknown, and those that are no addresses.',
      }),
    }),
    message: z.string(),
  })
  .openapi('InstantBulk')

const queued = {
  success: z.literal(true),
  job_id: z.string(),
  status: z.literal('queued'),
  ...counts,
}

const course = {
  estimated_time: z.string().openapi({ example: '2 minutes' }),
  message: z.string(),
}

export const QueuedBulk = z.object({ ...queued, ...course }).openapi('QueuedBulk')

const linked = {
  ...queued,
  duplicates: z.int().min(0).openapi({ description: 'Rows whose address stands above them too.' }),
  ...course,
  status_url: z.string().openapi({ description: 'The URL of the job.' }),
  download_url: z.string().openapi({
    description:
      'The URL of its results, with an API key; until the job is completed it answers 409 `job_not_ready`.',
  }),
}

export const QueuedBatch = z.object(linked).openapi('QueuedBatch')

export const QueuedFile = z
  .object({
    ...linked,
    column: z.string().nullable().openapi({ description: 'The name of the column of addresses.' }),
    column_number: z.int().min(1),
    header: z.boolean(),
    encoding: z.string().openapi({ description: 'As the file is read: a WHATWG label.' }),
    rows: z.int().min(0),
  })
  .openapi('QueuedFile')

const count = z.int().min(0).nullable()

/** What would come of a file; counts are null as long as it is not known where its addresses stand. */
export const FileDryRun = z
  .object({
    success: z.literal(true),
    dry_run: z.literal(true),
    columns: z
      .array(z.object({ number: z.int().min(1), name: z.string().nullable() }))
      .openapi({ description: 'Those that the list has; of very many the first ones.' }),
    column: QueuedFile.shape.column,
    column_number: z
      .int()
      .min(1)
      .nullable()
      .openapi({ description: 'null: none was found, so `column` has to be given.' }),
    header: z.boolean(),
    encoding: QueuedFile.shape.encoding,
    delimiter: z.enum([',', ';', '\t', '|']),
    rows: count,
    total_emails: count,
    valid_emails: count.openapi({ description: WELL_FORMED }),
    invalid_format_emails: count.openapi({ description: MALFORMED }),
    duplicates: count,
    credits_needed: count.openapi({ description: 'What the list will cost at most.' }),
    credits_balance: z
      .int()
      .min(0)
      .nullable()
      .openapi({ description: 'What is left today; null: the plan knows no limit.' }),
    estimated_time: z.string().nullable().openapi({ description: 'How long it will take.' }),
    preview: z
      .array(z.array(z.string()))
      .openapi({ description: 'The first five rows; long cells are cut.' }),
  })
  .openapi('FileDryRun')
