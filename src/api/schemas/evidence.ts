import { z } from '@hono/zod-openapi'
import { EXTERNAL_SOURCES } from '../../engine/verdict/verdict.ts'

// The schema of evidence. `presentEvidence` returns it; a test compares both types.

/** The mail route of a domain. */
export const ROUTE_KINDS = [
  ...(['mx', 'implicit', 'null-mx', 'no-domain', 'no-mail', 'unknown'] as const),
] as const

export const mailHosts = z
  .array(z.object({ preference: z.int().min(0), host: z.string() }))
  .openapi({ description: 'Mail servers in order of preference.' })

const Syntax = z.object({
  at: z.int().min(0).openapi({
    description: 'Position of the first invalid character, in UTF-16 code units from 0.',
  }),
  message: z.string(),
  rule: z.string().openapi({
    description: 'The section of the standard that the address violates.',
    example: 'RFC 5321 §4.1.2',
  }),
})

const Route = z.object({
  kind: z.enum(ROUTE_KINDS).openapi({
    description:
      "`mx`: the domain has MX records. `implicit`: it has an address but no MX record. `null-mx`: it doesn't accept mail (RFC 7505). `no-domain`: it doesn't exist. `no-mail`: it has neither an MX record nor an address. `unknown`: the DNS lookup failed.",
  }),
  hosts: mailHosts,
  detail: z
    .string()
    .optional()
    .openapi({ description: "Why the answer of the DNS server wasn't trusted." }),
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
      '`accepted`, `rejected`: the mail server accepted or rejected the address. `blocked`: it refused to talk to ev. `deferred`: it asked to retry later. `no-response`: it sent no usable reply.',
  }),
  why: z.enum(OUTCOME_REASONS).openapi({ description: 'The cause of the outcome.' }),
  stage: z.enum(STAGES).openapi({ description: 'The step of the SMTP session.' }),
  code: z.int().nullable().openapi({ description: 'SMTP reply code. Null without a reply.' }),
  enhanced_code: z
    .string()
    .nullable()
    .openapi({ description: 'Enhanced status code (RFC 3463).', example: '5.1.1' }),
  text: z.string().openapi({
    description: "Reply of the mail server. If it didn't reply, what happened instead.",
  }),
  meaning: z.string().openapi({ description: 'What the reply means and what to do, as text.' }),
  learned: z
    .object({
      scope: z.enum(['domain', 'operator', 'software']).openapi({
        description:
          'Where the reply was learned. `domain`: from this domain. `operator`: from other domains of its operator. `software`: from domains of other operators with the same server software.',
      }),
      domains: z.int().min(1).openapi({
        description: 'Number of domains whose server sent this reply for a random recipient.',
      }),
    })
    .optional()
    .openapi({
      description:
        "Present if no rule knows the reply, but servers sent it for random recipients, which don't exist.",
    }),
})

const Signal = z.object({
  name: z.enum(['policies', 'parking', 'typo-network', 'gravatar']),
  shift: z.int().openapi({
    description: "Points added to the confidence that the address isn't deliverable.",
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
    description: 'Whether this feedback decided the result. Newer evidence overrides feedback.',
  }),
})

const External = z.object({
  summary: z.string().openapi({
    example: 'ZeroBounce says "valid". ev has not tested this address.',
  }),
  by: z.enum(EXTERNAL_SOURCES),
  status: z.string().openapi({ description: 'The word of the service.' }),
  detail: z.string().nullable().openapi({ description: 'Its second word, such as a sub-status.' }),
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
      description:
        'Results that feedback confirmed, weighted by age and extrapolated with the trend.',
    }),
    total: count.openapi({ description: 'Results with feedback, weighted by age.' }),
    prior_weight: count.nullable().openapi({
      description: 'Weight of the more general level, as a number of results.',
    }),
    half_life_days: count.nullable().openapi({
      description: "Days after which a result has half its weight. Null if results don't age.",
    }),
    trend: z.number().min(-1).max(1).nullable().openapi({
      description:
        "Part of `correct / total` that is extrapolated from its trend. Null if results don't age.",
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
      description:
        'Canonical form of the address, without parts that its provider ignores, such as dots and tags.',
    }),
    operator: z
      .string()
      .nullable()
      .openapi({ description: 'Operator of the mail servers of the domain.' }),
    route: Route.nullable().openapi({
      description: "Where mail for the domain is sent. Null if it wasn't looked up.",
    }),
    egress: z.string().nullable().openapi({
      description: 'Name of the egress from which the mail server was contacted.',
    }),
    host: z
      .string()
      .nullable()
      .openapi({ description: 'The mail server that was contacted. Null if none was contacted.' }),
    ip: z.string().nullable().openapi({ description: 'IP address of the mail server.' }),
    tls: z.boolean().openapi({ description: 'Whether the SMTP session was encrypted.' }),
    answer: Answer.nullable().openapi({
      description: "Answer of the mail server about the address. Null if it wasn't asked.",
    }),
    catch_all: z.boolean().nullable().openapi({
      description: "Whether the domain accepts mail for every address. Null if it wasn't tested.",
    }),
    skipped: z.enum(['literal', 'unwanted', 'sandbox', 'finished']).nullable().openapi({
      description:
        'Why no mail server was asked. `literal`: the domain is an IP address. `unwanted`: `check_smtp` is false. `sandbox`: the result is simulated. `finished`: the list was finished before the address was probed.',
    }),
    failure: z
      .string()
      .nullable()
      .openapi({ description: 'Message of the internal error. Null if there was none.' }),
    dns_ms: z
      .int()
      .min(0)
      .nullable()
      .openapi({ description: 'Duration of the DNS lookups in milliseconds.' }),
    connect_ms: z
      .int()
      .min(0)
      .nullable()
      .openapi({ description: 'Time to connect in milliseconds.' }),
    dialogue: z.array(z.string()).optional().openapi({
      description: 'Lines of the SMTP session: `C: …` from ev, `S: …` from the mail server.',
    }),
    signals: z.array(Signal).optional().openapi({
      description: 'Signals from outside the SMTP session. Only present if signals are turned on.',
    }),
    external: External.optional().openapi({
      description:
        'What another service said about the address. Only present if ev has not tested it.',
    }),
    feedback: Feedback.optional().openapi({
      description: 'The newest feedback about the address.',
    }),
    domain_feedback: DomainFeedback.optional().openapi({
      description: 'The feedback about a catch-all domain.',
    }),
    calibration: Calibration.optional().openapi({
      description: 'The measurements behind the confidence.',
    }),
  })
  .openapi('Evidence', {
    description:
      'The facts behind a result: answers of DNS and mail servers, signals and feedback. Only present with `?include=evidence`. New versions can add fields and values.',
  })
