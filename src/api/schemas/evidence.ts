import { z } from '@hono/zod-openapi'

// The schema of evidence. `presentEvidence` returns it; a test compares both types.

/** The mail route of a domain. */
export const ROUTE_KINDS = [
  ...(['mx', 'implicit', 'null-mx', 'no-domain', 'no-mail', 'unknown'] as const),
] as const

export const mailHosts = z
  .array(z.object({ preference: z.int().min(0), host: z.string() }))
  .openapi({ description: 'Mail servers, most preferred first.' })

const Syntax = z.object({
  at: z
    .int()
    .min(0)
    .openapi({ description: 'Index of the first wrong character, in UTF-16 code units.' }),
  message: z.string(),
  rule: z.string().openapi({
    description: 'The violated clause of a standard.',
    example: 'RFC 5321 §4.1.2',
  }),
})

const Route = z.object({
  kind: z.enum(ROUTE_KINDS).openapi({
    description:
      'mx: has MX records. implicit: has no MX record, but an address. null-mx: accepts no mail (RFC 7505). no-domain: does not exist. no-mail: has neither MX record nor address. unknown: DNS gave no conclusive answer.',
  }),
  hosts: mailHosts,
  detail: z
    .string()
    .optional()
    .openapi({ description: 'Why the answer of the DNS server was not used.' }),
})

const OUTCOME_KINDS = ['accepted', 'rejected', 'blocked', 'deferred', 'no-response'] as const

const OUTCOME_REASONS = [
  ...(['recipient', 'cannot-verify', 'restricted'] as const),
  ...(['no-mailbox', 'disabled', 'full', 'moved', 'not-hosted', 'no-mail'] as const),
  ...(['blocklist', 'rdns', 'sender', 'tls', 'auth', 'policy'] as const),
  ...(['greylist', 'rate', 'too-many', 'busy'] as const),
  ...(['no-address', 'dns', 'connect', 'timeout', 'closed', 'garbage'] as const),
  ...(['not-public', 'smtputf8', 'own-limit'] as const),
] as const

const STAGES = ['connect', 'greeting', 'ehlo', 'starttls', 'mail', 'rcpt', 'rset'] as const

const Answer = z.object({
  kind: z.enum(OUTCOME_KINDS).openapi({
    description:
      'accepted, rejected: the mail server decided about the address. blocked: it refused ev. deferred: it asked to try again later. no-response: it sent no usable reply.',
  }),
  why: z.enum(OUTCOME_REASONS).openapi({ description: 'The cause of the outcome.' }),
  stage: z.enum(STAGES).openapi({ description: 'The step of the SMTP session.' }),
  code: z.int().nullable().openapi({ description: 'SMTP reply code. Null without a reply.' }),
  enhanced_code: z
    .string()
    .nullable()
    .openapi({ description: 'Enhanced status code (RFC 3463).', example: '5.1.1' }),
  text: z.string().openapi({
    description: 'The reply of the mail server, or what was observed if it sent none.',
  }),
  meaning: z.string().openapi({ description: 'The meaning and the recommended action, as text.' }),
  learned: z
    .object({
      scope: z.enum(['domain', 'operator', 'software']).openapi({
        description:
          'domain: this domain. operator: other domains of its operator. software: domains of other operators with the same server software.',
      }),
      domains: z.int().min(1).openapi({
        description: 'Number of domains whose server gave the reply to a random recipient.',
      }),
    })
    .optional()
    .openapi({
      description:
        'Set if the reply is unknown to ev, but servers gave it to random recipients, which do not exist.',
    }),
})

const Signal = z.object({
  name: z.enum(['policies', 'parking', 'typo-network', 'gravatar']),
  shift: z.int().openapi({
    description: 'Points that it adds to the confidence that the address is not deliverable.',
  }),
  detail: z.string(),
})

const Feedback = z.object({
  summary: z.string().openapi({ example: 'bounced on 2026-03-21' }),
  kind: z.enum(['delivered', 'bounced', 'complained']),
  occurred_at: z.string().openapi({ format: 'date-time' }),
  code: z.int().nullable().openapi({ description: 'SMTP reply code.' }),
  enhanced_code: z.string().nullable(),
  text: z.string().nullable(),
  decides: z.boolean().openapi({
    description: 'Whether it decided the result: no newer evidence contradicts it.',
  }),
})

