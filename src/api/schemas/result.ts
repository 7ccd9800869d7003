import { z } from '@hono/zod-openapi'
import { REASONS } from '../../engine/verdict/reason.ts'

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

const Class = z.enum(STATUSES).openapi('Class', {
  description:
    'One of four; jobs are counted by it, and downloads and the history are filtered by it.',
})

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
  class: Class,
}

const addressFlagFields = {
  is_disposable: z.boolean(),
  is_role: z.boolean(),
  is_catch_all: z.boolean().nullable().openapi({ description: 'null: the domain was not tested.' }),
  is_free: z.boolean(),
  is_relay: z.boolean(),
}

/** Who was asked about the address, and what was said. */
export const hostFields = {
  operator: z.string().nullable().openapi({ description: 'Who runs the mail of the domain.' }),
  mx_host: z.string().nullable().openapi({
    description: 'The mail server that was asked; if none was, the first one of the domain.',
  }),
  smtp_code: z.int().nullable(),
  smtp_text: z.string().nullable().openapi({
    description: 'What the mail server said; of one that said nothing, what was seen of it.',
  }),
}

/** `?include=flags`. */
const flagFields = {
  retry_after: z.int().optional().openapi({
    description: 'After how many seconds it is worth asking again, where that is known.',
  }),
  flags: z.object(addressFlagFields).optional(),
  did_you_mean: z.string().nullable().optional(),
  mx_host: hostFields.mx_host.optional(),
  checked_at: z.string().optional().openapi({ format: 'date-time' }),
}

const includedFields = {
  ...flagFields,
  evidence: z.record(z.string(), z.unknown()).optional().openapi({
    description:
      '`?include=evidence`: what DNS and mail servers said. For people; its fields may change.',
  }),
}

export const SingleResult = z
  .object({
    ...plainFields,
    ...includedFields,
    sandbox: z.literal(true).optional().openapi({ description: 'The result is simulated.' }),
  })
  .openapi('SingleResult')

/** The result of `POST /v1/verify`: the plain one, with a status, a score and flags. */
export const ScoredResult = z
  .object({
    ...plainFields,
    status: z.enum(STATUSES).openapi({
      description:
        'The class. The sandbox has no `unknown` here: it answers `risky`, and `class` and `reason` tell what it simulates.',
    }),
    score: z.int().min(0).max(100).openapi({ description: 'How likely mail is welcome.' }),
    is_disposable: addressFlagFields.is_disposable,
    is_role: addressFlagFields.is_role,
    is_catch_all: addressFlagFields.is_catch_all,
    is_free: addressFlagFields.is_free,
    ...includedFields,
    sandbox: z.boolean().openapi({ description: 'Whether the result is simulated.' }),
  })
  .openapi('ScoredResult')

/** One row of a list. */
export const BulkItem = z
  .object({
    email: plainFields.email,
    valid: plainFields.valid,
    deliverable: plainFields.deliverable,
    risk_level: plainFields.risk_level,
    reason: plainFields.reason,
    cached: plainFields.cached,
    class: plainFields.class,
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
  class: 'deliverable' as const,
}

export const ITEM_EXAMPLE = {
  email: 'user@example.com',
  valid: true,
  deliverable: true,
  risk_level: 'low' as const,
  reason: 'accepted_email' as const,
  cached: false,
  class: 'deliverable' as const,
}
