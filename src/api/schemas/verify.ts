import { z } from '@hono/zod-openapi'
import { EXTERNAL_SOURCES } from '../../engine/verdict/verdict.ts'
import { LIST_NAME_LENGTH_MAX } from '../../jobs/import/list-name.ts'
import { METADATA_KEYS_MAX, METADATA_VALUE_LENGTH_MAX } from '../../jobs/metadata.ts'
import { URL_LENGTH_MAX } from '../../outbound/url-policy.ts'
import { BATCH_MAX, BULK_MAX, INSTANT_MAX } from '../lists/emails.ts'
import { BulkItem } from './result.ts'

// Schemas of verification requests. They only describe `email`, `emails`, `items` and the entries of
// `metadata`, which the handlers read: bodies of Reacher and fields of uploads have no schema and are
// read by the same functions, the errors have codes and remedies that depend on the endpoint, and a
// check in the schema takes twice as long and would change which of two faults is reported.

/** Longer texts are refused: they are not addresses. */
export const EMAIL_LENGTH_MAX = 10_000

/** The handler reads it: every fault of an address has the code `invalid_email`. */
export const email = z.unknown().optional().openapi({
  type: 'string',
  maxLength: EMAIL_LENGTH_MAX,
  description: 'The address, at most 254 octets.',
  example: 'user@example.com',
})

const CHECK_SMTP = 'Set to false to skip the mail server (reason `smtp_skipped`).'
const FORCE_REFRESH = 'Set to true to contact the mail server even if a cached result exists.'

const optionFields = {
  check_smtp: z.boolean().optional().openapi({ description: CHECK_SMTP, example: true }),
  force_refresh: z.boolean().optional().openapi({ description: FORCE_REFRESH, example: false }),
}

const METADATA =
  'Up to 50 key-value pairs, returned with the job and in its events. Keys have up to 40 characters and no brackets, values up to 500 characters.'

/** The handler checks the entries: its messages name the key. */
const metadata = z
  .record(z.string(), z.unknown(), { error: 'must be an object such as {"customer": "42"}' })
  .nullish()
  .openapi({
    type: 'object',
    description: METADATA,
    maxProperties: METADATA_KEYS_MAX,
    additionalProperties: { type: 'string', maxLength: METADATA_VALUE_LENGTH_MAX },
    example: { customer: '42' },
  })

const NOTIFY =
  'Set to true to email the address of the account when the list is finished. No email is sent if the response already contains the results.'

const notify = z.boolean().optional().openapi({ description: NOTIFY, example: false })

const webhook_url = z.string().nullish().openapi({
  type: 'string',
  maxLength: URL_LENGTH_MAX,
  description:
    'An https URL to send the events of this job to, in addition to the endpoints of the account. The response contains the `webhook_secret` that signs them.',
  example: 'https://app.example.com/hook',
})

/** The endpoint of a job, in the response that creates it. */
export const webhook = {
  webhook_id: z.string().optional().openapi({
    description: 'ID of the endpoint for `webhook_url`. Only present if you set it.',
    example: 'wh_8f3a2c1d',
  }),
  webhook_secret: z.string().optional().openapi({
    description: 'Secret that signs the events sent to `webhook_url`. Returned only once.',
    example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  }),
}

export const SingleRequest = z
  .strictObject({
    email,
    ...optionFields,
    async: z.boolean().optional().openapi({
      example: false,
      description:
        'Set to true to get a `verification_id` at once. The event `verification.completed` delivers the result.',
    }),
    metadata,
    webhook_url,
  })
  .openapi('SingleRequest', { required: ['email'] })

/** Without `async`: the response has a score, which events do not have. */
export const ScoredRequest = SingleRequest.omit({
  async: true,
  metadata: true,
  webhook_url: true,
}).openapi('ScoredRequest', {
  required: ['email'],
})

export const SingleQuery = z.object({
  include: z.string().max(100).optional().openapi({
    description: 'Fields to add to the result: `flags`, `evidence`, or both, separated by a comma.',
    example: 'flags',
  }),
})

export const AsyncAccepted = z
  .object({
    success: z.literal(true),
    verification_id: z.string().openapi({ example: 'job_xyz789' }),
    status: z.literal('queued'),
    ...webhook,
  })
  .openapi('AsyncAccepted')

const NAME = { error: `must be a string of at most ${LIST_NAME_LENGTH_MAX} characters` }

