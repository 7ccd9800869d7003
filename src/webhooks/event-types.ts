import { RESULT_FIELDS } from '../engine/verdict/result-fields.ts'
import { buildExample, type JsonFields, type JsonObject } from '../platform/json-fields.ts'

// The event types: name, text, and the fields of `data` with their examples. The API document, the
// types of both clients, the help of the command line, the dashboard and the table of
// docs/webhooks.md are made from them. To add a type, add it here, emit it (`event-store.ts`), and
// run `npm run openapi`.

type EventDefinition = {
  /** When it is sent, as sentences. */
  readonly description: string
  /** The fields of `data`, in the order in which they are sent. */
  readonly data: JsonFields
}

const count = { type: 'integer', minimum: 0 } as const

/** Fields of every event about a job. */
const jobFields = {
  metadata: {
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Metadata of the job. Empty if none was submitted.',
    example: { customer: '42' },
  },
  previous_job_id: {
    type: 'string',
    optional: true,
    description: 'The job that this job re-verifies. Only present in a re-verification.',
  },
  schedule_id: {
    type: 'string',
    optional: true,
    description: 'The schedule that created the job. Only present in a scheduled job.',
  },
} as const satisfies JsonFields

const quotaFields = {
  plan: { type: 'string', example: 'free' },
  limit: { ...count, description: 'Credits of the period.', example: 100 },
  used: { ...count, description: 'Credits that are used or reserved.', example: 80 },
  remaining: { ...count, example: 20 },
  threshold_percent: {
    type: 'integer',
    minimum: 0,
    maximum: 100,
    description: 'The share that was reached: 80, 95 or 100.',
    example: 80,
  },
  resets_at: {
    type: 'string',
    format: 'date-time',
    description: 'When the next period begins.',
    example: '2026-03-22T00:00:00.000Z',
  },
} as const satisfies JsonFields

/** The types that a webhook can subscribe to (spec section 6). */
const SUBSCRIBED = {
  'batch.completed': {
    description:
      'A list is finished. Here, `valid` counts deliverable rows only; `summary.valid` of the job also counts risky rows.',
    data: {
      job_id: { type: 'string', example: 'job_xyz789' },
      total: { ...count, example: 10_000 },
      valid: {
        ...count,
        description: 'Deliverable rows. `summary.valid` of the job is `valid` + `risky`.',
        example: 8_400,
      },
      invalid: { ...count, description: 'Undeliverable rows.', example: 1_200 },
      risky: { ...count, example: 300 },
      unknown: { ...count, example: 90 },
      failed: { ...count, example: 10 },
      download_url: {
        type: 'string',
        description: 'URL of the results. Requires an API key.',
        example: 'https://api.example.com/v1/jobs/job_xyz789/download',
      },
      ...jobFields,
    },
  },
  'batch.failed': {
    description: 'A list could not be completed.',
    data: {
      job_id: { type: 'string', example: 'job_xyz789' },
      total: { ...count, example: 10_000 },
      processed: { ...count, example: 4_200 },
      error: { type: 'string', example: 'server_error' },
      message: { type: 'string', example: 'The job could not be finished' },
      ...jobFields,
    },
  },
  'verification.completed': {
    description: 'The verification of a single address with `"async": true` is finished.',
    data: {
      verification_id: { type: 'string', example: 'ver_01' },
      ...RESULT_FIELDS,
      metadata: jobFields.metadata,
    },
  },
  'quota.warning': {
    description: 'You have used 80 or 95 percent of your credits for the period.',
    data: quotaFields,
  },
  'quota.exceeded': {
    description: 'You have used all of your credits for the period.',
    data: {
      ...quotaFields,
      used: { ...quotaFields.used, example: 100 },
      remaining: { ...quotaFields.remaining, example: 0 },
      threshold_percent: { ...quotaFields.threshold_percent, example: 100 },
    },
  },
} as const satisfies Readonly<Record<string, EventDefinition>>

/** The type of test events, which are sent regardless of subscriptions. */
export const TEST_KIND = 'webhook.test' as const

const SENT = {
  ...SUBSCRIBED,
  [TEST_KIND]: {
    description: 'A test event. It needs no subscription.',
    data: {
      webhook_id: { type: 'string', example: 'wh_8f3a2c1d' },
      message: { type: 'string', example: 'Test event' },
    },
  },
} as const satisfies Readonly<Record<string, EventDefinition>>

export type EventKind = keyof typeof SUBSCRIBED

/** A type that is sent and logged. */
export type SentKind = keyof typeof SENT

export const EVENT_TYPES: Readonly<Record<SentKind, EventDefinition>> = SENT

export const EVENT_KINDS = Object.keys(SUBSCRIBED) as [EventKind, ...EventKind[]]

export const SENT_KINDS = Object.keys(SENT) as [SentKind, ...SentKind[]]

export const isEventKind = (text: string): text is EventKind => Object.hasOwn(SUBSCRIBED, text)

/** `data` of an event, by its type. */
export type EventData = {
  readonly [Kind in SentKind]: JsonObject<(typeof SENT)[Kind]['data']>
}

/** The documented example of the data of a type. */
export const buildEventExample = <Kind extends SentKind>(kind: Kind): EventData[Kind] =>
  buildExample(SENT[kind].data) as EventData[Kind]
