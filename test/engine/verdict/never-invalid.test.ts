import { expect, test } from 'vitest'
import { toClass } from '../../../src/engine/verdict/verdict.ts'
import { createTestEngine } from '../../support/engine.ts'
import { HANG_UP, type MxSession } from '../../support/mx.ts'
import { fc, runs } from '../../support/property.ts'
import type { ZoneEntry } from '../../support/zone.ts'

/** A DNS that fails at one of its queries. */
const dnsTrouble = fc.constantFrom<(domain: string) => Record<string, ZoneEntry>>(
  domain => ({ [domain]: 'server' }),
  domain => ({ [domain]: 'timeout' }),
  domain => ({ [domain]: { MX: 'server', A: ['192.0.2.1'] } }),
  domain => ({ [domain]: { MX: 'no-data', A: 'server' } }),
  domain => ({ [domain]: { MX: 'no-data', A: 'no-data', AAAA: 'timeout' } }),
  domain => ({ [domain]: exchanger(domain), [`mx.${domain}`]: 'server' }),
  domain => ({ [domain]: exchanger(domain), [`mx.${domain}`]: { A: 'timeout' } }),
  domain => ({ [domain]: exchanger(domain), [`mx.${domain}`]: { A: 'no-data', AAAA: 'server' } }),
  domain => ({
    [domain]: {
      MX: [
        [10, `none.${domain}`],
        [20, `mx.${domain}`],
      ],
    },
    [`mx.${domain}`]: 'server',
  }),
  // Not a DNS failure, but a bad target.
  domain => ({ [domain]: exchanger(domain), [`mx.${domain}`]: { A: ['10.0.0.1'] } }),
)

/** A server that fails at one stage, with `250` before it and without naming a mailbox. */
const stage = fc.constantFrom('greeting', 'EHLO', 'MAIL', 'RCPT')
const refusal = fc.constantFrom<string | null | typeof HANG_UP>(
  null,
  HANG_UP,
  '421 4.7.0 Too many connections',
  '450 4.2.0 Greylisted, come back in 5 minutes',
  '451 4.7.1 Please try again later',
  '451 4.3.0 Temporary lookup failure',
  '452 4.5.3 Too many recipients',
  '454 4.7.5 TLS not available',
  '550 5.7.1 Your IP address is on a block list',
  '554 5.7.1 Service unavailable; client host blocked',
  '550 5.7.25 No PTR record for your address',
  '550 5.7.1 Sender rejected: domain not found',
  '530 5.7.0 Must issue a STARTTLS command first',
  '530 5.7.1 Authentication required',
  '354 Go ahead',
  '099 what',
  '2500 Ok',
  'Ok',
  '',
  '\u0000\u001b[2J',
)

test('a problem on the way is never "invalid", whatever it is and at any stage', async () => {
  let failure: { stage: string; refusal: string | null | typeof HANG_UP } | null = null
  const at = (verb: string) => (failure?.stage === verb ? failure.refusal : undefined)
  // A server that refuses EHLO refuses HELO too.
  const verbOf = (line: string) => (line.split(/[ :]/, 1)[0] ?? '').replace('HELO', 'EHLO')
  // A server that stops replying stays silent: a skipped reply would shift all later ones.
  const answer = (line: string, { lines }: MxSession) =>
    lines.some(said => at(verbOf(said)) === null) ? null : at(verbOf(line))
  const script = {
    greeting: (session: MxSession) => {
      const said = at('greeting')
      if (said === HANG_UP) session.hangUp()
      return said === HANG_UP ? null : said
    },
    answer,
  }
  const { zone, verify } = createTestEngine({ script })
  let domains = 0
  const trouble = fc.oneof(
    dnsTrouble.map(dns => ({ dns, smtp: null })),
    fc.record({ stage, refusal }).map(smtp => ({ dns: null, smtp })),
  )
  await fc.assert(
    fc.asyncProperty(trouble, async ({ dns, smtp }) => {
      const domain = `d${domains++}.test`
      failure = smtp
      const sound = { [domain]: exchanger(domain), [`mx.${domain}`]: { A: ['192.0.2.1'] } }
      for (const [name, entry] of Object.entries(dns?.(domain) ?? sound)) zone.set(name, entry)
      const { verdict } = await verify(`ann@${domain}`)
      expect(toClass(verdict), verdict.reason).toBe('unknown')
      expect(verdict.valid).toBe(false)
      expect(verdict.reason).not.toBe('unexpected_error')
    }),
    { numRuns: runs(300) },
  )
  expect(domains).toBeGreaterThanOrEqual(runs(300))
}, 60_000)

const exchanger = (domain: string): ZoneEntry => ({ MX: [[10, `mx.${domain}`]] })
