import { z } from '@hono/zod-openapi'

// What is told of a single verification while it goes on, to who accepts `text/event-stream`.

const text = z.string().openapi({ description: 'What has happened, for people.' })
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
  ok: ok.nullable().openapi({ description: 'null: the DNS could not tell.' }),
  kind: z.enum(['mx', 'implicit', 'null-mx', 'no-domain', 'no-mail', 'unknown']),
  hosts: z
    .array(z.object({ preference: z.int().min(0), host: z.string() }))
    .openapi({ description: 'The mail servers, best first.' }),
  operator: z.string().nullable().openapi({ description: 'Who runs them.' }),
  text,
})

const ServerStep = z.object({
  step: z.literal('server'),
  host: z.string().nullable().openapi({ description: 'null: none of them was called.' }),
  ip: z.string().nullable(),
  ok,
  text,
})

const LineStep = z.object({
  step: z.literal('line'),
  text: z.string().openapi({ description: 'A line of the conversation: `C: …` or `S: …`.' }),
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
