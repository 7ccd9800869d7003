import { describe, expect, test } from 'vitest'
import type { Resolver } from '../../src/dns/resolver.ts'
import type { Dial } from '../../src/smtp/dial.ts'
import { house, isUnguessable, knows, mail, quiet, toRecipients } from './house.ts'

const YES = '250 2.1.5 Ok'
const NO = '550 5.1.1 No such user'

/** Fails the test that lets it be opened. */
const closedDial: Dial = {
  connect: to => Promise.reject(new Error(`nobody should dial ${to.ip}`)),
  secure: () => Promise.reject(new Error('nobody should want TLS')),
}

describe('one address', () => {
  test('its result has what was asked, what was found, and how long it took', async () => {
    const { engine, clock, settled, complaints } = house()
    const result = await settled(engine.verify('Ann@A.test'))
    await engine.close()
    expect(complaints).toEqual([])
    expect(result).toMatchObject({
      email: 'Ann@A.test',
      provider: 'a.test',
      verdict: { reason: 'rejected_email' },
      cached: false,
      checkedAt: clock.now(),
      tookMs: 0,
      evidence: {
        address: { local: 'Ann' },
        route: { kind: 'mx', hosts: [{ preference: 10, host: 'mx.a.test' }] },
        host: 'mx.a.test',
        ip: '192.0.2.1',
        tls: false,
        failure: null,
        skipped: null,
        dialogue: null,
      },
    })
  })

  test('is asked once however many ask for it at the same time', async () => {
    const { engine, settled, recipients } = house()
    const asked = ['ann@a.test', 'ann@A.TEST', 'ann@a.test'].map(text => engine.verify(text))
    const results = await settled(Promise.all(asked))
    expect(results.map(({ email, verdict }) => `${email} ${verdict.reason}`)).toEqual([
      'ann@a.test accepted_email',
      'ann@A.TEST accepted_email',
      'ann@a.test accepted_email',
    ])
    expect(recipients().filter(to => to === 'ann@a.test')).toHaveLength(1)
  })

  test('is asked apart from others of its domain', async () => {
    const { engine, settled, recipients } = house()
    await settled(Promise.all(['ann@a.test', 'bob@a.test'].map(text => engine.verify(text))))
    expect(recipients()).toEqual(expect.arrayContaining(['ann@a.test', 'bob@a.test']))
  })

  test('with its dialogue when that is asked for, both sides of it', async () => {
    const { verify } = house()
    const { evidence } = await verify('ann@a.test', { include: ['dialogue'] })
    expect(evidence.dialogue).toEqual(
      expect.arrayContaining([
        'S: 220 mx.example.org ESMTP',
        'C: EHLO probe.test',
        'C: MAIL FROM:<>',
        'C: RCPT TO:<ann@a.test>',
        'S: 250 2.1.5 Ok',
      ]),
    )
  })

  test('without the mail server: everything but its answer', async () => {
    const { verify, mx } = house({ dial: () => closedDial })
    const { verdict, evidence } = await verify('ann@a.test', { checkSmtp: false })
    expect(verdict.reason).toBe('smtp_skipped')
    expect(evidence).toMatchObject({ skipped: 'unwanted', route: { kind: 'mx' }, answer: null })
    expect(mx.dialled).toEqual([])
  })

  test.each([null, undefined, 42, {}, Symbol('a'), Object.create(null), ['ann@a.test']])(
    'that is no text at all is no address: %s',
    async given => {
      const { engine, settled, many } = house()
      expect((await settled(engine.verify(given as string))).verdict.reason).toBe('invalid_email')
      const results = await many([given as string, 'ann@a.test'])
      expect(results.map(({ verdict }) => verdict.reason)).toEqual([
        'invalid_email',
        'accepted_email',
      ])
    },
  )
})

