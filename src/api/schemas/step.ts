import { z } from '@hono/zod-openapi'
import { mailHosts, ROUTE_KINDS } from './evidence.ts'

// Schemas of the steps of a single verification, sent to clients that accept `text/event-stream`.

const text = z.string().openapi({ description: 'Human-readable description of the step.' })
const ok = z.boolean()

const SyntaxStep = z.object({
  step: z.literal('syntax'),
  ok,
  address: z.object({ local: z.string(), domain: z.string() }).nullable(),
  did_you_mean: z.string().nullable(),
  text,
})

const DomainStep = z.object({
  step: z.literal('domain'),
  ok: ok.nullable().openapi({ description: 'Null if DNS gave no conclusive answer.' }),
  kind: z.enum(ROUTE_KINDS),
  hosts: mailHosts,
  operator: z.string().nullable().openapi({ description: 'Operator of the mail servers.' }),
  text,
})

const ServerStep = z.object({
  step: z.literal('server'),
  host: z.string().nullable().openapi({ description: 'Null if no mail server was contacted.' }),
  ip: z.string().nullable(),
  ok,
  text,
})

const LineStep = z.object({
  step: z.literal('line'),
  text: z.string().openapi({ description: 'A line of the SMTP session: `C: …` or `S: …`.' }),
})

const CachedStep = z.object({
  step: z.literal('cached'),
  checked_at: z.string().openapi({ format: 'date-time' }),
  text,
})

/** The data of `event: step`. */
export const VerifyStep = z
  .discriminatedUnion('step', [SyntaxStep, DomainStep, ServerStep, LineStep, CachedStep])
  .openapi('VerifyStep')

export type StepBody = z.infer<typeof VerifyStep>

export const STEP_EXAMPLE: StepBody = {
  step: 'domain',
  ok: true,
  kind: 'mx',
  hosts: [{ preference: 10, host: 'mx.example.com' }],
  operator: 'example.com',
  text: 'example.com has one mail server, mx.example.com.',
}
