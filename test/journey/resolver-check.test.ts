import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { classOf, createEngine, type EngineOptions, type Result } from '../../src/index.ts'
import { MINUTE, SECOND } from '../../src/platform/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { emptyFolder, runEv, simulatorFlags, startEv } from '../support/cli.ts'
import { type FakeClock, fakeClock, letTimePass } from '../support/clock.ts'
import { seedJob } from '../support/job-rows.ts'
import { recordingLog } from '../support/log.ts'
import {
  type FalseReply,
  lyingNameServer,
  NODATA_FOR_ALL,
  NXDOMAIN_FOR_ALL,
  NXDOMAIN_FOR_GMAIL,
  WILDCARD,
} from '../support/lying-name-server.ts'
import { createTestService } from '../support/service.ts'
import { waitUntil } from '../support/wait.ts'

// DNS servers with false answers, like those of captive portals, filters, VPNs and sandboxes.

const DOMAINS = Array.from({ length: 20 }, (_, n) => `d${n}.com`)
/** 60 existing addresses, 20 unknown ones, and 20 at domains that do not exist. */
const ROWS = Array.from({ length: 100 }, (_, n) => {
  const domain = n % 5 === 4 ? `gone${n}.com` : DOMAINS[n % 20]
  return `${n % 5 === 3 ? 'nobody' : 'ann-'}${n}@${domain}`
})
const DEAD = Array.from({ length: 250 }, (_, n) => `ann@dead${n}.com`)
const reasonOf = (_: string, n: number) =>
  n % 5 === 4 ? 'invalid_domain' : n % 5 === 3 ? 'rejected_email' : 'accepted_email'

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator({
    mailboxes: ['ann-*'],
    domains: {
      ...Object.fromEntries(DOMAINS.map(name => [name, { mx: [[10, 'mx.one.com']] }])),
      'gmail.com': { mx: [[10, 'mx.one.com']] },
    },
    hosts: { 'mx.one.com': { behavior: 'polite' } },
  })
})
afterAll(() => simulator.close())

async function startLyingServer(falseReply: FalseReply | null) {
  const server = await lyingNameServer(simulator.dnsAddress, falseReply)
  onTestFinished(() => server.close())
  return server
}

function engineOn(dnsAddress: string, options: EngineOptions = {}) {
  const { log, lines } = recordingLog()
  const engine = createEngine({
    dns: [dnsAddress],
    smtpPort: simulator.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    helo: 'probe.example.com',
    sessionsPerSecond: 1_000,
    log,
    ...options,
  })
  onTestFinished(() => engine.close())
  return { engine, lines }
}

const GMAIL_DENIED =
  'the DNS server says that gmail.com does not exist, so its answers are not trusted'