describe('who need not be asked is not asked', () => {
  const quietHouse = (options: Parameters<typeof house>[0] = {}) =>
    house({ ...options, dial: () => closedDial })

  test.each([
    'ann@example.test',
    'ann@mx.localhost',
    'ann@host.local',
    'ann@shop.example',
    'ann@a.invalid',
    'ann@hidden.onion',
    'ann@printer.home.arpa',
  ])('a special name, by nobody: %s', async text => {
    const { verify, zone } = quietHouse({ engine: { specialDomains: false } })
    expect((await verify(text)).verdict.reason).toBe('invalid_domain')
    expect(zone.asked).toEqual([])
  })

  test.each([
    ['a fault', 'ann@@a.test', 'invalid_email'],
    ['an address literal', 'ann@[192.0.2.7]', 'smtp_skipped'],
  ])('%s, by the DNS', async (_, text, reason) => {
    const { verify, zone } = quietHouse()
    expect((await verify(text)).verdict.reason).toBe(reason)
    expect(zone.asked).toEqual([])
  })

  test('a blocked one, by the DNS', async () => {
    const { verify, zone } = quietHouse({ engine: { lists: { blocked: ['ann@a.test'] } } })
    expect((await verify('ann@a.test')).verdict.reason).toBe('blocklisted')
    expect(zone.asked).toEqual([])
  })

  test.each<[string, string, Parameters<typeof house>[0]]>([
    ['a null MX', 'does_not_accept_mail', { zone: { 'a.test': { MX: [[0, '']] } } }],
    ['no exchanger', 'no_mx_record', { zone: { 'a.test': {}, 'mx.a.test': 'no-name' } }],
    ['no domain', 'invalid_domain', { zone: { 'a.test': 'no-name' } }],
    ['a broken DNS', 'dns_error', { zone: { 'a.test': 'server' } }],
    ['a list of throw-away domains', 'disposable_email', lists({ disposable: ['a.test'] })],
    ['a list of traps', 'spam_trap', lists({ spamTrap: ['ann@a.test'] })],
    [
      'the exchanger of throw-away domains',
      'disposable_email',
      { zone: { 'a.test': { MX: [[1, 'mail.mailinator.com']] } } },
    ],
    ['an exchanger without an address', 'no_mx_record', { zone: { 'mx.a.test': 'no-name' } }],
  ])('by the mail server, after %s: %s', async (_, reason, options) => {
    const { verify } = quietHouse(options)
    expect((await verify('ann@a.test')).verdict.reason).toBe(reason)
  })

  test.each([
    '127.0.0.1',
    '10.1.2.3',
    '169.254.169.254',
    '192.168.1.1',
    '::1',
    'fe80::1',
    '::ffff:127.0.0.1',
    '100.64.0.1',
    '0.0.0.0',
  ])('an exchanger at %s is never dialled', async ip => {
    const { verify, mx } = house({
      zone: { 'mx.a.test': ip.includes(':') ? { AAAA: [ip] } : { A: [ip] } },
    })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict.reason).toBe('no_connect')
    expect(evidence.answer).toMatchObject({ kind: 'silent', why: 'not-public' })
    expect(mx.dialled).toEqual([])
  })

  test('of public and private addresses only the public ones are dialled', async () => {
    const { verify, mx } = house({
      zone: { 'mx.a.test': { A: ['10.0.0.1', '192.0.2.1', '127.0.0.1'], AAAA: ['::1'] } },
    })
    expect((await verify('ann@a.test')).verdict.reason).toBe('accepted_email')
    expect(mx.dialled.map(({ ip }) => ip)).toEqual(['192.0.2.1'])
  })

  test('the name dialled is the address looked up: it is not resolved again', async () => {
    const { verify, mx } = house()
    await verify('ann@a.test')
    expect(mx.dialled).toEqual([{ ip: '192.0.2.1', port: 25, host: 'mx.a.test' }])
  })
})

describe('suggestions', () => {
  test('a listed slip stands though the domain has a mail server', async () => {
    const { verify } = house({ zone: mail('gamil.com', '192.0.2.2') })
    const { verdict, evidence } = await verify('ann@gamil.com')
    expect(evidence.suggestion).toBe('ann@gmail.com')
    expect(verdict.reason).toBe('possible_typo')
  })

  test('a guess is dropped when the domain has a mail server', async () => {
    const { verify } = house({ zone: mail('gomail.com', '192.0.2.2') })
    expect((await verify('ann@gomail.com')).evidence.suggestion).toBeNull()
  })

  test('a guess stands when the domain does not exist', async () => {
    const { verify } = house()
    const { verdict, evidence } = await verify('ann@gmail.con')
    expect(verdict.reason).toBe('invalid_domain')
    expect(evidence.suggestion).toBe('ann@gmail.com')
  })

  test('no guess is made of a domain that the DNS could not tell of', async () => {
    const { verify } = house({ zone: { 'seznamm.cz': 'server' } })
    const { verdict, evidence } = await verify('ann@seznamm.cz')
    expect(verdict.reason).toBe('dns_error')
    expect(evidence.suggestion).toBeNull()
  })

  test('a text that is no address may still be a known slip', async () => {
    const { verify } = house()
    const { verdict, evidence } = await verify('ann@gmail')
    expect(verdict.reason).toBe('invalid_email')
    expect(evidence.suggestion).toBe('ann@gmail.com')
  })
})

