import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { SIGNALS_LIMIT_MS } from '../../../src/engine/signals/outside-signals.ts'
import type { EngineOptions } from '../../../src/index.ts'
import { presentResult } from '../../../src/index.ts'
import { createTestEngine } from '../../support/engine.ts'
import type { ZoneEntry } from '../../support/zone.ts'

/** An engine whose mail server accepts every recipient. */
const catchAll = (signals: EngineOptions['signals'], records: Record<string, ZoneEntry> = {}) =>
  createTestEngine({
    script: { answer: line => (line.startsWith('RCPT') ? '250 2.1.5 Ok' : undefined) },
    zone: records,
    engine: { ...(signals === undefined ? {} : { signals }) },
  })

const NO_MAIL: Record<string, ZoneEntry> = {
  'a.test': { MX: [[10, 'mx.a.test']], TXT: ['v=spf1 -all'] },
  '_dmarc.a.test': { TXT: ['v=DMARC1; p=reject'] },
}

afterEach(() => vi.unstubAllGlobals())

describe('an engine', () => {
  test('without the setting asks nothing more, and has no signals', async () => {
    const { verify, zone } = catchAll(undefined, NO_MAIL)
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict).toMatchObject({ reason: 'catch_all', risk: 'medium', confidence: 50 })
    expect(evidence).not.toHaveProperty('signals')
    expect(zone.asked.filter(query => query.startsWith('TXT'))).toEqual([])
  })

  test('adds signals to a single catch-all address, also from the cache', async () => {
    const { verify, zone, engine, settled } = catchAll(['policies'], NO_MAIL)
    const expected = { reason: 'catch_all', risk: 'high', confidence: 65, deliverable: false }
    const result = await verify('ann@a.test')
    expect(result.verdict).toMatchObject(expected)
    expect(presentResult(result, ['evidence'])).toMatchObject({
      evidence: { signals: [{ name: 'policies', shift: 15, detail: expect.any(String) }] },
    })
    expect((await verify('ann@a.test')).verdict).toMatchObject(expected)
    expect((await settled(engine.getCached('ann@a.test')))?.verdict).toMatchObject(expected)
    expect(zone.asked.filter(query => query.startsWith('TXT'))).toHaveLength(3)
  })

  test('adds them to the addresses of a list, with one question per domain', async () => {
    const { many, zone } = catchAll(['policies', 'parking', 'typo-network'], NO_MAIL)
    const results = await many(['ann@a.test', 'bob@a.test', 'dan@a.test', 'nonsense'])
    expect(results.map(({ verdict }) => verdict.risk).sort()).toEqual([
      ...['high', 'high', 'high', 'high'],
    ])
    expect(results.filter(({ evidence }) => evidence.signals !== undefined)).toHaveLength(3)
    expect(zone.asked.filter(query => query === 'TXT a.test')).toHaveLength(1)
    expect(zone.asked.filter(query => query === 'MX gmial.com')).toHaveLength(1)
  })

  test('asks nothing for a definite answer', async () => {
    const { verify, zone } = createTestEngine({
      engine: { signals: ['policies', 'typo-network'] },
      zone: NO_MAIL,
    })
    expect((await verify('ann@a.test')).verdict.reason).toBe('accepted_email')
    expect(zone.asked.filter(query => /^TXT|gmial/.test(query))).toEqual([])
  })

  test('gives up on a DNS server that does not answer, and keeps the verdict', async () => {
    const { verify, clock } = catchAll(['policies'], { ...NO_MAIL, '_dmarc.a.test': 'never' })
    const startedAt = clock.now()
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict).toMatchObject({ risk: 'medium', confidence: 50 })
    expect(evidence.signals).toEqual([])
    expect(clock.now() - startedAt).toBeLessThan(SIGNALS_LIMIT_MS + 1_000)
  })

  test('an unknown result stays unknown', async () => {
    const { verify } = createTestEngine({
      script: { greeting: '421 busy' },
      engine: { signals: ['parking'], sessionsPerSecond: 1_000 },
      zone: { 'b.test': { MX: [[10, 'localhost']] }, localhost: { A: ['192.0.2.7'] } },
    })
    const { verdict, evidence } = await verify('ann@b.test')
    expect(verdict).toMatchObject({ risk: 'unknown', valid: false, confidence: 40 })
    expect(evidence.signals).toMatchObject([{ name: 'parking', shift: 20 }])
  })

  test('asks Gravatar with the key of its settings', async () => {
    const asked: (string | undefined)[] = []
    const server = createServer((request, response) => {
      asked.push(request.headers.authorization)
      response.writeHead(200).end('{"display_name":"Ann"}')
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const { fetch } = globalThis
    vi.stubGlobal('fetch', (url: string, options: RequestInit) =>
      fetch(url.replace('https://api.gravatar.com', `http://127.0.0.1:${port}`), options),
    )
    const { engine } = createTestEngine({
      script: { answer: line => (line.startsWith('RCPT') ? '250 2.1.5 Ok' : undefined) },
      engine: { signals: ['gravatar'], gravatarKey: '0123456789abcdef' },
    })
    const { verdict } = await engine.verify('ann@a.test')
    server.close()
    server.closeAllConnections()
    expect(verdict).toMatchObject({ risk: 'medium', confidence: 35, deliverable: false })
    expect(asked).toEqual(['Bearer 0123456789abcdef'])
  })
})