describe('one address', () => {
  test.each<[string, FalseReply]>([
    ['NXDOMAIN for everything', NXDOMAIN_FOR_ALL],
    ['NXDOMAIN for gmail.com alone', NXDOMAIN_FOR_GMAIL],
    ['NODATA for everything', NODATA_FOR_ALL],
  ])(
    'behind a DNS server with %s is unknown, with the cause in the evidence',
    async (_, falseReply) => {
      const { address } = await startLyingServer(falseReply)
      const { engine } = engineOn(address)
      const { verdict, evidence } = await engine.verify('ann-1@gmail.com')
      expect(verdict).toMatchObject({ reason: 'dns_error', risk: 'unknown', confidence: 0 })
      expect(evidence.route).toMatchObject({
        kind: 'unknown',
        fault: 'server',
        detail: expect.stringContaining('the DNS server says that gmail.com'),
      })
      // Without the check the answers of this server are accepted.
      const unchecked = engineOn(address, { dnsCheckNames: 'off' }).engine
      const uncheckedResult = await unchecked.verify('ann-1@gmail.com')
      expect(classOf(uncheckedResult.verdict)).toBe('undeliverable')
    },
  )

  test('behind a DNS server that invents addresses is unknown', async () => {
    const { engine } = engineOn((await startLyingServer(WILDCARD)).address)
    await engine.resolverCheck?.result()
    const { verdict, evidence } = await engine.verify('ann-1@gmail.com')
    expect(verdict.reason).toBe('dns_error')
    expect(evidence.route).toMatchObject({
      detail: expect.stringContaining('returns an address for a name that does not exist'),
    })
  })

  test('of another domain is verified if only gmail.com is denied', async () => {
    const { engine } = engineOn((await startLyingServer(NXDOMAIN_FOR_GMAIL)).address)
    expect((await engine.verify('ann-1@d1.com')).verdict.reason).toBe('accepted_email')
    expect((await engine.verify('ann-1@gone.com')).verdict.reason).toBe('dns_error')
  })

  test('is verified behind a correct DNS server, at the cost of four queries', async () => {
    const server = await startLyingServer(null)
    const { engine } = engineOn(server.address)
    expect((await engine.verify('ann-1@d1.com')).verdict.reason).toBe('accepted_email')
    expect((await engine.verify('ann-1@gone.com')).verdict.reason).toBe('invalid_domain')
    // MX and A of the first, AAAA too where this machine has IPv6; MX, A and AAAA of the second.
    const queries = server.packets.filter(packet => packet !== 'AAAA mx.one.com')
    expect(queries).toHaveLength(4 + 5)
  })

  test('can be checked with names of a private network', async () => {
    const server = await startLyingServer(({ name }) =>
      /^(d1|mx\.one)\.com$/.test(name) ? null : { flags: 3 },
    )
    const { engine } = engineOn(server.address, { dnsCheckNames: ['d1.com'] })
    expect((await engine.verify('ann-1@d1.com')).verdict.reason).toBe('accepted_email')
    expect((await engine.verify('ann-1@gone.com')).verdict.reason).toBe('invalid_domain')
  })

  test('does not delay the check, even if many wait for silent name servers', async () => {
    const isDead = (name: string) => name.startsWith('dead')
    const server = await startLyingServer(({ name }) => (isDead(name) ? 'silence' : null))
    const { engine } = engineOn(server.address, { clock: fakeClock() })
    expect(await engine.resolverCheck?.result()).toBeNull()
    const run = Promise.all(DEAD.map(address => engine.verify(address)))
    // The limit of concurrent queries is reached.
    await server.arrived(4 + 200)
    engine.resolverCheck?.expire()
    expect(await engine.resolverCheck?.result()).toBeNull()
    await engine.close()
    expect((await run).map(({ verdict }) => verdict.reason)).toEqual(DEAD.map(() => 'dns_error'))
  })

  test('has the cause printed by ev verify', async () => {
    const { address } = await startLyingServer(NXDOMAIN_FOR_ALL)
    const settings = simulatorFlags({ dnsAddress: address, smtpPort: simulator.smtpPort })
    const result = await runEv(['verify', ...settings, 'ann-1@gmail.com'], { home: emptyFolder() })
    expect(result.stdout).toContain('ann-1@gmail.com is unknown')
    expect(result.stdout).toContain(GMAIL_DENIED.replace('the DNS', 'The DNS'))
    expect(result.stderr).toContain(`DNS check failed: ${GMAIL_DENIED}`)
  })
})

/** Advances the clock by half minutes, each with the check that is due. */
async function passHalfMinutes(clock: FakeClock, engine: { resolverCheck: Check }, count: number) {
  for (let n = 0; n < count; n++) {
    await clock.advance(30 * SECOND)
    await waitUntil(() => engine.resolverCheck?.isRunning === false)
  }
}
type Check = ReturnType<typeof createEngine>['resolverCheck']

