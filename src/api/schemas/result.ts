import { z } from '@hono/zod-openapi'
import { REASONS } from '../../engine/verdict/reason.ts'
import { Evidence } from './evidence.ts'

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
    domain_exists: z.boolean().openapi({ description: 'Whether the domain exists.' }),
    mx_record: z.boolean().openapi({
      description: 'Whether the domain has a mail server: an MX record, or else its own address.',
    }),
    smtp_valid: z.boolean().openapi({
      description:
        'Whether the mail server accepts mail for the address. Also false if it was not contacted.',
    }),
  })
  .openapi('Details')

/** `valid` of a result. In counts the word has other meanings, which docs/api.md explains. */
export const VALID =
  'True if the class is `deliverable` or `risky`. False if it is `undeliverable` or `unknown`.'
export const DELIVERABLE = 'True if mail is expected to arrive. This includes some risky addresses.'

const Class = z.enum(STATUSES).openapi('Class', {
  description:
    'Class of the result. Jobs count rows by class; downloads and the history can be filtered by it.',
})

export const plainFields = {
  email: z.string().openapi({ description: 'The address that was verified.' }),
  valid: z.boolean().openapi({ description: VALID }),
  deliverable: z.boolean().openapi({ description: DELIVERABLE }),
  risk_level: RiskLevel,
  provider: z.string().openapi({ description: 'Domain of the address. Empty if it has none.' }),
  response_time: z.int().min(0).openapi({ description: 'Duration in milliseconds.' }),
  confidence: z.int().min(0).max(100).openapi({
    description: 'How certain the result is, from 0 to 100. It does not rate the address itself.',
  }),
  details: Details,
  reason: ReasonName,
  cached: z.boolean().openapi({ description: 'Whether the result came from the cache.' }),
  class: Class,
}

const addressFlagFields = {
  is_disposable: z
    .boolean()
    .openapi({ description: 'Whether the domain provides temporary addresses.' }),
  is_role: z
    .boolean()
    .openapi({ description: 'Whether the address belongs to a function, such as `info@`.' }),
  is_catch_all: z.boolean().nullable().openapi({
    description: 'Whether the domain accepts every address. Null if it was not tested.',
  }),
  is_free: z.boolean().openapi({ description: 'Whether the domain is a free email provider.' }),
  is_relay: z.boolean().openapi({
    description: 'Whether the address is an alias of a forwarding service.',
  }),
}

/** The mail server and its reply. */
export const hostFields = {
  operator: z
    .string()
    .nullable()
    .openapi({ description: 'Operator of the mail servers of the domain.' }),
  mx_host: z.string().nullable().openapi({
    description: 'The mail server that was contacted, or the first one of the domain if none was.',
  }),
  smtp_code: z.int().nullable().openapi({
    description: 'SMTP reply code of the mail server. Null if it sent none.',
  }),
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
  did_you_mean: z.string().nullable().optional().openapi({
    description: 'Suggested address if the domain is probably misspelled. Null if it is not.',
  }),
  canonical: z.string().nullable().optional().openapi({
    description:
      'The canonical spelling of the address at its provider: `ann@gmail.com` for `A.nn+news@googlemail.com`. Addresses with the same one are the same mailbox. Null if the text is not an address.',
  }),
  mx_host: hostFields.mx_host.optional(),
  checked_at: z.string().optional().openapi({
    format: 'date-time',
    description: 'When the address was verified. Earlier than now if the result is cached.',
  }),
}

const includedFields = {
  ...flagFields,
  evidence: Evidence.optional(),
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
      .openapi({ description: 'Quality of the address from 0 (do not send) to 100 (send).' }),
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
