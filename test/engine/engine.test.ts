import { describe, expect, test } from 'vitest'
import { createTestEngine, mail, reasonsOf } from '../support/engine.ts'
import { closedDial } from '../support/mx.ts'
import type { ZoneEntry } from '../support/zone.ts'

describe('one address', () => {
  test('has a result with the address, the evidence and the duration', async () => {
    const { engine, clock, settled, loggedErrors } = createTestEngine()
    const result = await settled(engine.verify('Ann@A.test'))
    await engine.close()
    expect(loggedErrors).toEqual([])
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

  test('is probed once for concurrent requests', async () => {
    const { engine, settled, recipients } = createTestEngine()
    const asked = ['ann@a.test', 'ann@A.TEST', 'ann@a.test'].map(text => engine.verify(text))
    const results = await settled(Promise.all(asked))
    expect(results.map(({ email, verdict }) => `${email} ${verdict.reason}`)).toEqual([
      'ann@a.test accepted_email',
      'ann@A.TEST accepted_email',
      'ann@a.test accepted_email',
    ])
    expect(recipients().filter(to => to === 'ann@a.test')).toHaveLength(1)
    expect(results.map(({ cached }) => cached)).toEqual([false, true, true])
  })

  test('is probed separately from others of its domain', async () => {
    const { engine, settled, recipients } = createTestEngine()
    await settled(Promise.all(['ann@a.test', 'bob@a.test'].map(text => engine.verify(text))))
    expect(recipients()).toEqual(expect.arrayContaining(['ann@a.test', 'bob@a.test']))
  })

  test('includes both sides of the dialogue on request', async () => {
    const { verify } = createTestEngine()
    const { evidence } = await verify('ann@a.test', { include: ['dialogue'] })
    expect(evidence.dialogue).toEqual(
      expect.arrayContaining([
        'S: 220 mx.a.test ESMTP',
        'C: EHLO probe.test',
        'C: MAIL FROM:<>',
        'C: RCPT TO:<ann@a.test>',
        'S: 250 2.1.5 Ok',
      ]),
    )
  })

  test('has everything but the SMTP answer when SMTP is disabled', async () => {
    const { verify, mx } = createTestEngine({ dial: () => closedDial })
    const { verdict, evidence } = await verify('ann@a.test', { checkSmtp: false })
    expect(verdict.reason).toBe('smtp_skipped')
    expect(evidence).toMatchObject({ skipped: 'unwanted', route: { kind: 'mx' }, answer: null })
    expect(mx.dialled).toEqual([])
  })

  test.each([null, undefined, 42, {}, Symbol('a'), Object.create(null), ['ann@a.test']])(
    'is invalid if it is not a text: %s',
    async value => {
      const { engine, settled, many } = createTestEngine()
      expect((await settled(engine.verify(value as string))).verdict.reason).toBe('invalid_email')
      const results = await many([value as string, 'ann@a.test'])
      expect(results.map(({ verdict }) => verdict.reason)).toEqual([
        'invalid_email',
        'accepted_email',
      ])
    },
  )
})

describe('an address that needs no probe is not probed', () => {
  const silentEngine = (options: Parameters<typeof createTestEngine>[0] = {}) =>
    createTestEngine({ ...options, dial: () => closedDial })

  test.each([
    'ann@example.test',
    'ann@mx.localhost',
    'ann@host.local',
    'ann@shop.example',
    'ann@a.invalid',
    'ann@hidden.onion',
    'ann@printer.home.arpa',
  ])('a special-use name, without any lookup: %s', async text => {
    const { verify, zone } = silentEngine({ engine: { specialDomains: false } })
    expect((await verify(text)).verdict.reason).toBe('invalid_domain')
    expect(zone.asked).toEqual([])
  })

  test.each([
    ['a fault', 'ann@@a.test', 'invalid_email'],
    ['an address literal', 'ann@[192.0.2.7]', 'smtp_skipped'],
  ])('%s, without a DNS lookup', async (_, text, reason) => {
    const { verify, zone } = silentEngine()
    expect((await verify(text)).verdict.reason).toBe(reason)
    expect(zone.asked).toEqual([])
  })

  test('a blocked one, without a DNS lookup', async () => {
    const { verify, zone } = silentEngine({ engine: { lists: { blocked: ['ann@a.test'] } } })
    expect((await verify('ann@a.test')).verdict.reason).toBe('blocklisted')
    expect(zone.asked).toEqual([])
  })

  test.each<[string, string, Parameters<typeof createTestEngine>[0]]>([
    ['a null MX', 'does_not_accept_mail', { zone: { 'a.test': { MX: [[0, '']] } } }],
    ['no exchanger', 'no_mx_record', { zone: { 'a.test': {}, 'mx.a.test': 'no-name' } }],
    ['no domain', 'invalid_domain', { zone: { 'a.test': 'no-name' } }],
    ['a broken DNS', 'dns_error', { zone: { 'a.test': 'server' } }],
    ['a list of disposable domains', 'disposable_email', lists({ disposable: ['a.test'] })],
    ['a list of traps', 'spam_trap', lists({ spamTrap: ['ann@a.test'] })],
    [
      'the exchanger of disposable domains',
      'disposable_email',
      { zone: { 'a.test': { MX: [[1, 'mail.mailinator.com']] } } },
    ],
    ['an exchanger without an address', 'no_mx_record', { zone: { 'mx.a.test': 'no-name' } }],
  ])('without an SMTP session, for %s: %s', async (_, reason, options) => {
    const { verify } = silentEngine(options)
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
    const { verify, mx } = createTestEngine({
      zone: { 'mx.a.test': ip.includes(':') ? { AAAA: [ip] } : { A: [ip] } },
    })
    const { verdict, evidence } = await verify('ann@a.test')
    expect(verdict.reason).toBe('no_connect')
    expect(evidence.answer).toMatchObject({ kind: 'no-response', why: 'not-public' })
    expect(mx.dialled).toEqual([])
  })

  test('only the public addresses of an exchanger are dialled', async () => {
    const { verify, mx } = createTestEngine({
      zone: { 'mx.a.test': { A: ['10.0.0.1', '192.0.2.1', '127.0.0.1'], AAAA: ['::1'] } },
    })
    expect((await verify('ann@a.test')).verdict.reason).toBe('accepted_email')
    expect(mx.dialled.map(({ ip }) => ip)).toEqual(['192.0.2.1'])
  })

  test('dials the address that was looked up, without a second lookup', async () => {
    const { verify, mx } = createTestEngine()
    await verify('ann@a.test')
    expect(mx.dialled).toEqual([{ ip: '192.0.2.1', port: 25, host: 'mx.a.test' }])
  })
})

describe('the DNS', () => {
  test.each<[string, Record<string, ZoneEntry>, string]>([
    [
      'denies a domain for MX that has an address',
      { 'box.test': { MX: 'no-name', A: ['192.0.2.2'], AAAA: 'no-name' } },
      'accepted_email',
    ],
    ['denies a domain for every type', {}, 'invalid_domain'],
    [
      'denies a domain for MX and does not answer for A',
      { 'box.test': { MX: 'no-name', A: 'timeout' } },
      'dns_error',
    ],
    [
      'never answers to AAAA of an exchanger',
      {
        'box.test': { MX: [[10, 'mx.box.test']] },
        'mx.box.test': { A: ['192.0.2.2'], AAAA: 'never' },
      },
      'accepted_email',
    ],
    [
      'never answers to AAAA of a domain without MX records',
      { 'box.test': { A: ['192.0.2.2'], AAAA: 'never' } },
      'accepted_email',
    ],
  ])('%s', async (_, zone, reason) => {
    const single = createTestEngine({ zone })
    const { verdict, tookMs } = await single.verify('ann@box.test')
    expect([verdict.reason, tookMs]).toEqual([reason, 0])
    const list = createTestEngine({ zone })
    expect(reasonsOf(await list.many(['ann@box.test']))).toEqual([`ann@box.test ${reason}`])
  })
})

describe('suggestions', () => {
  test('a listed typo is suggested even if the domain has a mail server', async () => {
    const { verify } = createTestEngine({ zone: mail('gamil.com', '192.0.2.2') })
    const { verdict, evidence } = await verify('ann@gamil.com')
    expect(evidence.suggestion).toBe('ann@gmail.com')
    expect(verdict.reason).toBe('possible_typo')
  })

  test('a guess is dropped if the domain has a mail server', async () => {
    const { verify } = createTestEngine({ zone: mail('lapsote.net', '192.0.2.2') })
    expect((await verify('ann@lapsote.net')).evidence.suggestion).toBeNull()
  })

  test.each([
    ['gmaxl.com', 'gmail.com'],
    ['yhao.com', 'yahoo.com'],
    ['icld.com', 'icloud.com'],
    ['hotmial.xyz', 'hotmail.com'],
    ['comcsat.net', 'comcast.net'],
    ['sbcglobl.net', 'sbcglobal.net'],
    ['ferenet.de', 'freenet.de'],
    ['tonline.de', 't-online.de'],
    ['gmxx.net', 'gmx.net'],
    ['wbe.de', 'web.de'],
    ['wanado.fr', 'wanadoo.fr'],
  ])(
    'a guess at a provider that squatters imitate is suggested, and the mail server of %s decides',
    async (domain, meant) => {
      const { verify } = createTestEngine({ zone: mail(domain, '192.0.2.2') })
      const { verdict, evidence } = await verify(`ann@${domain}`)
      expect(evidence.suggestion).toBe(`ann@${meant}`)
      expect(verdict).toMatchObject({ reason: 'accepted_email', risk: 'low' })
    },
  )

  test.each([
    ["'ann@a.test", 'ann@a.test'],
    ['’ann@a.test', 'ann@a.test'],
    ['“ann@a.test', 'ann@a.test'],
    ["'ann'@a.test", 'ann@a.test'],
    ["'o'hara@a.test", "o'hara@a.test"],
    ["o'hara@a.test", null],
    ["ann'@a.test", null],
    ["'@a.test", null],
    ['o’hara@a.test', "o'hara@a.test"],
    ['ann–lee@a.test', 'ann-lee@a.test'],
    ['аnn@a.test', 'ann@a.test'],
    ['анна@a.test', null],
    ['éva@a.test', null],
  ])(
    'a name as a spreadsheet or a word processor writes it is corrected by the suggestion: %s',
    async (text, meant) => {
      const { verify } = createTestEngine()
      const { evidence } = await verify(text, { checkSmtp: false })
      expect(evidence.suggestion).toBe(meant)
    },
  )

  test('a quotation mark and a misspelled domain are corrected together', async () => {
    const { verify } = createTestEngine({ zone: mail('gamil.com', '192.0.2.2') })
    expect((await verify("'ann@gamil.com")).evidence.suggestion).toBe('ann@gmail.com')
  })

  test('a misspelled large provider that accepts every name is a risky typo, not a catch-all', async () => {
    const takesAll = { script: () => '250 2.1.5 Ok', zone: mail('gmall.com', '192.0.2.2') }
    const { verdict, evidence } = await createTestEngine(takesAll).verify('ann@gmall.com')
    expect(verdict).toMatchObject({ reason: 'possible_typo', deliverable: false, risk: 'high' })
    expect(evidence).toMatchObject({ suggestion: 'ann@gmail.com', catchAll: true })
    expect((await createTestEngine(takesAll).verify('ann@a.test')).verdict.reason).toBe('catch_all')
  })

  test.each(['park-mx.above.com', 'mail.h-email.net', 'mx37.mb5p.com', 'mail.b-io.co'])(
    'a misspelled provider with the exchanger %s is a risky typo, without an SMTP session',
    async host => {
      const { verify, reason, mx } = createTestEngine({
        zone: {
          'yhao.com': { MX: [[10, host]] },
          'firm.test': { MX: [[10, host]] },
          [host]: { A: ['192.0.2.9'] },
        },
      })
      const { verdict } = await verify('ann@yhao.com')
      expect(verdict).toMatchObject({
        reason: 'possible_typo',
        valid: true,
        deliverable: false,
        risk: 'high',
        details: { mxRecord: true, smtpValid: false },
      })
      expect(mx.dialled).toEqual([])
      expect(await reason('ann@firm.test')).toBe('catch_all')
    },
  )

  test('a rejection by the mail server of a misspelled domain takes precedence over the typo', async () => {
    const { reason } = createTestEngine({ zone: mail('gamil.com', '192.0.2.2') })
    expect(await reason('nobody@gamil.com')).toBe('rejected_email')
  })

  test('a guess is suggested if the domain does not exist', async () => {
    const { verify } = createTestEngine()
    const { verdict, evidence } = await verify('ann@gmail.con')
    expect(verdict.reason).toBe('invalid_domain')
    expect(evidence.suggestion).toBe('ann@gmail.com')
  })

  test('no guess is made for a domain after a DNS failure', async () => {
    const { verify } = createTestEngine({ zone: { 'seznamm.cz': 'server' } })
    const { verdict, evidence } = await verify('ann@seznamm.cz')
    expect(verdict.reason).toBe('dns_error')
    expect(evidence.suggestion).toBeNull()
  })

  test('an invalid address may still be a listed typo', async () => {
    const { verify } = createTestEngine()
    const { verdict, evidence } = await verify('ann@gmail')
    expect(verdict.reason).toBe('invalid_email')
    expect(evidence.suggestion).toBe('ann@gmail.com')
  })
})

function lists(value: { disposable?: string[]; spamTrap?: string[] }) {
  return { engine: { lists: value } }
}