describe('trouble of ours is a result, and never "invalid"', () => {
  test.each<[string, Parameters<typeof house>[0]]>([
    ['a resolver that throws', { resolver: () => throwing(new TypeError('broken')) }],
    ['a resolver that rejects with nothing', { resolver: () => rejecting(undefined) }],
    ['a resolver that breaks at the exchanger', { resolver: breakingAt('A') }],
    [
      'a clock that is broken in mid-conversation',
      {
        script: { greeting: '220 hi' },
        engine: {
          random: {
            below: () => 0,
            token: () => {
              throw new RangeError('no chance left')
            },
          },
        },
      },
    ],
  ])('%s', async (_, options) => {
    const { verify, complaints } = house(options)
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict).toMatchObject({ reason: 'unexpected_error', risk: 'unknown' })
    expect(evidence.failure).toEqual(expect.any(String))
    expect(complaints.join()).toMatch(/failed inside ev/)
  })

  test('what was found before it is told', async () => {
    const { verify } = house({ resolver: breakingAt('A') })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict.details).toEqual({
      syntaxValid: true,
      domainExists: true,
      mxRecord: true,
      smtpValid: false,
    })
    expect(evidence.route).toMatchObject({ kind: 'mx' })
  })

  test('a dial that throws is an exchanger that was not reached', async () => {
    const { reason } = house({
      dial: () => ({
        connect: () => {
          throw new Error('odd')
        },
        secure: closedDial.secure,
      }),
    })
    expect(await reason('ann@a.test')).toBe('no_connect')
  })

  test('the next one is not hurt by it', async () => {
    let broken = true
    const { reason } = house({
      resolver: zone => ({
        resolve: (name, type, signal) => {
          if (broken) throw new Error('broken')
          return zone.resolve(name, type, signal)
        },
      }),
    })
    expect(await reason('ann@a.test')).toBe('unexpected_error')
    broken = false
    expect(await reason('ann@a.test')).toBe('accepted_email')
  })
})

describe('an end before its time', () => {
  test('a signal that aborts ends the wait with its reason', async () => {
    const { engine } = house({ script: { greeting: null } })
    const abort = new AbortController()
    const verifying = engine.verify('ann@a.test', { signal: abort.signal })
    await quiet()
    abort.abort(new Error('changed my mind'))
    await expect(verifying).rejects.toThrow('changed my mind')
    await engine.close()
  })

  test('a signal that aborted before asks nobody', async () => {
    const { engine, zone } = house()
    const signal = AbortSignal.abort(new Error('too late'))
    await expect(engine.verify('ann@a.test', { signal })).rejects.toThrow('too late')
    expect(zone.asked).toEqual([])
  })

  test('who asks for the same address is not hurt by another who leaves', async () => {
    let answer = () => {}
    const { engine, settled } = house({
      script: toRecipients((to, session) => {
        if (isUnguessable(to)) return null
        answer = () => {
          session.say(YES)
          session.say(NO)
        }
        return null
      }),
    })
    const abort = new AbortController()
    const leaving = engine.verify('ann@a.test', { signal: abort.signal })
    const staying = engine.verify('ann@a.test')
    await quiet()
    abort.abort()
    await expect(leaving).rejects.toThrow()
    answer()
    expect((await settled(staying)).verdict.reason).toBe('accepted_email')
  })

  test('close gives up what is under way, and leaves no connection and no timer', async () => {
    const { engine, mx, clock } = house({ script: { greeting: null } })
    const verifying = engine.verify('ann@a.test')
    await quiet()
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([false])
    await engine.close()
    expect((await verifying).verdict).toMatchObject({ valid: false, risk: 'unknown' })
    await quiet()
    expect(mx.sessions.map(({ closed }) => closed)).toEqual([true])
    await clock.advance(20)
    expect(clock.pending).toBe(0)
  })

  test('close may be called twice, and before anything was asked', async () => {
    const { engine, mx } = house()
    await Promise.all([engine.close(), engine.close()])
    await engine.close()
    expect(mx.dialled).toEqual([])
  })

  test('close waits for the farewell', async () => {
    const known = knows('ann')
    let bye = () => {}
    const { engine, mx } = house({
      script: {
        answer: (line, session) => {
          if (line !== 'QUIT') return known(line, session)
          bye = () => session.hangUp()
          return null
        },
      },
    })
    expect((await engine.verify('ann@a.test')).verdict.reason).toBe('accepted_email')
    let closed = false
    const closing = engine.close().then(() => {
      closed = true
    })
    await quiet()
    expect({ closed, gone: mx.sessions[0]?.closed }).toEqual({ closed: false, gone: false })
    bye()
    await closing
    expect(mx.sessions[0]?.closed).toBe(true)
  })

  test('a closed engine asks nobody any more', async () => {
    const { engine, verify, mx, zone, many } = house()
    await engine.close()
    expect((await verify('ann@a.test')).verdict.risk).toBe('unknown')
    await expect(many(['ann@a.test'])).rejects.toMatchObject({ code: 'interrupted' })
    expect({ asked: zone.asked, dialled: mx.dialled }).toEqual({ asked: [], dialled: [] })
  })
})

function lists(given: { disposable?: string[]; spamTrap?: string[] }) {
  return { engine: { lists: given } }
}

const throwing = (error: unknown): Resolver => ({
  resolve: () => {
    throw error
  },
})
const rejecting = (error: unknown): Resolver => ({ resolve: () => Promise.reject(error) })
const breakingAt = (broken: string) => (zone: Resolver) =>
  ({
    resolve: (name, type, signal) => {
      if (type === broken) throw new Error(`${broken} is broken`)
      return zone.resolve(name, type, signal)
    },
  }) satisfies Resolver as Resolver
