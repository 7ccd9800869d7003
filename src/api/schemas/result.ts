import { z } from '@hono/zod-openapi'
import { REASONS } from '../../engine/verdict/reason.ts'

// Schemas of results. Names and order are those of the interface.

const RISKS = ['low', 'medium', 'high', 'unknown'] as const
export const STATUSES = ['deliverable', 'undeliverable', 'risky', 'unknown'] as const

const RiskLevel = z.enum(RISKS).openapi('RiskLevel', {
  description:
    'low: accepted, no concerns. medium: accepted, with lower quality or certainty. high: mail will bounce or do harm. unknown: no conclusive answer.',
})

const ReasonName = z.enum(REASONS).openapi('Reason', {
  description: 'Reason for the result.',
})

const Details = z
  .object({
    syntax_valid: z
      .boolean()
      .openapi({ description: 'Whether the text is a well-formed address.' }),
    domain_exists: z.boolean(),
    mx_record: z.boolean(),
    smtp_valid: z.boolean().openapi({
      description:
        'Whether the mail server accepts mail for the address. Also false if it was not asked.',
    }),
  })
  .openapi('Details')

/** `valid` of a result. In counts the word has other meanings, which docs/api.md explains. */
export const VALID =
  'True if the class is `deliverable` or `risky`. False if it is `undeliverable` or `unknown`.'
export const DELIVERABLE = 'True if mail is expected to arrive. This includes some risky addresses.'

const Class = z.enum(STATUSES).openapi('Class', {
  description:
    'One of four classes. Jobs count by class; downloads and the history can be filtered by it.',
})

export const plainFields = {
  email: z.string().openapi({ description: 'The address that was verified.' }),
  valid: z.boolean().openapi({ description: VALID }),
  deliverable: z.boolean().openapi({ description: DELIVERABLE }),
  risk_level: RiskLevel,
  provider: z.string().openapi({ description: 'Domain of the address. Empty if it has none.' }),
  response_time: z.int().min(0).openapi({ description: 'Duration in milliseconds.' }),
  confidence: z.int().min(0).max(100).openapi({
    description: 'How certain the result is, not how good the address is.',
  }),
  details: Details,
  reason: ReasonName,
  cached: z.boolean().openapi({ description: 'Whether the answer came from the cache.' }),
  class: Class,
}

const addressFlagFields = {
  is_disposable: z.boolean(),
  is_role: z.boolean(),
  is_catch_all: z
    .boolean()
    .nullable()
    .openapi({ description: 'Null if the domain was not tested.' }),
  is_free: z.boolean(),
  is_relay: z.boolean(),
}

/** The mail server and its reply. */
export const hostFields = {
  operator: z
    .string()
    .nullable()
    .openapi({ description: 'Operator of the mail servers of the domain.' }),
  mx_host: z.string().nullable().openapi({
    description: 'The mail server that was asked, or the first one of the domain if none was.',
  }),
  smtp_code: z.int().nullable(),
  smtp_text: z.string().nullable().openapi({
    description: 'Reply of the mail server, or what was observed if it sent none.',
  }),
}

/** Fields that `?include=flags` adds. */
const flagFields = {
  retry_after: z.int().optional().openapi({
    description: 'Seconds after which a retry is useful, if known.',
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
      '`?include=evidence`: what DNS and mail servers replied. For debugging; its fields may change.',
  }),
}

export const SingleResult = z
  .object({
    ...plainFields,
    ...includedFields,
    sandbox: z.literal(true).optional().openapi({ description: 'The result is simulated.' }),
  })
  .openapi('SingleResult')

/** The result of `POST /v1/verify`: the plain result with a status, a score and flags. */
export const ScoredResult = z
  .object({
    ...plainFields,
    status: z.enum(STATUSES).openapi({
      description:
        'The class. The sandbox reports `unknown` as `risky` here; `class` and `reason` have the simulated values.',
    }),
    score: z
      .int()
      .min(0)
      .max(100)
      .openapi({ description: 'How likely mail is welcome, from 0 to 100.' }),
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
