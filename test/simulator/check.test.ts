import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { EvError } from '../../src/platform/error.ts'
import { checkScenario, readScenario } from '../../src/simulator/scenario.ts'

const withHost = (plan: unknown) => ({ domains: {}, hosts: { 'mx.a.test': plan } })
const withRule = (rule: unknown) => withHost({ behavior: 'polite', rules: [rule] })
const withDomain = (plan: unknown) => ({ domains: { 'a.test': plan }, hosts: {} })

function faultOf(scenario: unknown): string {
  try {
    checkScenario(scenario)
  } catch (error) {
    if (error instanceof EvError && error.code === 'bad_input') return error.message
    throw error
  }
  return 'no fault'
}

describe('a valid scenario', () => {
  test.each([
    ['that is empty', { domains: {}, hosts: {} }],
    [
      'with ports and a latency',
      { domains: {}, hosts: {}, smtpPort: 0, dnsPort: 5353, roundTripMs: 20 },
    ],
    [
      'with every kind of MX',
      {
        domains: {
          'a.test': { mx: 'null' },
          'b.test': { mx: 'none' },
          'c.test': { mx: [[10, 'mx']] },
        },
        hosts: {},
      },
    ],
    [
      'with records of all kinds',
      withDomain({
        a: ['192.0.2.1'],
        aaaa: ['2001:db8::1'],
        txt: ['v=spf1 -all'],
        ptr: 'a.test',
      }),
    ],
    ['with names beyond ASCII', { domains: { 'bücher.test': {} }, hosts: {} }],
    [
      'with comments everywhere',
      {
        comment: 'x',
        domains: { 'a.test': { comment: 'x' } },
        hosts: {
          'mx.a.test': {
            comment: 'x',
            behavior: 'polite',
            rules: [{ comment: 'x', on: 'RCPT', end: 'hang' }],
          },
        },
      },
    ],
    [
      'with a rule of all conditions',
      withRule({
        on: 'ANY',
        to: ['ann', 'b*@a.test'],
        from: '',
        client: '127.0.0.*',
        timesMax: 1,
        withinMs: 0.5,
        recipientFrom: 1,
        askedAbove: 0,
        connectionFrom: 1,
        connectionMax: 2,
        sessionsAbove: 0,
        secure: false,
        afterMs: 10,
        reply: '250-one\n250 two',
        raw: '\u00ff',
        endless: 'x',
        end: 'tls-alert',
      }),
    ],
    [
      'whose unreachable hosts share an address',
      {
        domains: {},
        hosts: {
          'mx1.test': { behavior: 'drops', ip: '127.0.0.9' },
          'mx2.test': { behavior: 'drops', ip: '127.0.0.9' },
          'mx3.test': { behavior: 'polite', ip: '10.0.0.1' },
          'mx4.test': { behavior: 'polite', ip: '10.0.0.1' },
        },
      },
    ],
  ])('%s is accepted', (_, scenario) => {
    expect(faultOf(scenario)).toBe('no fault')
  })
})