/** Display name of a job. */
const name = z.string(NAME).max(LIST_NAME_LENGTH_MAX, NAME).nullish().openapi({
  type: 'string',
  maxLength: LIST_NAME_LENGTH_MAX,
  description: 'Display name.',
  example: 'March list',
})
const deduplicate = z.boolean().optional().openapi({
  description: 'Set to false to verify and charge an address each time it occurs.',
  default: true,
  example: true,
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

export const BulkRequest = z
  .strictObject({ emails: list(BULK_MAX), ...optionFields, metadata, notify, webhook_url })
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
          'Addresses with your own IDs, which downloads contain. Use either `items` or `emails`.',
        items: {
          type: 'object',
          required: ['email'],
          additionalProperties: false,
          properties: {
            email: { type: 'string', example: 'user@example.com' },
            id: { type: 'string', maxLength: 256, example: 'crm-17' },
          },
        },
      }),
    name,
    deduplicate,
    ...optionFields,
    metadata,
    notify,
    webhook_url,
  })
  .openapi('BatchRequest', { required: [] })

/** A name is compared with every column of the list. */
const COLUMN_NAME_LENGTH_MAX = 1_000
/** 50 pairs, as JSON with escapes. */
const METADATA_FIELD_LENGTH_MAX = 96 * 1024
/** A presigned URL has up to 4,000 characters. */
const LIST_URL_LENGTH_MAX = 8_192

/** Texts that select a part of a file. The name of a sheet has at most 31 characters. */
const fileText = {
  column: z.string().max(COLUMN_NAME_LENGTH_MAX),
  sheet: z.string().max(255),
  encoding: z.string().max(100),
  externalDate: z.string().max(40),
}

const SHEET = 'Name of the sheet to read from a workbook. Default: the first visible sheet.'
const FILE_NAME = 'Display name. Default: the name of the file.'
const HEADER = 'Whether the first row contains column names. Default: detected.'
const ALL_ADDRESSES =
  'Set to true to verify every address of a row, each as a separate row with the other cells of its row. Set to false to verify one address per row. Default: true for a list without a header, unless you set `column`.'
const KEEP_EXTERNAL =
  'Set to true to keep recent results of ZeroBounce, NeverBounce, Kickbox, Reacher or ev that the file has in its columns. Their rows are not verified and not charged, and their reason begins with `external_`.'
const EXTERNAL_DATE =
  'When the file with these results was exported, such as `2026-03-01`. For rows without a date of their own; without either, a row is verified.'
const ENCODING =
  'Encoding of the file, as a WHATWG label such as `windows-1252`. Default: detected.'
const DRY_RUN = 'Set to true to preview the file. Nothing is stored, charged or verified.'

const sheet = fileText.sheet.optional().openapi({ description: SHEET, example: 'Customers' })
const encoding = fileText.encoding
  .optional()
  .openapi({ description: ENCODING, example: 'windows-1252' })
const external_date = fileText.externalDate
  .optional()
  .openapi({ description: EXTERNAL_DATE, example: '2026-03-01' })

/** A field of a form that is true or false. */
const flag = (example: 'true' | 'false') =>
  z.enum(['true', 'false']).optional().openapi({ example })

export const FileRequest = z
  .strictObject({
    // The upload is read before the other fields, and not as a value.
    file: z.unknown().optional().openapi({
      type: 'string',
      format: 'binary',
      example: 'name,email\nAnn,a@example.com\nBob,b@example.com\n',
      description:
        'The list: CSV, TSV or one address per line in any common encoding, or an Excel workbook (.xlsx). It can be compressed with gzip, or be the only file of a ZIP archive. The content decides the format, not the file name.',
    }),
    column: fileText.column.optional().openapi({
      description: 'Name or number (from 1) of the address column. Default: detected.',
      example: 'email',
    }),
    sheet,
    header: flag('true').openapi({ description: HEADER }),
    encoding,
    all_addresses: flag('false').openapi({ description: ALL_ADDRESSES }),
    keep_external: flag('false').openapi({ description: KEEP_EXTERNAL }),
    external_date,
    name: z
      .string()
      .max(LIST_NAME_LENGTH_MAX)
      .optional()
      .openapi({ description: FILE_NAME, example: 'March list' }),
    deduplicate: flag('true'),
    check_smtp: flag('true').openapi({ description: CHECK_SMTP }),
    force_refresh: flag('false').openapi({ description: FORCE_REFRESH }),
    metadata: z
      .string()
      .max(METADATA_FIELD_LENGTH_MAX)
      .optional()
      .openapi({ description: `${METADATA} A JSON object.`, example: '{"customer": "42"}' }),
    notify: flag('false').openapi({ description: NOTIFY }),
    webhook_url,
    dry_run: flag('false').openapi({ description: DRY_RUN }),
  })
  .openapi('FileRequest', { required: ['file'] })

