import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Check, type DoctorDeps, runChecks, type Target } from '../../src/doctor/doctor.ts'
import type { Resolver } from '../../src/engine/dns/resolver.ts'
import { fakeClock } from '../support/clock.ts'
import { scriptedMx, silentDial } from '../support/mx.ts'
import { countedRandom } from '../support/random.ts'
import { zone } from '../support/zone.ts'

const NAMES = {
  'mx.test': { A: ['192.0.2.1'] },
  'probe.example.com': { A: ['192.0.2.9'] },
  '9.2.0.192.in-addr.arpa': { PTR: ['probe.example.com'] },
}
const EGRESS: Omit<Target, 'dial'> = {
  name: 'default',
  helo: 'probe.example.com',
  mailFrom: '',
  sourceAddress: null,
  proxied: false,
}
/** After the earliest time that the clock check accepts. */
const START = Date.UTC(2027, 1, 2)

const speaks = (from: string) =>
  scriptedMx(line =>
    line.startsWith('EHLO') ? `250-mx.test at your service, [${from}]\n250 PIPELINING` : undefined,
  )
const silentResolver: Resolver = {
  resolve: (_, __, signal) =>
    new Promise(resolve => {
      const giveUp = () => resolve({ fault: 'timeout' })
      if (signal?.aborted) giveUp()
      else signal?.addEventListener('abort', giveUp, { once: true })
    }),
}

function services(egresses: readonly Target[], resolver: Resolver = zone(NAMES)) {
  const clock = fakeClock(START)
  const dataDir = join(tmpdir(), 'ev-doctor-test-that-is-not-there')
  const deps: DoctorDeps = {
    clock,
    random: countedRandom(),
    resolver,
    dnsCheckNames: [],
    dnsServers: [{ name: '192.0.2.53', resolver }],
    egresses,
    isPublic: () => true,
    smtpPort: 25,
    exchangers: ['mx.test'],
    machine: { freeBytes: async () => 5e9, openFilesMax: 1_000 },
    concurrency: 200,
    dataDir,
    databaseUrl: `sqlite:${join(dataDir, 'ev.sqlite')}`,
    databaseConnections: 17,
    identityProvider: null,
  }
  return { clock, deps }
}

async function collect(deps: DoctorDeps): Promise<Check[]> {
  const checks: Check[] = []
  for await (const check of runChecks(deps)) checks.push(check)
  return checks
}

const ORDER = [
  'dns',
  'port-25',
  'address',
  'ptr',
  'helo',
  'mail-from',
  'spf',
  'blocklists',
  'clock',
  'disk',
  'open-files',
  'data-directory',
]

describe('the doctor', () => {
  test('runs all checks in a fixed order', async () => {
    const { deps, clock } = services([{ ...EGRESS, dial: speaks('192.0.2.9') }])
    const checks = await collect(deps)
    expect(checks.map(({ check }) => check)).toEqual(ORDER)
    expect(checks.every(({ egress }) => egress === null)).toBe(true)
    // The zone has no blocklists.
    expect(checks.filter(({ state }) => state !== 'ok').map(({ check }) => check)).toEqual([
      'blocklists',
    ])
    expect(clock.pending).toBe(0)
  })

  test.each([
    ['that answers', null, null, 'ok', 'people can sign in with Example Login'],
    [
      'that does not',
      null,
      'it refused',
      'warn',
      'cannot sign in with Example Login now: it refused',
    ],
    ['with half of its settings', 'Set EV_X too.', null, 'fail', 'cannot work'],
  ])('checks an identity provider %s', async (_, fault, why, state, says) => {
    const { deps } = services([{ ...EGRESS, dial: speaks('192.0.2.9') }])
    const identityProvider = { title: 'Example Login', fault, check: async () => why }
    const last = (await collect({ ...deps, identityProvider })).at(-1)
    expect(last).toMatchObject({ check: 'sign-in', state })
    expect(last?.says).toContain(says)
  })

  test('checks each egress by name, and the machine once', async () => {
    const { deps } = services([
      { ...EGRESS, name: 'one', dial: speaks('192.0.2.9') },
      { ...EGRESS, name: 'two', dial: speaks('192.0.2.10') },
    ])
    const checks = await collect(deps)
    const states = (name: string) =>
      checks.filter(({ check }) => check === name).map(({ egress, state }) => [egress, state])
    expect(states('ptr')).toEqual([
      ['one', 'ok'],
      ['two', 'fail'],
    ])
    expect(states('disk')).toEqual([[null, 'ok']])
    expect(states('port-25').map(([egress]) => egress)).toEqual(['one', 'two'])
  })

  test('ends within 20 seconds even if nothing responds', async () => {
    const { deps, clock } = services([{ ...EGRESS, dial: silentDial }], silentResolver)
    const gathering = collect({ ...deps, exchangers: ['mx.test', '192.0.2.1'] })
    await clock.advance(20_000)
    // The remaining checks need the disk and no time of this clock.
    const checks = await gathering
    expect(checks.map(({ check }) => check)).toEqual(ORDER)
    expect(checks.filter(({ state }) => state === 'fail').map(({ check }) => check)).toEqual([
      'dns',
      'port-25',
    ])
    expect(clock.pending).toBe(0)
  })

  test.each([
    ['that is not answered', zone({ 'mx.test': { A: ['192.0.2.1'] } }), true],
    ['without a server to contact', zone({}), undefined],
  ])('says that a port %s is blocked: %s', async (_, resolver, expected) => {
    const { deps, clock } = services([{ ...EGRESS, dial: silentDial }], resolver)
    const gathering = collect(deps)
    await clock.advance(20_000)
    const port = (await gathering).find(({ check }) => check === 'port-25')
    expect([port?.state, port?.blocked]).toEqual(['fail', expected])
  })

  test('has a fix for each problem, and none otherwise', async () => {
    const { deps, clock } = services([{ ...EGRESS, helo: 'vm', dial: silentDial }], silentResolver)
    const gathering = collect(deps)
    await clock.advance(60_000)
    const checks = await gathering
    expect(new Set(checks.map(({ state }) => state))).toEqual(new Set(['ok', 'warn', 'fail']))
    for (const { state, todo, check } of checks) expect(todo === null, check).toBe(state === 'ok')
  })

  test('closes everything when it is aborted', async () => {
    const { deps, clock } = services([{ ...EGRESS, dial: silentDial }])
    const run = runChecks(deps)
    expect((await run.next()).value).toMatchObject({ check: 'dns', state: 'ok' })
    expect(clock.pending).toBeGreaterThan(0)
    await run.return(undefined)
    await clock.advance(0)
    expect(clock.pending).toBe(0)
  })

  test('removes control characters from untrusted text', async () => {
    const hostileMx = scriptedMx({ greeting: '554 no\u001b[2J \u0007you' })
    const names = { ...NAMES, '9.2.0.192.in-addr.arpa': { PTR: ['\u001b[2J.test'] } }
    const { deps } = services(
      [
        { ...EGRESS, dial: hostileMx },
        { ...EGRESS, dial: speaks('192.0.2.9') },
      ],
      zone(names),
    )
    const text = JSON.stringify(await collect(deps))
    expect(text).toContain('554 no\uFFFD[2J')
    expect(text).toContain('192.0.2.9 has the PTR name \uFFFD[2j.test')
    expect(text).not.toMatch(/\\u001b|\\u0007/)
  })
})