describe('a stream of addresses', () => {
  async function collect(results: AsyncIterable<Result>, into: Result[]) {
    for await (const result of results) into.push(result)
  }

  test('waits until the DNS server answers correctly', async () => {
    const server = await startLyingServer(NXDOMAIN_FOR_ALL)
    const clock = fakeClock()
    const { engine, lines } = engineOn(server.address, { clock })
    const results: Result[] = []
    const run = collect(engine.verifyMany(ROWS), results)
    await waitUntil(() => engine.resolverCheck?.failure != null)
    await passHalfMinutes(clock, engine, 4)
    expect(results).toEqual([])
    server.falseReply = null
    await passHalfMinutes(clock, engine, 1)
    await letTimePass(clock, () => results.length === 100, {
      stepMs: 20,
      maxMs: 20 * SECOND,
      skips: false,
    })
    await run
    const reasons = new Map(results.map(({ email, verdict }) => [email, verdict.reason]))
    expect(ROWS.map(row => reasons.get(row))).toEqual(ROWS.map(reasonOf))
    expect(lines.map(({ level }) => level)).toEqual(['warn', 'info'])
  })

  test('ends with dns_error after ten minutes', async () => {
    const server = await startLyingServer(NXDOMAIN_FOR_ALL)
    const clock = fakeClock()
    const { engine } = engineOn(server.address, { clock })
    const results: Result[] = []
    const run = collect(engine.verifyMany(ROWS), results)
    await waitUntil(() => engine.resolverCheck?.failure != null)
    await passHalfMinutes(clock, engine, 19)
    expect(results).toEqual([])
    await passHalfMinutes(clock, engine, 1)
    await run
    expect(results).toHaveLength(100)
    expect(new Set(results.map(({ verdict }) => verdict.reason))).toEqual(new Set(['dns_error']))
    // Each check sends four queries; the list sends none meanwhile.
    expect(server.packets.filter(packet => packet === 'MX gmail.com')).toHaveLength(21)
  })

  test.each<[string, FalseReply]>([
    ['is silent', () => 'silence'],
    ['fails', () => ({ flags: 2 })],
    ['refuses queries', () => ({ flags: 5 })],
  ])('waits while the DNS server %s, and loses no row', async (_, outage) => {
    const server = await startLyingServer(null)
    const clock = fakeClock()
    const { engine, lines } = engineOn(server.address, { clock })
    const results: Result[] = []
    const outageStarted = Promise.withResolvers<void>()
    const rows = async function* () {
      yield* ROWS.slice(0, 10)
      await outageStarted.promise
      yield* ROWS.slice(10)
    }
    const run = collect(engine.verifyMany(rows()), results)
    const pass = (isDone: () => boolean) =>
      letTimePass(clock, isDone, { stepMs: 20, maxMs: MINUTE, skips: false })
    await pass(() => results.length === 10)
    server.falseReply = outage
    outageStarted.resolve()
    await pass(() => engine.resolverCheck?.failure?.kind === 'silent')
    expect(results.length).toBeLessThan(100)
    server.falseReply = null
    await pass(() => results.length === 100)
    await run
    const reasons = new Map(results.map(({ email, verdict }) => [email, verdict.reason]))
    expect(ROWS.map(row => reasons.get(row))).toEqual(ROWS.map(reasonOf))
    expect(lines.map(({ level }) => level)).toEqual(['warn', 'info'])
  })

  test('does not wait for a domain whose name servers fail, which is looked up again', async () => {
    const server = await startLyingServer(({ name }) => (name === 'd0.com' ? { flags: 2 } : null))
    const clock = fakeClock()
    const { engine, lines } = engineOn(server.address, { clock })
    const results: Result[] = []
    const pass = (count: number, maxMs: number) =>
      letTimePass(clock, () => results.length === count, { stepMs: 20, maxMs, skips: false })
    const run = collect(engine.verifyMany(['ann-1@d0.com', 'ann-2@d1.com']), results)
    await pass(1, 5 * SECOND)
    server.falseReply = null
    await pass(2, 65 * SECOND)
    await run
    expect(results.map(({ email, verdict }) => [email, verdict.reason])).toEqual([
      ['ann-2@d1.com', 'accepted_email'],
      ['ann-1@d0.com', 'accepted_email'],
    ])
    expect(lines).toEqual([])
  })

  test('does not wait if `wait` is false', async () => {
    for (const falseReply of [NXDOMAIN_FOR_ALL, () => ({ flags: 2 })]) {
      const { engine } = engineOn((await startLyingServer(falseReply)).address)
      const results: Result[] = []
      await collect(engine.verifyMany(ROWS, { wait: false }), results)
      expect(new Set(results.map(({ verdict }) => verdict.reason))).toEqual(new Set(['dns_error']))
    }
  })
})

