import { z } from '@hono/zod-openapi'
import { EXTERNAL_SOURCES } from '../../engine/verdict/verdict.ts'
import { time } from './fields.ts'

// The schema of evidence. `presentEvidence` returns it; a test compares both types.

/** The mail route of a domain. */
export const ROUTE_KINDS = [
  ...(['mx', 'implicit', 'null-mx', 'no-domain', 'no-mail', 'unknown'] as const),
] as const

export const mailHosts = z
  .array(
    z.object({
      preference: z.int().min(0).openapi({ example: 10 }),
      host: z.string().openapi({ example: 'mx.example.com' }),
    }),
  )
  .openapi({ description: 'Mail servers in order of preference.' })

const Syntax = z.object({
  at: z.int().min(0).openapi({
    description: 'Position of the first invalid character, in UTF-16 code units from 0.',
    example: 4,
  }),
  message: z.string().openapi({ example: 'There is a space in the local part.' }),
  rule: z.string().openapi({
    description: 'The section of the standard that the address violates.',
    example: 'RFC 5321 §4.1.2',
  }),
})

const Route = z.object({
  kind: z.enum(ROUTE_KINDS).openapi({
    example: 'mx',
    description:
      "`mx`: the domain has MX records. `implicit`: it has an address but no MX record. `null-mx`: it doesn't accept mail (RFC 7505). `no-domain`: it doesn't exist. `no-mail`: it has neither an MX record nor an address. `unknown`: the DNS lookup failed.",
  }),
  hosts: mailHosts,
  detail: z.string().optional().openapi({
    description: "Why the answer of the DNS server wasn't trusted, or that it answers no query.",
    example: 'The answer is for another name.',
  }),
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
    example: 'accepted',
    description:
      '`accepted`, `rejected`: the mail server accepted or rejected the address. `blocked`: it refused to talk to ev. `deferred`: it asked to retry later. `no-response`: it sent no usable reply.',
  }),
  why: z.enum(OUTCOME_REASONS).openapi({
    description: 'The cause of the outcome.',
    example: 'recipient',
  }),
  stage: z.enum(STAGES).openapi({
    description: 'The step of the SMTP session.',
    example: 'rcpt',
  }),
  code: z.int().nullable().openapi({
    description: 'SMTP reply code. Null without a reply.',
    example: 250,
  }),
  enhanced_code: z
    .string()
    .nullable()
    .openapi({ description: 'Enhanced status code (RFC 3463).', example: '2.1.5' }),
  text: z.string().openapi({
    example: 'Ok',
    description: "Reply of the mail server. If it didn't reply, what happened instead.",
  }),
  meaning: z.string().openapi({
    description: 'What the reply means and what to do, as text.',
    example: 'The mail server accepts mail for this address.',
  }),
  learned: z
    .object({
      scope: z.enum(['domain', 'operator', 'software']).openapi({
        example: 'domain',
        description:
          'Where the reply was learned. `domain`: from this domain. `operator`: from other domains of its operator. `software`: from domains of other operators with the same server software.',
      }),
      domains: z.int().min(1).openapi({
        description: 'Number of domains whose server sent this reply for a random recipient.',
        example: 3,
      }),
    })
    .optional()
    .openapi({
      description:
        "Present if no rule knows the reply, but servers sent it for random recipients, which don't exist.",
    }),
})

const Signal = z.object({
  name: z
    .enum(['policies', 'parking', 'typo-network', 'gravatar'])
    .openapi({ example: 'gravatar' }),
  shift: z.int().openapi({
    example: -5,
    description: "Points added to the confidence that the address isn't deliverable.",
  }),
  detail: z.string().openapi({ example: 'The address has a Gravatar profile.' }),
})

const Feedback = z.object({
  summary: z.string().openapi({ example: 'bounced on 2026-03-21' }),
  kind: z.enum(['delivered', 'bounced', 'complained']).openapi({ example: 'bounced' }),
  occurred_at: time,
  code: z.int().nullable().openapi({ description: 'SMTP reply code.', example: 550 }),
  enhanced_code: z.string().nullable().openapi({ example: '5.1.1' }),
  text: z.string().nullable().openapi({ example: 'User unknown' }),
  decides: z.boolean().openapi({
    example: true,
    description: 'Whether this feedback decided the result. Newer evidence overrides feedback.',
  }),
})

