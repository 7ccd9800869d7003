import { describe, expect, test } from 'vitest'
import { detectInterceptor } from '../../src/engine/probe/interception.ts'
import { REFERENCE_MX_HOSTS } from '../../src/engine/probe/outbound-reachability.ts'
import type { EngineOptions } from '../../src/index.ts'
import { HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'
import { createTestEngine } from '../support/engine.ts'
import type { MxScript, MxSession } from '../support/mx.ts'
import type { ZoneEntry } from '../support/zone.ts'

// A proxy of the network that answers port 25 instead of the mail servers.

const PROXY = 'proxy.isp.test'
const [GOOGLE, MICROSOFT] = REFERENCE_MX_HOSTS

const REFERENCES: Record<string, ZoneEntry> = Object.fromEntries(
  REFERENCE_MX_HOSTS.map((host, i) => [host, { A: [`192.0.2.${i + 100}`] }]),
)
const ZONE: Record<string, ZoneEntry> = {
  ...REFERENCES,
  'gmail.com': { MX: [[5, GOOGLE]] },
  'outlook.com': { MX: [[5, MICROSOFT]] },
  'b.test': { MX: [[10, 'mx.b.test']] },
  'mx.b.test': { A: ['192.0.2.2'] },
}

const isReference = ({ to }: Pick<MxSession, 'to'>) =>
  (REFERENCE_MX_HOSTS as readonly string[]).includes(to.host)

type Replies = { readonly rcpt: string; readonly greets: (session: MxSession) => string | null }

/** A network on which all servers greet by one name and reply to RCPT alike. */
function network(replies: Partial<Replies> = {}, engine: EngineOptions = {}) {
  const { rcpt = '250 2.1.5 Ok', greets = () => PROXY } = replies
  const now: { rcpt: string; greets: Replies['greets'] } = { rcpt, greets }
  const script: MxScript = {
    greeting: session => {
      const name = now.greets(session)
      return name === null ? null : `220 ${name} ESMTP`
    },
    answer: line => (line.startsWith('RCPT') ? now.rcpt : undefined),
  }
  const home = createTestEngine({ script, zone: ZONE, engine: { cache: false, ...engine } })
  /** The connections to large providers that named no recipient. */
  const greeted = () =>
    home.mx.sessions.filter(
      session => isReference(session) && !session.lines.some(line => line.startsWith('EHLO')),
    )
  return { ...home, now, greeted }
}

test('no large provider is looked up or dialed while the DNS check fails', async () => {
  const unused = () => expect.unreachable()
  const deps = {
    clock: fakeClock(),
    resolver: { resolve: unused },
    isDnsTrusted: () => false,
    egress: {
      name: 'default',
      helo: 'probe.test',
      mailFrom: '',
      dial: { connect: unused, secure: unused },
    },
    isPublic: unused,
    smtpPort: 25,
  }
  const found = await detectInterceptor(deps, REFERENCE_MX_HOSTS, new AbortController().signal)
  expect(found).toBe('undecided')
})

describe('a proxy that answers instead of the mail servers', () => {
  test.each([
    ['accepts every recipient', '250 2.1.5 Ok', 'ann@gmail.com'],
    ['relays for no domain', '550 5.7.1 Relaying denied', 'ann@a.test'],
    ['relays for no domain of a large provider', '550 5.7.1 Relaying denied', 'ann@gmail.com'],
    ['does not know the domain', '553 5.1.2 We do not serve this domain', 'ann@a.test'],
  ])('makes no address deliverable or undeliverable if it %s', async (_, rcpt, address) => {
    const { verify, greeted, engine } = network({ rcpt })
    const { verdict, evidence } = await verify(address)
    expect(verdict.reason).toBe('no_connect')
    expect(evidence.answer).toMatchObject({
      why: 'connect',
      detail: `${PROXY} answers on port 25 instead of the mail servers`,
    })
    expect(greeted().map(({ to, lines }) => [to.host, lines])).toEqual([
      [GOOGLE, ['QUIT']],
      [MICROSOFT, ['QUIT']],
    ])
    await engine.close()
  })

  test('makes no address undeliverable if it takes no mail', async () => {
    const { verify, engine } = createTestEngine({
      zone: ZONE,
      script: { greeting: `521 ${PROXY}` },
    })
    expect((await verify('ann@a.test')).verdict.reason).toBe('no_connect')
    await engine.close()
  })

  test('is looked for once an hour if the providers answer themselves', async () => {
    const greets = (session: MxSession) => (isReference(session) ? session.to.host : PROXY)
    const { reason, greeted, clock, engine } = network({
      rcpt: '550 5.7.1 Relaying denied',
      greets,
    })
    expect(await reason('ann@a.test')).toBe('rejected_email')
    expect(await reason('ann@b.test')).toBe('rejected_email')
    expect(greeted()).toHaveLength(2)
    await clock.advance(HOUR)
    expect(await reason('ann@b.test')).toBe('rejected_email')
    expect(greeted()).toHaveLength(4)
    await engine.close()
  })

  test.each([
    ['the greeting names the host of the provider', 'mx.google.com', 'ann@gmail.com', '250 Ok'],
    ['the greeting names no host', 'ESMTP', 'ann@gmail.com', '250 Ok'],
    ['a firewall masks the greeting', '****************', 'ann@gmail.com', '250 Ok'],
    ['the mailbox is missing', PROXY, 'ann@a.test', '550 5.1.1 User unknown'],
    ['a single recipient is catch-all', PROXY, 'ann@a.test', '250 Ok'],
  ])('is not looked for if %s', async (_, name, address, rcpt) => {
    const { verify, greeted, engine } = network({ rcpt, greets: () => name })
    const { verdict } = await verify(address)
    expect(verdict.reason).not.toBe('no_connect')
    expect(greeted()).toEqual([])
    await engine.close()
  })

  test('does not delay a single verification by more than three seconds', async () => {
    const { reason, clock, engine } = createTestEngine({
      zone: ZONE,
      script: {
        greeting: session => (isReference(session) ? null : `220 ${PROXY} ESMTP`),
        answer: line => (line.startsWith('RCPT') ? '550 5.7.1 Relaying denied' : undefined),
      },
    })
    const startedAt = clock.monotonicNow()
    expect(await reason('ann@a.test')).toBe('rejected_email')
    expect(clock.monotonicNow() - startedAt).toBeLessThan(3 * SECOND + 200)
    await engine.close()
  })

  test('is looked for every half minute while the providers do not greet', async () => {
    const { many, now, clock, engine } = network()
    clock.after(MINUTE, () => {
      now.greets = () => null
    })
    clock.after(2 * MINUTE, () => {
      now.greets = ({ to }) => to.host
      now.rcpt = '550 5.1.1 User unknown'
    })
    const startedAt = clock.monotonicNow()
    const [result] = await many(['eve@gmail.com'])
    expect(result?.verdict.reason).toBe('rejected_email')
    expect(clock.monotonicNow() - startedAt).toBeLessThan(4 * MINUTE)
    await engine.close()
  })

  test('lets a list wait until the mail servers answer themselves', async () => {
    const { many, now, clock, engine, mx } = network()
    clock.after(2 * MINUTE, () => {
      now.greets = ({ to }) => to.host
      now.rcpt = '550 5.1.1 User unknown'
    })
    const results = await many(['ann@a.test', 'bob@b.test', 'eve@gmail.com'])
    expect(results.map(({ verdict }) => verdict.reason)).toEqual(Array(3).fill('rejected_email'))
    // The greetings of two providers every 30 seconds, and nothing else, while it answers.
    const before = mx.sessions.filter(session => isReference(session)).length
    expect(before).toBeLessThanOrEqual(2 * 6 + 1)
    await engine.close()
  })
})
