import { z } from '@hono/zod-openapi'
import { REASONS } from '../../engine/verdict/reason.ts'
import { Evidence } from './evidence.ts'

// Schemas of results. Names and order are those of the interface.

const RISKS = ['low', 'medium', 'high', 'unknown'] as const
export const STATUSES = ['deliverable', 'undeliverable', 'risky', 'unknown'] as const

const RiskLevel = z.enum(RISKS).openapi('RiskLevel', {
  description:
    'Risk of sending to the address. `low`: it is accepted. `medium`: it is accepted, with a lower quality or certainty. `high`: mail would bounce or do harm. `unknown`: no answer could be obtained.',
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
        "Whether the mail server accepts mail for the address. False if it wasn't contacted.",
    }),
  })
  .openapi('Details')

/** `valid` of a result. In counts the word has other meanings, which docs/api.md explains. */
export const VALID =
  'True if the class is `deliverable` or `risky`. False if it is `undeliverable` or `unknown`.'
export const DELIVERABLE = 'True if mail is expected to arrive. This includes some risky addresses.'

const Class = z.enum(STATUSES).openapi('Class', {
  description:
    'What to do with the address. `deliverable`: send. `undeliverable`: remove it. `risky`: decide by the `reason`. `unknown`: no answer could be obtained.',
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
  is_role: z.boolean().openapi({
    description: 'Whether the address belongs to a role, such as `info@`, rather than a person.',
  }),
  is_catch_all: z.boolean().nullable().openapi({
    description: "Whether the domain accepts mail for every address. Null if it wasn't tested.",
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
    description:
      'The mail server that was contacted. If none was, the preferred mail server of the domain.',
  }),
  smtp_code: z.int().nullable().openapi({
    description: "SMTP reply code of the mail server. Null if it didn't reply.",
  }),
  smtp_text: z.string().nullable().openapi({
    description: "Reply of the mail server. If it didn't reply, what happened instead.",
  }),
}

/** Fields that `?include=flags` adds. */
const flagFields = {
  retry_after: z.int().optional().openapi({
    description: 'Seconds to wait before you retry the address. Only present if known.',
  }),
  flags: z.object(addressFlagFields).optional(),
  did_you_mean: z.string().nullable().optional().openapi({
    description: 'Suggested address, if the domain looks misspelled. Otherwise null.',
  }),
  canonical: z.string().nullable().optional().openapi({
    description:
      "Canonical form of the address at its provider, such as `ann@gmail.com` for `A.nn+news@googlemail.com`. Addresses with the same canonical form are the same mailbox. Null if the text isn't an address.",
  }),
  mx_host: hostFields.mx_host.optional(),
  checked_at: z.string().optional().openapi({
    format: 'date-time',
    description: 'When the address was verified. For a cached result, this is in the past.',
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
        'The class of the result, except that a simulated `unknown` is `risky` here. `class` has the simulated value.',
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