type Row = { readonly ev_reason: string }

describe('ev bulk', () => {
  async function list(falseReply: FalseReply | null, ...flags: string[]) {
    const home = emptyFolder()
    const server = await startLyingServer(falseReply)
    const clock = fakeClock()
    writeFileSync(join(home, 'list.csv'), `email\n${ROWS.join('\n')}\n`)
    const settings = simulatorFlags({ dnsAddress: server.address, smtpPort: simulator.smtpPort })
    const data = ['--data-dir', join(home, 'data')]
    const args = ['bulk', ...settings, ...data, ...flags, 'list.csv', '-o', 'out.csv']
    const start = () => startEv(args, { home, context: { clock } })
    const reasons = () =>
      parse<Row>(readFileSync(join(home, 'out.csv')), { columns: true }).map(row => row.ev_reason)
    const ev = (...command: string[]) => runEv([...command, ...data], { home, context: { clock } })
    return { server, clock, start, reasons, ev }
  }
  const finish = async (clock: FakeClock, running: ReturnType<typeof startEv>) => {
    let isDone = false
    const ended = running.ended.finally(() => {
      isDone = true
    })
    await letTimePass(clock, () => isDone, { stepMs: 20, maxMs: 5 * MINUTE, skips: false })
    return ended
  }

  test('without the check the list is undeliverable', async () => {
    const { clock, start, reasons } = await list(NXDOMAIN_FOR_ALL, '--dns-check-names', 'off')
    expect((await finish(clock, start())).code).toBe(0)
    expect(reasons()).toEqual(ROWS.map(() => 'invalid_domain'))
  })

  test('a list pauses with the cause, and has correct verdicts after the DNS server recovers', async () => {
    const { server, clock, start, reasons } = await list(NXDOMAIN_FOR_ALL)
    const running = start()
    await running.printed(`DNS check failed: ${GMAIL_DENIED}`, 'stderr')
    server.falseReply = null
    const { code, stderr } = await finish(clock, running)
    expect(code).toBe(0)
    expect(reasons()).toEqual(ROWS.map(reasonOf))
    expect(stderr.match(/DNS check failed/g)).toHaveLength(1)
    expect(stderr).toContain('The DNS server passes the check again')
  })

  test('a list that is finished while it waits has no verdict about any row', async () => {
    const { clock, start, reasons, ev } = await list(NXDOMAIN_FOR_ALL)
    const running = start()
    await running.printed(`DNS check failed: ${GMAIL_DENIED}`, 'stderr')
    const [job] = JSON.parse((await ev('jobs', '--json')).stdout) as { job_id: string }[]
    const { stdout } = await ev('jobs', 'finish', job?.job_id ?? '')
    expect(stdout).toBe(
      `Finishing ${job?.job_id}: 100 rows without a result. Waiting rows get their current result within seconds.\n`,
    )
    expect((await finish(clock, running)).code).toBe(0)
    expect(reasons()).toEqual(ROWS.map(() => 'dns_error'))
  })

  test('a list that is stopped while it waits loses nothing', async () => {
    const { server, clock, start, reasons } = await list(NXDOMAIN_FOR_ALL)
    const first = start()
    await first.printed(`DNS check failed: ${GMAIL_DENIED}`, 'stderr')
    first.signal('SIGINT')
    const stopped = await finish(clock, first)
    expect(stopped.stderr).toContain('Stopped: 0 of 100 rows are finished')
    server.falseReply = null
    expect((await finish(clock, start())).code).toBe(0)
    expect(reasons()).toEqual(ROWS.map(reasonOf))
  })
})