const External = z.object({
  summary: z.string().openapi({
    example: 'ZeroBounce says "valid". ev has not tested this address.',
  }),
  by: z.enum(EXTERNAL_SOURCES).openapi({ example: 'zerobounce' }),
  status: z.string().openapi({ description: 'The word of the service.', example: 'valid' }),
  detail: z.string().nullable().openapi({
    description: 'Its second word, such as a sub-status.',
    example: null,
  }),
})

const share = z.number().min(0).max(1)
const count = z.number().min(0)

const DomainFeedback = z.object({
  delivered: count.openapi({ description: 'Addresses that received mail.', example: 48 }),
  bounced: count.openapi({ description: 'Addresses whose mail bounced.', example: 2 }),
  bounce_rate_min: share.openapi({
    description: 'Lower bound of the bounce rate.',
    example: 0.011,
  }),
  bounce_rate_max: share.openapi({
    description: 'Upper bound of the bounce rate.',
    example: 0.135,
  }),
})

const CalibrationLevel = z
  .object({
    correct: count.openapi({
      description:
        'Results that feedback confirmed, weighted by age and extrapolated with the trend.',
      example: 114,
    }),
    total: count.openapi({ description: 'Results with feedback, weighted by age.', example: 120 }),
    prior_weight: count.nullable().openapi({
      description: 'Weight of the more general level, as a number of results.',
      example: 50,
    }),
    half_life_days: count.nullable().openapi({
      description: "Days after which a result has half its weight. Null if results don't age.",
      example: 90,
    }),
    trend: z.number().min(-1).max(1).nullable().openapi({
      example: 0.01,
      description:
        "Part of `correct / total` that is extrapolated from its trend. Null if results don't age.",
    }),
  })
  .openapi('CalibrationLevel')

const Calibration = z.object({
  fixed_confidence: z.int().min(0).max(100).openapi({
    description: 'The confidence of the reason without feedback.',
    example: 95,
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
      example: 'user@example.com',
      description:
        'Canonical form of the address, without parts that its provider ignores, such as dots and tags.',
    }),
    operator: z.string().nullable().openapi({
      description: 'Operator of the mail servers of the domain.',
      example: 'example.com',
    }),
    route: Route.nullable().openapi({
      description: "Where mail for the domain is sent. Null if it wasn't looked up.",
    }),
    egress: z.string().nullable().openapi({
      description: 'Name of the egress from which the mail server was contacted.',
      example: 'default',
    }),
    host: z.string().nullable().openapi({
      description: 'The mail server that was contacted. Null if none was contacted.',
      example: 'mx.example.com',
    }),
    ip: z.string().nullable().openapi({
      description: 'IP address of the mail server.',
      example: '192.0.2.25',
    }),
    tls: z
      .boolean()
      .openapi({ description: 'Whether the SMTP session was encrypted.', example: true }),
    answer: Answer.nullable().openapi({
      description: "Answer of the mail server about the address. Null if it wasn't asked.",
    }),
    catch_all: z.boolean().nullable().openapi({
      example: false,
      description: "Whether the domain accepts mail for every address. Null if it wasn't tested.",
    }),
    skipped: z.enum(['literal', 'unwanted', 'sandbox', 'finished']).nullable().openapi({
      example: null,
      description:
        'Why no mail server was asked. `literal`: the domain is an IP address. `unwanted`: `check_smtp` is false. `sandbox`: the result is simulated. `finished`: the list was finished before the address was probed.',
    }),
    failure: z.string().nullable().openapi({
      description: 'Message of the internal error. Null if there was none.',
      example: null,
    }),
    dns_ms: z
      .int()
      .min(0)
      .nullable()
      .openapi({ description: 'Duration of the DNS lookups in milliseconds.', example: 18 }),
    connect_ms: z
      .int()
      .min(0)
      .nullable()
      .openapi({ description: 'Time to connect in milliseconds.', example: 42 }),
    dialogue: z
      .array(z.string())
      .optional()
      .openapi({
        example: ['S: 220 mx.example.com ESMTP', 'C: EHLO probe.example.com'],
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
