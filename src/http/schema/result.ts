import { z } from '@hono/zod-openapi'
import { REASONS } from '../../verdict/reason.ts'

// What is answered about addresses; names and order as the interface states them.

const RISKS = ['low', 'medium', 'high', 'unknown'] as const
export const STATUSES = ['deliverable', 'undeliverable', 'risky', 'unknown'] as const

const RiskLevel = z.enum(RISKS).openapi('RiskLevel', {
  description:
    'low: accepted, nothing against it. medium: accepted, with less quality or certainty. high: mail will bounce or do harm. unknown: no answer could be had.',
})

const ReasonName = z.enum(REASONS).openapi('Reason', {
  description: 'Why the result is what it is.',
})

const Details = z
  .object({
    syntax_valid: z.boolean().openapi({ description: 'The text is a well-formed address.' }),
    domain_exists: z.boolean(),
    mx_record: z.boolean(),
    smtp_valid: z.boolean().openapi({
      description: 'The mail server accepts mail for it; false also where it was not asked.',
    }),
  })
  .openapi('Details')

/** `valid` of a result; in counts the word means other things, as docs/api.md tells. */
export const VALID =
  'true: the class is `deliverable` or `risky`. false: it is `undeliverable`, or `unknown`, where nothing was found out.'
export const DELIVERABLE = 'true: mail is expected to arrive, also at some of the risky addresses.'

export const plainFields = {
  email: z.string().openapi({ description: 'The address that was verified.' }),
  valid: z.boolean().openapi({ description: VALID }),
  deliverable: z.boolean().openapi({ description: DELIVERABLE }),
  risk_level: RiskLevel,
  provider: z.string().openapi({ description: 'Domain of the address; empty where it has none.' }),
  response_time: z.int().min(0).openapi({ description: 'Milliseconds.' }),
  confidence: z.int().min(0).max(100).openapi({
    description: 'How sure the result is, not how good the address is.',
  }),
  details: Details,
  reason: ReasonName,
  cached: z.boolean().openapi({ description: 'Whether the answer was known from before.' }),
}

/** `?include=flags`. */
const flagFields = {
  retry_after: z.int().optional().openapi({
    description: 'After how many seconds it is worth asking again, where that is known.',
  }),
  class: z.enum(STATUSES).optional(),
  flags: z
    .object({
      is_disposable: z.boolean(),
      is_role: z.boolean(),
      is_catch_all: z.boolean().nullable(),
      is_free: z.boolean(),
      is_relay: z.boolean(),
    })
    .optional(),
  did_you_mean: z.string().nullable().optional(),
  mx_host: z.string().nullable().optional(),
  checked_at: z.string().optional().openapi({ format: 'date-time' }),
}

export const SingleResult = z
  .object({
    ...plainFields,
    ...flagFields,
    evidence: z.record(z.string(), z.unknown()).optional().openapi({
      description:
        '`?include=evidence`: what DNS and mail servers said. For people; its fields may change.',
    }),
    sandbox: z.literal(true).optional().openapi({ description: 'The result is simulated.' }),
  })
  .openapi('SingleResult')

/** One row of a list. */
export const BulkItem = z
  .object({
    email: plainFields.email,
    valid: plainFields.valid,
    deliverable: plainFields.deliverable,
    risk_level: plainFields.risk_level,
    reason: plainFields.reason,
    cached: plainFields.cached,
  })
  .openapi('BulkItem')

export const RESULT_EXAMPLE = {
  email: 'user@example.com',
  valid: true,
  deliverable: true,
  risk_level: 'low' as const,
  provider: 'example.com',
  response_time: 412,
  confidence: 95,
  details: { syntax_valid: true, domain_exists: true, mx_record: true, smtp_valid: true },
  reason: 'accepted_email' as const,
  cached: false,
}

export const ITEM_EXAMPLE = {
  email: 'user@example.com',
  valid: true,
  deliverable: true,
  risk_level: 'low' as const,
  reason: 'accepted_email' as const,
  cached: false,
}