describe('the monitoring of a machine or a service', () => {
  test('ev doctor fails with a lying DNS server and passes after it recovers', async () => {
    const server = await startLyingServer(NXDOMAIN_FOR_GMAIL)
    const settings = simulatorFlags({ dnsAddress: server.address, smtpPort: simulator.smtpPort })
    const doctor = async () => {
      const home = emptyFolder()
      const args = ['doctor', ...settings, '--ask', 'mx.one.com', '--json']
      const result = await runEv([...args, '--data-dir', join(home, 'data')], { home })
      const { checks } = JSON.parse(result.stdout) as { checks: Record<string, string>[] }
      return { code: result.code, dns: checks.find(({ check }) => check === 'dns') }
    }
    expect(await doctor()).toMatchObject({
      code: 1,
      dns: {
        state: 'fail',
        says: expect.stringContaining('the DNS server says that gmail.com does not exist'),
        todo: expect.stringContaining('Set another server with --dns'),
      },
    })
    server.falseReply = null
    expect(await doctor()).toMatchObject({ dns: { state: 'ok' } })
  })

  test('/health does not call a DNS server sound before it was asked', async () => {
    const server = await startLyingServer(null)
    const { engine } = engineOn(server.address)
    const service = await createTestService({ deps: { engine } })
    const read = async () => {
      const ready = await service.request('/readyz', { key: null })
      return [ready.status, await service.json('/health', { key: null })] as const
    }
    expect(await read()).toEqual([
      200,
      expect.objectContaining({ status: 'checking', dns: 'checking' }),
    ])
    await engine.resolverCheck?.result()
    expect(await read()).toEqual([200, expect.objectContaining({ status: 'ok', dns: 'ok' })])
  })

  test('/readyz, /health, metrics and jobs report the failed check and its recovery', async () => {
    const server = await startLyingServer(NXDOMAIN_FOR_ALL)
    const clock = fakeClock()
    const { engine } = engineOn(server.address, { clock })
    const service = await createTestService({ deps: { engine } })
    const ready = async () => {
      const response = await service.request('/readyz', { key: null })
      return [response.status, await response.text()] as const
    }
    await engine.resolverCheck?.result()
    expect(await ready()).toEqual([
      503,
      expect.stringContaining(`The DNS check fails: ${GMAIL_DENIED}`),
    ])
    const health = await service.request('/health', { key: null })
    expect(await health.json()).toMatchObject({ status: 'failing', database: 'ok', dns: 'failing' })
    const metrics = async () =>
      (await service.request('/metrics', { key: null, ip: '127.0.0.1' })).text()
    expect(await metrics()).toContain('ev_dns_check_failed 1')
    for (let n = 0; n < 100; n++) await ready()
    expect(server.packets).toHaveLength(4)
    await seedJob(service.database, { texts: ROWS, done: 1 })
    expect(await service.json('/v1/jobs/job_a')).toMatchObject({
      status_detail: `${GMAIL_DENIED.replace('the', 'The')}. Next check at 2026-06-01T12:00:30.000Z.`,
    })
    server.falseReply = null
    await clock.advance(30 * SECOND)
    // This request starts the check that is due; the next one reports its result.
    await ready()
    await waitUntil(() => engine.resolverCheck?.isRunning === false)
    expect((await ready())[0]).toBe(200)
    expect(await metrics()).toContain('ev_dns_check_failed 0')
    expect(server.packets).toHaveLength(8)
    expect(await service.json('/v1/jobs/job_a')).not.toHaveProperty('status_detail')
  })
})