describe('a mistake in a scenario is reported with its path and what is allowed', () => {
  test.each([
    [null, 'scenario is null; it takes an object: {…}.'],
    [[], 'scenario is []; it takes an object: {…}.'],
    [{ hosts: {} }, 'scenario has no "domains", which is required.'],
    [
      { domains: {}, hosts: {}, host: {} },
      'scenario has "host"; it takes comment, domains, hosts, mailboxes, smtpPort, dnsPort, roundTripMs, dnsAdditional.',
    ],
    [
      { domains: {}, hosts: {}, smtpPort: 70_000 },
      'scenario.smtpPort is 70000; it takes a whole number from 0 to 65535.',
    ],
    [
      { domains: {}, hosts: {}, roundTripMs: '20' },
      'scenario.roundTripMs is "20"; it takes a number from 0 to 60000.',
    ],
    [
      { domains: {}, hosts: {}, mailboxes: 'ann' },
      'scenario.mailboxes is "ann"; it takes a list such as ["ann", "bob.*"].',
    ],
    [
      { domains: {}, hosts: {}, mailboxes: [1] },
      /^scenario\.mailboxes\[0\] is 1; it takes an address/,
    ],
    [
      { domains: { 'ann@a.test': {} }, hosts: {} },
      /^scenario\.domains has "ann@a\.test"; it takes names of domains/,
    ],
    [
      withDomain({ mx: 'mx.a.test' }),
      /^scenario\.domains\["a\.test"\]\.mx is "mx\.a\.test"; it takes "null", "none" or a list/,
    ],
    [
      withDomain({ mx: ['mx.a.test'] }),
      /\.mx\[0\] is "mx\.a\.test"; it takes a preference from 0 to 65535 and a name/,
    ],
    [withDomain({ mx: [[1.5, 'mx.a.test']] }), /\.mx\[0\]\[0\] is 1\.5; /],
    [withDomain({ mx: [[10, 25]] }), /\.mx\[0\]\[1\] is 25; /],
    [withDomain({ a: ['::1'] }), /\.a\[0\] is "::1"; it takes IPv4 addresses/],
    [
      withDomain({ a: '192.0.2.1' }),
      /\.a is "192\.0\.2\.1"; it takes a list such as \["192\.0\.2\.1"\]/,
    ],
    [withDomain({ aaaa: ['127.0.0.1'] }), /\.aaaa\[0\] is "127\.0\.0\.1"; it takes IPv6 addresses/],
    [withDomain({ fault: 'broken' }), /\.fault is "broken"; it takes one of nxdomain, servfail, /],
    [withHost('polite'), /^scenario\.hosts\["mx\.a\.test"\] is "polite"; it takes an object/],
    [withHost({}), 'scenario.hosts["mx.a.test"] has no "behavior", which is required.'],
    [
      withHost({ behavior: 'grumpy' }),
      /\.behavior is "grumpy"; it takes one of polite, catch-all, .*endless\.$/,
    ],
    [withHost({ behavior: 'toString' }), /\.behavior is "toString"; /],
    [
      withHost({ behavior: 'polite', ip: '127.0.0' }),
      /\.ip is "127\.0\.0"; it takes an IP address/,
    ],
    [
      withHost({ behavior: 'polite', ip: ['127.0.0.2', 3] }),
      /\.ip\[1\] is 3; it takes an IP address/,
    ],
    [
      withHost({ behavior: 'polite', extensions: ['SIZE\r\n'] }),
      /\.extensions\[0\] is "SIZE\\r\\n"; /,
    ],
    [
      withHost({ behavior: 'polite', starttls: 'yes' }),
      /\.starttls is "yes"; it takes true or false/,
    ],
    [withHost({ behavior: 'greylist', seconds: -1 }), /\.seconds is -1; it takes a number from 0 /],
    [withHost({ behavior: 'polite', rules: {} }), /\.rules is \{\}; it takes a list of rules/],
    [
      withHost({ behavior: 'drip', engine: 'smtp-server' }),
      /^scenario\.hosts\["mx\.a\.test"\] .*only gives replies/,
    ],
    [
      withRule({ on: 'RCP', end: 'hang' }),
      /\.rules\[0\]\.on is "RCP"; it takes one of CONNECT, EHLO, /,
    ],
    [withRule({ reply: '250 Ok' }), /\.rules\[0\] has no "on", which is required\.$/],
    [
      withRule({ on: 'RCPT', to: 'ann' }),
      /\.rules\[0\] does nothing; it takes reply, raw, endless or end/,
    ],
    [withRule({ on: 'RCPT', reply: 250 }), /\.reply is 250; it takes a reply such as/],
    [withRule({ on: 'RCPT', reply: 'User unknown' }), /\.reply is "User unknown"; /],
    [withRule({ on: 'RCPT', reply: '55 no' }), /\.reply is "55 no"; /],
    [withRule({ on: 'RCPT', reply: '5500 no' }), /\.reply is "5500 no"; /],
    [withRule({ on: 'RCPT', reply: '190 no' }), /\.reply is "190 no"; /],
    [withRule({ on: 'RCPT', reply: '550-no\nmore' }), /\.reply is "550-no\\nmore"; /],
    [withRule({ on: 'RCPT', raw: '€' }), /\.raw is "€"; it takes characters up to/],
    [withRule({ on: 'RCPT', endless: 'a\nb' }), /\.endless is "a\\nb"; it takes one line/],
    [
      withRule({ on: 'RCPT', end: 'quit' }),
      /\.end is "quit"; it takes one of close, reset, hang, tls-alert/,
    ],
    [
      withRule({ on: 'RCPT', end: 'hang', timesMax: 0 }),
      /\.timesMax is 0; it takes a whole number from 1 /,
    ],
    [withRule({ on: 'RCPT', end: 'hang', afterMs: 1e9 }), /\.afterMs is 1000000000; /],
    [
      withRule({ on: 'RCPT', end: 'hang', client: 'localhost' }),
      /\.client is "localhost"; it takes IP addresses/,
    ],
    [
      withRule({ on: 'RCPT', end: 'hang', times: 1 }),
      /\.rules\[0\] has "times"; it takes .*timesMax/,
    ],
    [
      {
        domains: {},
        hosts: {
          'mx1.test': { behavior: 'polite', ip: '127.0.0.9' },
          'mx2.test': { behavior: 'drip', ip: ['127.0.0.8', '127.0.0.9'] },
        },
      },
      'scenario.hosts gives 127.0.0.9 to mx1.test and to mx2.test; each needs its own address.',
    ],
    [
      {
        domains: {},
        hosts: {
          'mx1.test': { behavior: 'drops', ip: '127.0.0.9' },
          'mx2.test': { behavior: 'dead', ip: '127.0.0.9' },
        },
      },
      /gives 127\.0\.0\.9 to mx1\.test and to mx2\.test/,
    ],
    [
      withRule({ on: 'RCPT', reply: `x\u001b[31m${'y'.repeat(500)}` }),
      /\.reply is "x\\u001b\[31my+…; it takes/,
    ],
  ])('%j', (scenario, sentence) => {
    if (typeof sentence === 'string') expect(faultOf(scenario)).toBe(sentence)
    else expect(faultOf(scenario)).toMatch(sentence)
  })
})

describe('a scenario file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ev-scenario-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const fileWith = (text: string) => {
    const file = join(folder, 'scenario.json')
    writeFileSync(file, text)
    return file
  }

  test('is read and validated', () => {
    const scenario = { domains: {}, hosts: { 'mx.a.test': { behavior: 'polite' } } }
    expect(readScenario(fileWith(JSON.stringify(scenario)))).toEqual(scenario)
    expect(() => readScenario(fileWith('{}'))).toThrow('scenario has no "domains"')
  })

  test.each([
    [
      'that does not exist',
      () => join(folder, 'nowhere.json'),
      'no_input',
      /Cannot read the scenario .*nowhere\.json: no such file or directory/,
    ],
    [
      'that is not valid JSON',
      () => fileWith('{"domains": {,'),
      'bad_input',
      /The scenario .*scenario\.json is not valid JSON: /,
    ],
  ])('%s is an error', (_, file, code, sentence) => {
    expect(() => readScenario(file())).toThrow(
      expect.objectContaining({ code, message: expect.stringMatching(sentence) }),
    )
  })
})