/** Errors must not repeat a value of `s3`: see `SECRET_FIELDS` of `errors/fault.ts`. */
const BucketAccess = z
  .strictObject({
    endpoint: z.string().max(URL_LENGTH_MAX).optional().openapi({
      example: 'https://s3.example.com',
      description: 'URL of a service other than Amazon S3, such as `https://s3.example.com`.',
    }),
    region: z.string().max(40).openapi({ example: 'us-east-1' }),
    access_key_id: z.string().max(256).openapi({ example: 'AKIAIOSFODNN7EXAMPLE' }),
    secret_access_key: z
      .string()
      .max(1_024)
      .openapi({ example: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' }),
    // Those of Amazon have about 1,000 characters; their size is not limited.
    session_token: z.string().max(16_384).optional().openapi({ example: 'IQoJb3JpZ2luX2VjE…' }),
  })
  .openapi('BucketAccess', {
    description: 'Credentials to read the bucket of an s3:// URL. They are not stored.',
  })

export const UrlRequest = z
  .strictObject({
    url: z.string().max(LIST_URL_LENGTH_MAX).openapi({
      description: 'URL of the list: https://host/path, or s3://bucket/key with `s3`.',
      example: 'https://files.example.com/march.csv',
    }),
    s3: BucketAccess.optional(),
    column: z
      .union([fileText.column, z.int().min(1)], {
        error: `must be a name of at most ${COLUMN_NAME_LENGTH_MAX} characters, or a number from 1`,
      })
      .optional()
      .openapi({
        description: 'Name or number (from 1) of the address column. Default: detected.',
        example: 'email',
      }),
    sheet,
    header: z.boolean().optional().openapi({ description: HEADER, example: true }),
    encoding,
    all_addresses: z.boolean().optional().openapi({ description: ALL_ADDRESSES, example: false }),
    keep_external: z.boolean().optional().openapi({ description: KEEP_EXTERNAL, example: false }),
    external_date,
    name: name.openapi({ description: FILE_NAME }),
    deduplicate,
    ...optionFields,
    metadata,
    notify,
    webhook_url,
    dry_run: z.boolean().optional().openapi({ description: DRY_RUN, example: false }),
  })
  .openapi('UrlRequest', { required: ['url'] })

const WELL_FORMED = "Rows with a well-formed address. It doesn't have to exist."
const MALFORMED =
  'Rows with a malformed address. If the response has no `no_address`, this includes rows without an address.'
const NO_ADDRESS =
  'Rows without an address: blank between other rows, empty in the address column, or with a placeholder such as `n/a`. They are free, and their reason is `no_address`.'

const number = (example: number) => z.int().min(0).openapi({ example })

const counts = {
  total_emails: number(2),
  valid_emails: number(2).openapi({ description: WELL_FORMED }),
  invalid_format_emails: number(0).openapi({ description: MALFORMED }),
}

const job_id = z.string().openapi({ example: 'job_xyz789' })

export const InstantBulk = z
  .object({
    success: z.literal(true),
    instant: z.literal(true),
    job_id,
    status: z.literal('completed'),
    ...counts,
    results: z.array(BulkItem).max(INSTANT_MAX),
    summary: z.object({
      total: number(2),
      valid: number(2).openapi({ description: 'Deliverable or risky rows.' }),
      invalid: number(0).openapi({
        description: 'All other rows: undeliverable, unknown or malformed.',
      }),
    }),
    message: z.string().openapi({ example: 'Verified 2 addresses' }),
    ...webhook,
  })
  .openapi('InstantBulk')

const queued = {
  success: z.literal(true),
  job_id,
  status: z.literal('queued'),
  ...counts,
}

const course = {
  estimated_time: z.string().openapi({ example: '10 seconds' }),
  message: z.string().openapi({ example: 'Queued. Check GET /v1/verify/bulk/status/job_xyz789' }),
  ...webhook,
}

export const QueuedBulk = z.object({ ...queued, ...course }).openapi('QueuedBulk')

const linked = {
  ...queued,
  no_address: number(0).openapi({ description: NO_ADDRESS }),
  duplicates: number(0).openapi({
    description: 'Rows that repeat the address of an earlier row.',
  }),
  ...course,
  status_url: z.string().openapi({
    description: 'URL of the job.',
    example: 'https://api.example.com/v1/jobs/job_xyz789',
  }),
  download_url: z.string().openapi({
    example: 'https://api.example.com/v1/jobs/job_xyz789/download',
    description:
      'URL of the results. Requires an API key, and returns 409 `job_not_ready` until the job is completed.',
  }),
}

export const QueuedBatch = z.object(linked).openapi('QueuedBatch')

const addressFields = {
  address_columns: z.array(z.int().min(1)).openapi({
    example: [2],
    description:
      'Numbers of all columns that contain addresses, including `column_number`. Only `column_number` is verified unless `all_addresses` is true.',
  }),
  has_several: z.boolean().openapi({
    example: false,
    description:
      'Whether some cells of the address column contain several addresses. Unless `all_addresses` is true, such a cell is `invalid_email`; in a list without other columns, the first address of the line is verified.',
  }),
  all_addresses: z.boolean().openapi({
    description: 'Whether every address of a row is verified, each as a separate row.',
    example: false,
  }),
  external_source: z.enum(EXTERNAL_SOURCES).nullable().openapi({
    example: null,
    description:
      'The service whose results the file has in its columns. Null if none is recognized.',
  }),
  kept_external: number(0).openapi({
    description:
      'Rows that keep such a result because `keep_external` is true. They are not verified and not charged.',
  }),
}

export const QueuedFile = z
  .object({
    ...linked,
    column: z
      .string()
      .nullable()
      .openapi({ description: 'Name of the address column.', example: 'email' }),
    column_number: z.int().min(1).openapi({ example: 2 }),
    header: z.boolean().openapi({ example: true }),
    encoding: z
      .string()
      .openapi({ description: 'Encoding of the file, as a WHATWG label.', example: 'utf-8' }),
    sheet: z.string().nullable().openapi({
      description: "Name of the sheet that is read. Null if the file isn't a workbook.",
      example: null,
    }),
    rows: number(2),
    ...addressFields,
  })
  .openapi('QueuedFile')

const count = (example: number) => z.int().min(0).nullable().openapi({ example })

/** Preview of a file. Counts are null if its address column is unknown. */
export const FileDryRun = z
  .object({
    success: z.literal(true),
    dry_run: z.literal(true),
    columns: z
      .array(
        z.object({
          number: z.int().min(1).openapi({ example: 2 }),
          name: z.string().nullable().openapi({ example: 'email' }),
        }),
      )
      .openapi({ description: 'Names of the columns. Truncated if there are very many.' }),
    column: QueuedFile.shape.column,
    column_number: z.int().min(1).nullable().openapi({
      description: 'Number of the address column, from 1. Null if none was found: set `column`.',
      example: 2,
    }),
    header: QueuedFile.shape.header,
    encoding: QueuedFile.shape.encoding,
    delimiter: z.enum([',', ';', '\t', '|']).openapi({ example: ',' }),
    format: z.enum(['text', 'gzip', 'zip', 'xlsx']).openapi({
      description: 'Format of the file: text, compressed text, or a workbook.',
      example: 'text',
    }),
    sheet: QueuedFile.shape.sheet,
    sheets: z.array(z.string()).openapi({
      description: "Names of all sheets. Empty if the file isn't a workbook.",
      example: [],
    }),
    ...addressFields,
    rows: count(2),
    total_emails: count(2),
    valid_emails: count(2).openapi({ description: WELL_FORMED }),
    invalid_format_emails: count(0).openapi({ description: MALFORMED }),
    no_address: count(0).openapi({ description: NO_ADDRESS }),
    duplicates: count(0),
    credits_needed: count(2).openapi({ description: 'Credits that the list costs at most.' }),
    credits_balance: z
      .int()
      .min(0)
      .nullable()
      .openapi({ description: 'Credits left today. Null if the plan has no limit.', example: 98 }),
    estimated_time: z.string().nullable().openapi({
      description: 'Estimated duration.',
      example: '10 seconds',
    }),
    preview: z.array(z.array(z.string())).openapi({
      description: 'The first five rows. Long cells are truncated.',
      example: [
        ['Ann', 'a@example.com'],
        ['Bob', 'b@example.com'],
      ],
    }),
  })
  .openapi('FileDryRun')
