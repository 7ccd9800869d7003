import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createEngine, EvError, presentResult } from '../src/index.ts'
import { fakeClock } from './support/clock.ts'
import { scriptedMx } from './support/mx.ts'
import { zone } from './support/zone.ts'

describe('createEngine', () => {
  const fakeDeps = () => ({ clock: fakeClock(), resolver: zone(), dial: scriptedMx({}) })

  test('works without options', async () => {
    await createEngine().close()
  })

  test('accepts every setting by name', async () => {
    const engine = createEngine({
      ...fakeDeps(),
      dns: ['192.0.2.53', '192.0.2.54:5353'],
      smtpPort: 2525,
      helo: 'probe.example.com',
      mailFrom: 'probe@example.com',
      sourceAddress: null,
      proxy: null,
      egress: 'office',
      allowRanges: [],
      specialDomains: true,
      startTls: 'never',
      connectTimeoutMs: 1,
      greetingTimeoutMs: 1,
      replyTimeoutMs: 1,
      sessionTimeoutMs: 1,
      deadlineMs: null,
      sessionsPerOperator: 1,
      recipientsPerSession: 1,
      sessionsPerSecond: 0.5,
      concurrency: 1,
      greylistDelayMs: 250,
      cache: false,
      disposableFile: null,
      allowFile: null,
    })
    expect(engine.egresses).toEqual(['office'])
    expect(engine.rateController('a.test').row).toMatchObject({
      sessionsMax: 1,
      recipientsPerSession: 1,
      sessionsPerSecond: 0.5,
    })
    await engine.close()
  })

  test.each<[string, Parameters<typeof createEngine>[0], RegExp]>([
    ['a port above 65535', { smtpPort: 70_000 }, /--smtp-port .*65535/],
    ['a name with a line break', { helo: 'a\r\nQUIT' }, /--helo/],
    ['a sender with a bracket', { mailFrom: 'a>b@example.com' }, /--mail-from/],
    ['a zero timeout', { deadlineMs: 0 }, /--deadline/],
    ['an invalid range', { allowRanges: ['10.0.0.0/33'] }, /10\.0\.0\.0\/33/],
    ['a DNS server by name', { dns: ['dns.example.com'] }, /dns\.example\.com/],
    ['an unsupported proxy scheme', { proxy: 'http://proxy.example.com' }, /socks5/],
    ['a missing file', { disposableFile: '/nowhere/list' }, /\/nowhere\/list/],
    ['a misspelled option', JSON.parse('{"smtp_port": 25}'), /smtp_port/],
    ['egresses that are not a list', JSON.parse('{"egresses": "a"}'), /"egresses" takes a list/],
    ['an egress without a name', JSON.parse('{"egresses": [{}]}'), /"egresses" .* "name"/],
    [
      'an egress with an invalid source address',
      { egresses: [{ name: 'a', sourceAddress: 'x' }] },
      /not "x"/,
    ],
    [
      'an unknown egress',
      { egresses: [{ name: 'a' }, { name: 'b' }], egress: 'c' },
      /takes an egress/,
    ],
    [
      'an operator with only unknown egresses',
      { egresses: [{ name: 'a' }], operators: { google: { egresses: ['b'] } } },
      /"operators" takes for "google" .*not \["b"\]/,
    ],
    [
      'an operator with a rate of zero',
      { operators: { google: { sessionsPerSecond: 0 } } },
      /not 0/,
    ],
  ])('rejects %s with an explanation', (_, options, message) => {
    expect(() => createEngine({ ...fakeDeps(), resolver: zone(), ...options })).toThrow(message)
    expect(() => createEngine(options)).toThrow(EvError)
  })

  test('accepts several egresses, and settings for one operator', async () => {
    const dialled: string[] = []
    const engine = createEngine({
      ...fakeDeps(),
      egresses: [
        { name: 'a', helo: 'a.example.com', sourceAddress: null, proxy: null },
        { name: 'b', mailFrom: 'probe@example.com', sourceAddress: '192.0.2.7' },
      ],
      operators: { google: { hosts: [], title: null, sessionsPerOperator: 3, egresses: ['b'] } },
      dial: ({ name, helo, mailFrom, sourceAddress }) => {
        dialled.push(`${name} ${helo} <${mailFrom}> ${sourceAddress}`)
        return scriptedMx({})
      },
      helo: 'probe.example.com',
    })
    expect(engine.egresses).toEqual(['a', 'b'])
    expect(dialled).toEqual([
      'a a.example.com <> null',
      'b probe.example.com <probe@example.com> 192.0.2.7',
    ])
    expect(engine.egressPool.ranked('google')).toEqual(['b'])
    expect(engine.rateController('google').row).toMatchObject({
      sessionsMax: 3,
      recipientsPerSession: 50,
    })
    expect(engine.rateController('outlook').row).toMatchObject({ sessionsMax: 2 })
    await engine.close()
  })

  test('uses only the egress that is selected by name', () => {
    const egresses = [{ name: 'a' }, { name: 'b' }]
    expect(createEngine({ ...fakeDeps(), egresses, egress: 'b' }).egresses).toEqual(['b'])
  })

  test('reads custom lists with one name per line, and ignores comments', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
    const disposableFile = join(folder, 'disposable.txt')
    const allowFile = join(folder, 'allow.txt')
    writeFileSync(disposableFile, '# ours\r\n\r\nthrowaway.test # for a while\r\nboth.test\r\n')
    writeFileSync(allowFile, 'both.test\nmailinator.com\n')
    const records = { MX: [[10, 'mx.throwaway.test']] as const }
    const resolver = zone({
      'throwaway.test': records,
      'both.test': records,
      'mailinator.com': records,
    })
    const engine = createEngine({
      ...fakeDeps(),
      resolver,
      disposableFile,
      allowFile,
      specialDomains: true,
    })
    const isDisposable = async (domain: string) =>
      (await engine.verify(`ann@${domain}`, { checkSmtp: false })).verdict.reason ===
      'disposable_email'
    expect(await isDisposable('throwaway.test')).toBe(true)
    expect(await isDisposable('both.test')).toBe(false)
    expect(await isDisposable('mailinator.com')).toBe(false)
    await engine.close()
    rmSync(folder, { recursive: true })
  })

  test('merges the entries of a list file and of the option', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
    const disposableFile = join(folder, 'disposable.txt')
    writeFileSync(disposableFile, 'one.test\n')
    const records = { MX: [[10, 'mx.one.test']] as const }
    const engine = createEngine({
      ...fakeDeps(),
      resolver: zone({ 'one.test': records, 'two.test': records }),
      disposableFile,
      lists: { disposable: ['two.test'] },
      specialDomains: true,
    })
    for (const domain of ['one.test', 'two.test']) {
      const { verdict } = await engine.verify(`ann@${domain}`)
      expect(verdict.reason).toBe('disposable_email')
    }
    await engine.close()
    rmSync(folder, { recursive: true })
  })
})

describe('a result of the embedded engine', () => {
  test.each([
    ['valid@example.com', 'deliverable'],
    ['role@example.com', 'risky'],
    ['invalid@example.com', 'undeliverable'],
    ['greylisted@example.com', 'unknown'],
    ['no address', 'undeliverable'],
  ])('of %s has the class %s, as in the API', async (email, expected) => {
    const engine = createEngine({ sandbox: true })
    const result = await engine.verify(email)
    expect(result.verdict.class).toBe(expected)
    expect(presentResult(result).class).toBe(expected)
    for await (const { verdict } of engine.verifyMany([email])) expect(verdict.class).toBe(expected)
    await engine.close()
  })
})
