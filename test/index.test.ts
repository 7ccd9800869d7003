import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createEngine, EvError } from '../src/index.ts'
import { fakeClock } from './support/clock.ts'
import { scriptedMx } from './support/mx.ts'
import { zone } from './support/zone.ts'

describe('createEngine', () => {
  const doors = () => ({ clock: fakeClock(), resolver: zone(), dial: scriptedMx({}) })

  test('needs nothing', async () => {
    await createEngine().close()
  })

  test('takes every setting by its name', async () => {
    const engine = createEngine({
      ...doors(),
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
    ['a port beyond all ports', { smtpPort: 70_000 }, /--smtp-port .*65535/],
    ['a name with a line break', { helo: 'a\r\nQUIT' }, /--helo/],
    ['a sender with a bracket', { mailFrom: 'a>b@example.com' }, /--mail-from/],
    ['a time that is none', { deadlineMs: 0 }, /--deadline/],
    ['a range that is none', { allowRanges: ['10.0.0.0/33'] }, /10\.0\.0\.0\/33/],
    ['a DNS server by name', { dns: ['dns.example.com'] }, /dns\.example\.com/],
    ['a proxy of another kind', { proxy: 'http://proxy.example.com' }, /socks5/],
    ['a file that is not there', { disposableFile: '/nowhere/list' }, /\/nowhere\/list/],
    ['a misspelled option', JSON.parse('{"smtp_port": 25}'), /smtp_port/],
    ['egresses that are no list', JSON.parse('{"egresses": "a"}'), /"egresses" takes a list/],
    ['an egress without a name', JSON.parse('{"egresses": [{}]}'), /"egresses" .* "name"/],
    ['an egress from nowhere', { egresses: [{ name: 'a', sourceAddress: 'x' }] }, /not "x"/],
    [
      'an egress that is not there',
      { egresses: [{ name: 'a' }, { name: 'b' }], egress: 'c' },
      /takes an egress/,
    ],
    [
      'an operator that none may ask',
      { egresses: [{ name: 'a' }], operators: { google: { egresses: ['b'] } } },
      /"operators" takes for "google" .*not \["b"\]/,
    ],
    ['an operator without a pace', { operators: { google: { sessionsPerSecond: 0 } } }, /not 0/],
  ])('refuses %s, and says so', (_, options, message) => {
    expect(() => createEngine({ ...doors(), resolver: zone(), ...options })).toThrow(message)
    expect(() => createEngine(options)).toThrow(EvError)
  })

  test('takes several egresses, and what is said of one operator', async () => {
    const dialled: string[] = []
    const engine = createEngine({
      ...doors(),
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

  test('picks one of several egresses by its name', () => {
    const egresses = [{ name: 'a' }, { name: 'b' }]
    expect(createEngine({ ...doors(), egresses, egress: 'b' }).egresses).toEqual(['b'])
  })

  test('reads lists of one’s own: one name a line, comments aside', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
    const disposableFile = join(folder, 'disposable.txt')
    const allowFile = join(folder, 'allow.txt')
    writeFileSync(disposableFile, '# ours\r\n\r\nthrowaway.test # for a while\r\nboth.test\r\n')
    writeFileSync(allowFile, 'both.test\nmailinator.com\n')
    const records = { MX: [[10, 'mx.throwaway.test']] as const }
    const resolver = zone({
      ...{ 'throwaway.test': records, 'both.test': records, 'mailinator.com': records },
    })
    const engine = createEngine({
      ...doors(),
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

  test('with lists, a file and the option add up', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
    const disposableFile = join(folder, 'disposable.txt')
    writeFileSync(disposableFile, 'one.test\n')
    const records = { MX: [[10, 'mx.one.test']] as const }
    const engine = createEngine({
      ...doors(),
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