const share = z.number().min(0).max(1)
const count = z.number().min(0)

const DomainFeedback = z.object({
  delivered: count.openapi({ description: 'Addresses that received mail.' }),
  bounced: count.openapi({ description: 'Addresses whose mail bounced.' }),
  bounce_rate_min: share.openapi({ description: 'Lower bound of the bounce rate.' }),
  bounce_rate_max: share.openapi({ description: 'Upper bound of the bounce rate.' }),
})

const CalibrationLevel = z
  .object({
    correct: count.openapi({
      description: 'Results that feedback confirmed, weighted by age, with the trend.',
    }),
    total: count.openapi({ description: 'Results with feedback, weighted by age.' }),
    prior_weight: count.nullable().openapi({
      description: 'The share of the level above counts as this many results.',
    }),
    half_life_days: count.nullable().openapi({
      description: 'After this time a result has half its weight. Null if results do not age.',
    }),
    trend: z.number().min(-1).max(1).nullable().openapi({
      description:
        'How much of correct / total is the extrapolation of its trend. Null if results do not age.',
    }),
  })
  .openapi('CalibrationLevel')

const Calibration = z.object({
  fixed_confidence: z.int().min(0).max(100).openapi({
    description: 'The confidence of the reason without feedback.',
  }),
  reason: CalibrationLevel,
  operator: z.union([CalibrationLevel, z.null()]),
  // A named schema with `nullable` would be documented as never null.
  domain: z.union([CalibrationLevel, z.null()]),
})

/** The facts that the result of one address is based on. */
export const Evidence = z
  .object({
    syntax: Syntax.nullable().openapi({
      description: 'The syntax error of the address. Null if it has none.',
    }),
    canonical: z.string().nullable().openapi({
      description: 'The address without what its provider ignores, such as dots and tags.',
    }),
    operator: z
      .string()
      .nullable()
      .openapi({ description: 'Operator of the mail servers of the domain.' }),
    route: Route.nullable().openapi({
      description: 'How mail for the domain is routed. Null if it was not looked up.',
    }),
    egress: z.string().nullable().openapi({
      description: 'Name of the egress from which the mail server was contacted.',
    }),
    host: z
      .string()
      .nullable()
      .openapi({ description: 'The mail server that was contacted. Null if none was.' }),
    ip: z.string().nullable().openapi({ description: 'Its IP address.' }),
    tls: z.boolean().openapi({ description: 'Whether the SMTP session was encrypted.' }),
    answer: Answer.nullable().openapi({
      description: 'What the mail server said about the address. Null if it was not asked.',
    }),
    catch_all: z.boolean().nullable().openapi({
      description: 'Whether the domain accepts every address. Null if it was not tested.',
    }),
    skipped: z.enum(['literal', 'unwanted', 'sandbox', 'finished']).nullable().openapi({
      description:
        'Why no mail server was asked. literal: the domain is an IP address. unwanted: `check_smtp` is false. sandbox: the result is simulated. finished: the list was finished before the address was probed.',
    }),
    failure: z.string().nullable().openapi({ description: 'The message of an internal error.' }),
    dns_ms: z.int().min(0).nullable().openapi({ description: 'Duration of the DNS lookups.' }),
    connect_ms: z.int().min(0).nullable().openapi({ description: 'Duration of connecting.' }),
    dialogue: z
      .array(z.string())
      .optional()
      .openapi({ description: 'Lines of the SMTP session, with `C: ` or `S: `.' }),
    signals: z
      .array(Signal)
      .optional()
      .openapi({ description: 'Signals from outside the SMTP session, if any were looked for.' }),
    feedback: Feedback.optional().openapi({
      description: 'The newest feedback about the address.',
    }),
    domain_feedback: DomainFeedback.optional().openapi({
      description: 'The feedback about a catch-all domain.',
    }),
    calibration: Calibration.optional().openapi({
      description: 'The measurements that the confidence is based on.',
    }),
  })
  .openapi('Evidence', {
    description:
      'The facts that a result is based on, with `?include=evidence`: replies of DNS and mail servers, signals and feedback. Later versions may add fields and values.',
  })
