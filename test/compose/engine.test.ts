import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { composeEngine } from '../../src/compose/engine.ts'
import { toConfig } from '../../src/config/config.ts'
import type { ProbeListSink } from '../../src/engine/engine.ts'
import type { KnownCatchAll } from '../../src/engine/probe/shared-catch-all.ts'
import { toClass } from '../../src/engine/verdict/verdict.ts'
import { DAY, MINUTE, SECOND } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { selfSigned } from '../../src/simulator/smtp-host/host.ts'
import { fakeClock } from '../support/clock.ts'
import { mail } from '../support/engine.ts'
import { scriptedMx } from '../support/mx.ts'
import { countedRandom } from '../support/random.ts'
import { isRandomRecipient, knows, recipientsOf, toRecipients } from '../support/recipients.ts'
import { fakeSharedRates } from '../support/shared-rate-state.ts'
import { startSocksProxy } from '../support/socks-proxy.ts'
import { drainEventLoop } from '../support/wait.ts'
import { zone } from '../support/zone.ts'

/** An engine as a cluster member has it. */
function member(egresses: readonly string[] = ['default']) {
  const clock = fakeClock()
  const mx = scriptedMx(knows('ann'))
  const rateStates = fakeSharedRates(clock)
  const domains = new Map<string, KnownCatchAll>()
  const catchAll = {
    get: async () => domains,
    set: (domain: string, known: KnownCatchAll) => void domains.set(domain, known),
  }
  const flags = { helo: 'probe.test', allowRanges: '192.0.2.0/24', specialDomains: true }
  const config = toConfig({ flags, environment: {}, file: null })
  const engine = composeEngine(
    config,
    {
      clock,
      random: countedRandom(),
      log: silentLog,
      dial: mx,
      resolver: zone(mail('a.test', '192.0.2.1')),
    },
    { cluster: { rateStates, catchAll, egresses: () => egresses } },
  )
  const recipients = () => recipientsOf(mx.lines())
  return { engine, clock, rateStates, domains, recipients }
}

test('while shared rate limits are unavailable a single verification is unknown, and no server is probed', async () => {
  const { engine, rateStates, recipients } = member()
  rateStates.fault = new Error('the database is away')
  for (const local of ['ann', 'nobody']) {
    const result = await engine.verify(`${local}@a.test`)
    expect(result.verdict).toMatchObject({ risk: 'unknown', reason: 'unexpected_error' })
    expect(toClass(result.verdict)).toBe('unknown')
  }
  expect(recipients()).toEqual([])
  rateStates.fault = null
  expect((await engine.verify('ann@a.test')).verdict.reason).toBe('accepted_email')
})

test('a list waits until they are available, and loses nothing', async () => {
  const { engine, clock, rateStates, recipients } = member()
  const prepared = await engine.route(['ann@a.test', 'nobody@a.test'])
  const tasks = prepared.flatMap(one => ('task' in one ? [one.task] : []))
  const [first] = tasks
  if (first === undefined) throw new Error('nobody is to be asked')
  rateStates.fault = new Error('the database is away')
  const reported: string[] = []
  const sink: ProbeListSink = {
    probed: ({ text }, { result }) => void reported.push(`${text} ${result.verdict.reason}`),
    later: ({ text }) => void reported.push(`${text} later`),
  }
  const { signal } = new AbortController()
  const run = engine.probe(first.operator, tasks, sink, { signal })
  await clock.advance(MINUTE)
  expect([reported, recipients()]).toEqual([[], []])
  rateStates.fault = null
  await clock.advance(SECOND)
  await drainEventLoop()
  await run
  expect(reported.toSorted()).toEqual(['ann@a.test accepted_email', 'nobody@a.test rejected_email'])
})

test('catch-all results of other members are used, and own ones are shared', async () => {
  const known = member()
  known.domains.set('a.test', { catchAll: true, keepMs: DAY })
  expect((await known.engine.verify('ann@a.test')).verdict.reason).toBe('catch_all')
  const unknown = member()
  expect((await unknown.engine.verify('ann@a.test')).verdict.reason).toBe('accepted_email')
  expect(unknown.recipients().some(isRandomRecipient)).toBe(true)
  expect(unknown.domains.get('a.test')?.catchAll).toBe(false)
})

describe('the signal gravatar', () => {
  let before: string[] = []
  beforeAll(() => {
    before = getCACertificates('default')
  })
  afterEach(() => setDefaultCACertificates(before))

  const NAME = 'api.gravatar.com'
  const KEY = 'k'.repeat(20)

  /** Verifies an address of a catch-all domain, with a proxy that leads to a server of the test. */
  async function verifyThroughProxy(certificate: ReturnType<typeof selfSigned>, status = 200) {
    const requests: (string | undefined)[] = []
    const server = createServer(certificate, ({ url, headers }, response) => {
      requests.push(url, headers.host, headers.authorization)
      response.writeHead(status).end('{}')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const proxy = await startSocksProxy((server.address() as AddressInfo).port)
    const flags = {
      helo: 'probe.test',
      allowRanges: '192.0.2.0/24',
      specialDomains: true,
      proxy: proxy.url,
      signals: 'gravatar',
    }
    const engine = composeEngine(
      toConfig({ flags, environment: { EV_GRAVATAR_KEY: KEY }, file: null }),
      {
        clock: fakeClock(),
        random: countedRandom(),
        log: silentLog,
        dial: scriptedMx(toRecipients(() => '250 2.1.5 Ok')),
        resolver: zone(mail('a.test', '192.0.2.1')),
      },
    )
    const { verdict, evidence } = await engine.verify('ann@a.test')
    expect(verdict.reason).toBe('catch_all')
    return { signals: evidence.signals, requests, targets: proxy.targets }
  }

  test('asks through the SOCKS proxy, which resolves the name', async () => {
    const certificate = selfSigned(NAME)
    setDefaultCACertificates([certificate.cert])
    const { signals, requests, targets } = await verifyThroughProxy(certificate)
    expect(targets).toEqual([`${NAME}:443`])
    const hash = createHash('sha256').update('ann@a.test').digest('hex')
    expect(requests).toEqual([`/v3/profiles/${hash}`, NAME, `Bearer ${KEY}`])
    expect(signals).toMatchObject([{ name: 'gravatar' }])
  })

  test('finds nothing through a proxy that leads to another server', async () => {
    const { signals, requests, targets } = await verifyThroughProxy(selfSigned(NAME))
    expect([signals ?? [], requests]).toEqual([[], []])
    expect(targets).toEqual([`${NAME}:443`])
  })

  test('finds nothing without a profile', async () => {
    const certificate = selfSigned(NAME)
    setDefaultCACertificates([certificate.cert])
    const { signals } = await verifyThroughProxy(certificate, 404)
    expect(signals ?? []).toEqual([])
  })
})

test('a single verification uses an egress of this process, whichever is primary for the operator', async () => {
  const { engine } = member(['default', 'b', 'c', 'd', 'e', 'f'])
  const result = await engine.verify('ann@a.test')
  expect(result.verdict.reason).toBe('accepted_email')
  expect(engine.egressPool.ranked('a.test')).toHaveLength(6)
  expect(engine.egresses).toEqual(['default'])
})
