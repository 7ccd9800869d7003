import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type RawSettings, toConfig } from '../../src/config/config.ts'
import { findServiceLinks } from '../../src/config/environment.ts'
import { SETTINGS, type Settings } from '../../src/config/settings.ts'
import { EvError } from '../../src/platform/error.ts'

type Key = keyof Settings
/** Valid texts with their values, and invalid texts with the expected error. */
type Row = {
  readonly good: readonly (readonly [text: string, value: unknown])[]
  readonly bad: readonly (readonly [text: string, takes: RegExp])[]
  readonly fallback: unknown
}

const MS: Row['bad'] = [
  ['0', /whole number from 1 to/],
  ['1.5', /whole number/],
  ['10s', /whole number/],
  ['-1', /whole number/],
]
const SOME_TEXT: Row['bad'] = [[' ', /a non-empty text/]]
const MAILBOX: Pick<Row, 'good' | 'bad'> = {
  good: [
    ['ops@example.com', 'ops@example.com'],
    ["o'neil+ev@mail.example.com", "o'neil+ev@mail.example.com"],
    ['root@localhost', 'root@localhost'],
  ],
  bad: [
    ['ops', /ops@example\.com/],
    ['Ops <ops@example.com>', /ops@example\.com/],
    ['ops@example.com\r\nBcc: ann@example.com', /ops@example\.com/], // It is sent in a mail header.
    ['ops@example.com,ann@example.com', /ops@example\.com/],
    ['ops,ann@example.com', /ops@example\.com/],
    ['ops@ann@example.com', /ops@example\.com/],
    ['"a b"@example.com', /ops@example\.com/],
    ['.ops@example.com', /ops@example\.com/],
    ['ops@-example.com', /ops@example\.com/],
    [`${'a'.repeat(65)}@example.com`, /ops@example\.com/],
  ],
}
const SWITCH: readonly (readonly [string, boolean])[] = [
  ['on', true],
  ['off', false],
  ['1', true],
  ['NO', false],
  ['true', true],
]

/** One row per setting: the first test below fails for a setting without a row. */
const ROWS: Readonly<Record<Key, Row>> = {
  dns: {
    good: [
      ['192.0.2.53', ['192.0.2.53']],
      ['192.0.2.53:5353, 2001:db8::53', ['192.0.2.53:5353', '2001:db8::53']],
      ['[2001:db8::53]:5353', ['[2001:db8::53]:5353']],
    ],
    bad: [
      ['dns.example.com', /192\.0\.2\.53:5353/],
      ['192.0.2.53:0', /IP addresses such as/],
      ['192.0.2.53:65536', /IP addresses such as/],
      ['192.0.2.53,,192.0.2.54', /comma-separated/],
      ['fe80::1%eth0', /IP addresses such as/],
      ['[192.0.2.53]:53', /IP addresses such as/],
    ],
    fallback: [],
  },
  dnsCheckNames: {
    good: [
      ['Example.com., corp.example.net', ['example.com', 'corp.example.net']],
      ['off', []],
      ['no', []],
    ],
    bad: [
      ['example.com,,example.net', /comma-separated/],
      ['http://example.com', /off, or up to 10 domain names/],
      [Array.from({ length: 11 }, (_, i) => `${i}.example.com`).join(), /up to 10 domain names/],
    ],
    fallback: null,
  },
  smtpPort: {
    good: [['2525', 2525]],
    bad: [
      ['0', /whole number from 1 to 65535/],
      ['65536', /whole number from 1 to 65535/],
      ['smtp', /whole number/],
    ],
    fallback: 25,
  },
  helo: {
    good: [
      ['probe.example.com', 'probe.example.com'],
      ['[192.0.2.1]', '[192.0.2.1]'],
      ['[IPv6:2001:db8::1]', '[IPv6:2001:db8::1]'],
    ],
    bad: [
      ['a b', /host name such as probe\.example\.com/],
      ['probe.example.com\r\nDATA', /host name/], // It is sent in EHLO.
      ['-probe.example.com', /host name/],
      [`${'a'.repeat(256)}`, /host name/],
    ],
    fallback: hostname(),
  },
  mailFrom: {
    good: [
      ['<>', ''],
      ['probe@example.com', 'probe@example.com'],
      ['<probe@example.com>', 'probe@example.com'],
    ],
    bad: [
      ['probe', /probe@example\.com, or <>/],
      ['a@example.com> SIZE=1', /or <>/],
      ['a@example.com\r\nDATA', /or <>/],
      ['"a b"@example.com', /or <>/],
    ],
    fallback: '',
  },
  sourceAddress: {
    good: [
      ['192.0.2.1', '192.0.2.1'],
      ['2001:db8::1', '2001:db8::1'],
    ],
    bad: [['eth0', /IP address such as 192\.0\.2\.1/]],
    fallback: null,
  },
  proxy: {
    good: [['socks5://user:secret@192.0.2.9:1080', 'socks5://user:secret@192.0.2.9:1080']],
    bad: [
      ['http://192.0.2.9:1080', /socks5:\/\/host:port/],
      ['192.0.2.9:1080', /socks5:\/\/host:port/],
    ],
    fallback: null,
  },
  egress: {
    good: [['office-2', 'office-2']],
    bad: [
      ['a b', /short name/],
      ['a|b', /short name/], // It is part of queue keys.
      ['a'.repeat(64), /short name/],
    ],
    fallback: 'default',
  },
  allowRanges: {
    good: [['127.0.0.0/8,fd00::/8,192.0.2.1', ['127.0.0.0/8', 'fd00::/8', '192.0.2.1']]],
    bad: [
      ['127.0.0.0/33', /CIDRs such as 10\.0\.0\.0\/8/],
      ['fd00::/129', /CIDRs/],
      ['localhost', /CIDRs/],
    ],
    fallback: [],
  },
  specialDomains: { good: SWITCH, bad: [['perhaps', /on or off/]], fallback: false },
  startTls: {
    good: [['never', 'never']],
    bad: [['sometimes', /demanded, always, never/]],
    fallback: 'demanded',
  },
  connectTimeoutMs: { good: [['500', 500]], bad: MS, fallback: 10_000 },
  greetingTimeoutMs: { good: [['500', 500]], bad: MS, fallback: null },
  replyTimeoutMs: { good: [['500', 500]], bad: MS, fallback: null },
  sessionTimeoutMs: { good: [['500', 500]], bad: MS, fallback: null },
  deadlineMs: { good: [['500', 500]], bad: MS, fallback: null },
  sessionsPerOperator: {
    good: [['3', 3]],
    bad: [
      ['0', /from 1 to 1000/],
      ['1001', /from 1 to 1000/],
    ],
    fallback: null,
  },
  recipientsPerSession: { good: [['3', 3]], bad: [['0', /from 1 to 10000/]], fallback: null },
  sessionsPerAddress: { good: [['3', 3]], bad: [['0', /from 1 to 100000/]], fallback: null },
  sessionsPerNetwork: { good: [['300', 300]], bad: [['0', /from 1 to 100000/]], fallback: null },
  sessionsPerSecondPerAddress: {
    good: [['0.5', 0.5]],
    bad: [['0', /number from 0\.001 to/]],
    fallback: null,
  },
  sessionsPerSecondPerNetwork: {
    good: [['50', 50]],
    bad: [['0', /number from 0\.001 to/]],
    fallback: null,
  },
  sessionsPerSecond: {
    good: [
      ['0.5', 0.5],
      ['20', 20],
    ],
    bad: [
      ['0', /number from 0\.001 to/],
      ['', /number from/],
      ['fast', /number from/],
      ['Infinity', /number from/],
    ],
    fallback: null,
  },
  concurrency: { good: [['7', 7]], bad: [['0', /from 1 to 10000/]], fallback: 200 },
  greylistDelayMs: {
    good: [
      ['90', 90_000],
      ['0.5', 500],
    ],
    bad: [
      ['5min', /number from 0 to 86400/],
      ['86401', /number from 0 to 86400/],
    ],
    fallback: null,
  },
  cache: { good: SWITCH, bad: [['warm', /on or off/]], fallback: true },
  feedbackScope: {
    good: [['all', 'all']],
    bad: [['none', /account or all|account, all/]],
    fallback: 'account',
  },
  calibration: { good: SWITCH, bad: [['warm', /on or off/]], fallback: true },
  actionPolicy: {
    good: [['strict', 'strict']],
    bad: [['careful', /balanced, strict, lenient/]],
    fallback: 'balanced',
  },
  signals: {
    good: [['policies, parking', ['policies', 'parking']]],
    bad: [['whois', /policies, parking, typo-network, gravatar/]],
    fallback: [],
  },
  gravatarKey: {
    good: [['0123456789abcdef', '0123456789abcdef']],
    bad: [['short', /at least 16 letters/]],
    fallback: null,
  },
  oidcIssuer: {
    good: [
      ['https://login.example.com', 'https://login.example.com'],
      ['https://id.example.com/realms/shop/', 'https://id.example.com/realms/shop/'],
      ['http://127.0.0.1:4000', 'http://127.0.0.1:4000'],
    ],
    bad: [
      ['http://login.example.com', /https:\/\/host/],
      ['login.example.com', /https:\/\/host/],
      ['https:login.example.com', /https:\/\/host/],
      ['https://login.example.com/.well-known/openid-configuration', /without \/\.well-known/],
      ['https://login.example.com/?a=b', /https:\/\/host/],
      ['https://user:secret@login.example.com', /https:\/\/host/],
    ],
    fallback: null,
  },
  oidcClientId: {
    good: [['ev', 'ev']],
    bad: [['e v', /without spaces/]],
    fallback: null,
  },
  oidcClientSecret: {
    good: [['0123456789abcdef', '0123456789abcdef']],
    bad: [['short', /at least 16 letters/]],
    fallback: null,
  },
  oidcName: {
    good: [['Example Login', 'Example Login']],
    bad: [
      [' ', /1 to 40 characters/],
      ['a'.repeat(41), /1 to 40 characters/],
      ['a\u202eb', /1 to 40 characters/],
    ],
    fallback: null,
  },
  oidcAllowRanges: {
    good: [['10.0.0.0/8', ['10.0.0.0/8']]],
    bad: [['10.0.0.0/33', /CIDRs/]],
    fallback: [],
  },
  disposableFile: { good: [['d.txt', 'd.txt']], bad: SOME_TEXT, fallback: null },
  allowFile: { good: [['a.txt', 'a.txt']], bad: SOME_TEXT, fallback: null },
  blockedFile: { good: [['b.txt', 'b.txt']], bad: SOME_TEXT, fallback: null },
  spamTrapFile: { good: [['t.txt', 't.txt']], bad: SOME_TEXT, fallback: null },
  roleFile: { good: [['r.txt', 'r.txt']], bad: SOME_TEXT, fallback: null },
  listen: {
    good: [
      ['0.0.0.0:443', '0.0.0.0:443'],
      ['[::1]:8080', '[::1]:8080'],
      ['localhost:0', 'localhost:0'],
    ],
    bad: [
      ['8080', /HOST:PORT such as/],
      ['127.0.0.1', /HOST:PORT such as/],
      ['::1:8080', /HOST:PORT such as/],
      ['[127.0.0.1]:80', /HOST:PORT such as/],
      ['127.0.0.1:65536', /HOST:PORT such as/],
    ],
    fallback: '127.0.0.1:8080',
  },
  host: {
    good: [
      ['0.0.0.0', '0.0.0.0'],
      ['::1', '::1'],
      ['[::1]', '::1'],
      ['localhost', 'localhost'],
    ],
    bad: [
      ['127.0.0.1:80', /a host name or an IP address such as/],
      ['http://localhost', /a host name or an IP address such as/],
      ['[localhost]', /a host name or an IP address such as/],
    ],
    fallback: null,
  },
  port: {
    good: [
      ['0', 0],
      ['8081', 8081],
    ],
    bad: [
      ['65536', /a whole number from 0 to 65535/],
      ['http', /a whole number from 0 to 65535/],
    ],
    fallback: null,
  },
  tlsCert: { good: [['cert.pem', 'cert.pem']], bad: SOME_TEXT, fallback: null },
  tlsKey: { good: [['key.pem', 'key.pem']], bad: SOME_TEXT, fallback: null },
  insecureHttp: { good: SWITCH, bad: [['maybe', /on or off/]], fallback: false },
  trustProxy: {
    good: [['192.0.2.0/24, 2001:db8::1', ['192.0.2.0/24', '2001:db8::1']]],
    bad: [['proxy.example.com', /CIDRs such as/]],
    fallback: [],
  },
  baseUrl: {
    good: [
      ['https://ev.example.com/', 'https://ev.example.com'],
      ['http://EV.example.com:8080', 'http://ev.example.com:8080'],
    ],
    bad: [
      ['ev.example.com', /https:\/\/host such as/],
      ['ftp://ev.example.com', /https:\/\/host such as/],
      ['https:ev.example.com', /https:\/\/host such as/],
      ['https://ann@ev.example.com', /https:\/\/host such as/],
      ['https://:secret@ev.example.com', /https:\/\/host such as/],
      ['https://example.com/ev/', /without a path/],
      ['https://ev.example.com/?a', /https:\/\/host such as/],
    ],
    fallback: null,
  },
  work: { good: SWITCH, bad: [['maybe', /on or off/]], fallback: true },
  reacherApi: { good: SWITCH, bad: [['maybe', /on or off/]], fallback: false },
  limits: { good: SWITCH, bad: [['maybe', /on or off/]], fallback: true },
  plan: { good: [['free', 'free']], bad: [['a b', /a short name/]], fallback: 'enterprise' },
  webhookAllowRanges: {
    good: [['127.0.0.0/8', ['127.0.0.0/8']]],
    bad: [['localhost', /CIDRs such as/]],
    fallback: [],
  },
  listAllowRanges: {
    good: [['10.20.0.0/16', ['10.20.0.0/16']]],
    bad: [['localhost', /CIDRs such as/]],
    fallback: [],
  },
  fastSandboxRetries: { good: SWITCH, bad: [['maybe', /on or off/]], fallback: false },
  webhookCaFile: { good: [['ca.pem', 'ca.pem']], bad: SOME_TEXT, fallback: null },
  notifySmtp: {
    good: [
      ['smtp://mail.example.com', 'smtp://mail.example.com'],
      ['smtps://[2001:db8::25]:465/', 'smtps://[2001:db8::25]:465/'],
      ['smtp://localhost:25', 'smtp://localhost:25'],
    ],
    bad: [
      ['mail.example.com', /smtp:\/\/host:port or smtps:\/\/user:password@host:port/],
      ['https://mail.example.com', /smtp:\/\/host:port/],
      ['smtp://', /smtp:\/\/host:port/],
      ['smtp://a b.example', /smtp:\/\/host:port/],
      ['smtp://mail.example.com/?tls=off', /smtp:\/\/host:port/],
      // An unencoded # or / in the password: the rest is not a host.
      ['smtp://ann:12#3', /%23 for a #/],
      ['smtp://ann:12/3', /%2F for a \//],
    ],
    fallback: null,
  },
  notifyFrom: { good: MAILBOX.good, bad: MAILBOX.bad, fallback: null },
  notifyTo: { good: MAILBOX.good, bad: MAILBOX.bad, fallback: null },
  metricsListen: {
    good: [['127.0.0.1:9090', '127.0.0.1:9090']],
    bad: [['9090', /HOST:PORT such as/]],
    fallback: null,
  },
  metricsToken: {
    good: [['0123456789abcdef', '0123456789abcdef']],
    bad: [
      ['0123456789abcde', /at least 16 letters/],
      ['0123456789 abcdef', /without spaces/],
    ],
    fallback: null,
  },
  keepHistoryMs: {
    good: [['7', 7 * 86_400_000]],
    bad: [['-1', /a number from 0 to 3650/]],
    fallback: 90 * 86_400_000,
  },
  minFreeDisk: {
    good: [
      ['250', 250_000_000],
      ['0', 0],
    ],
    bad: [
      ['-1', /a whole number from 0 to 1000000000/],
      ['1 GB', /a whole number/],
    ],
    fallback: 500_000_000,
  },
  secret: {
    good: [['0123456789abcdef', '0123456789abcdef']],
    bad: [['short', /at least 16 letters/]],
    fallback: null,
  },
  secretFile: { good: [['secret', 'secret']], bad: SOME_TEXT, fallback: null },
  databaseConnections: {
    good: [
      ['8', 8],
      ['1000', 1_000],
    ],
    bad: [
      ['7', /a whole number from 8 to 1000/],
      ['1001', /a whole number from 8 to 1000/],
    ],
    fallback: 17,
  },
  externalMaxAgeMs: {
    good: [['7', 7 * 86_400_000]],
    bad: [['-1', /a number from 0 to 3650/]],
    fallback: 90 * 86_400_000,
  },
  externalUnknownMaxAgeMs: {
    good: [['0', 0]],
    bad: [['4000', /a number from 0 to 3650/]],
    fallback: 30 * 86_400_000,
  },
  keepResultsMs: {
    good: [
      ['7', 7 * 86_400_000],
      ['0.5', 43_200_000],
    ],
    bad: [
      ['-1', /a number from 0 to 3650/],
      ['30d', /a number from 0/],
    ],
    fallback: 30 * 86_400_000,
  },
  dataDir: {
    good: [['/var/lib/ev', '/var/lib/ev']],
    bad: SOME_TEXT,
    fallback: join('/home/ann', '.local/share', 'ev'),
  },
  database: {
    good: [
      ['sqlite:/var/lib/ev/lists.sqlite', 'sqlite:/var/lib/ev/lists.sqlite'],
      ...[
        'postgres://ann:s3cr%23t@db.example/ev',
        'postgresql://db.example:5433/ev?sslmode=verify-full',
        'postgres://db.example/ev?host=/run/postgresql',
      ].map((url): [string, string] => [url, url]),
    ],
    bad: [
      ['mysql://db.example', /sqlite:FILE/],
      ['sqlite:', /sqlite:FILE/],
      ['postgres://', /postgres:\/\/USER:PASSWORD@HOST\/NAME/],
      ['postgres://db.example', /postgres:\/\/USER:PASSWORD@HOST\/NAME/],
      // An unencoded # or / in the password.
      ['postgres://ann:s3cr#t@db.example/ev', /%23 for a #/],
      ['postgres://ann:s3cr/t@db.example/ev', /%2F for a \//],
      ['postgres://ann:100%@db.example/ev', /%23 for a #/],
    ],
    fallback: '',
  },
  log: {
    good: [['debug', 'debug']],
    bad: [['loud', /debug, info, warn, error, silent/]],
    fallback: 'info',
  },
  logFormat: { good: [['json', 'json']], bad: [['xml', /pretty, json/]], fallback: null },
}

const HOME = { HOME: '/home/ann' }
const raw = (given: Partial<RawSettings>): RawSettings => ({
  flags: {},
  environment: HOME,
  file: null,
  ...given,
})
const file = (values: Record<string, unknown>) => ({ path: 'ev.config.json', values })
const fileKey = (flag: string) => flag.slice(2)

/** Settings that may be set by a flag. */
const isOpen = ({ isSecret }: { readonly isSecret: boolean }) => !isSecret
const goods = SETTINGS.flatMap(one =>
  ROWS[one.key].good.map(([text, value]) => ({ ...one, text, value })),
)
const bads = SETTINGS.flatMap(one =>
  ROWS[one.key].bad.map(([text, takes]) => ({ ...one, text, takes })),
)

describe('the settings', () => {
  test('each has a row in the table of this test, with valid and invalid texts', () => {
    expect(Object.keys(ROWS).sort()).toEqual(SETTINGS.map(({ key }) => key).sort())
    for (const { key } of SETTINGS) {
      expect(ROWS[key].good.length, key).toBeGreaterThan(0)
      expect(ROWS[key].bad.length, key).toBeGreaterThan(0)
    }
  })

  test.each(SETTINGS.map(one => [one.flag, one] as const))(
    '%s has its default if it is not set',
    (_, { key }) => {
      expect(toConfig(raw({}))[key]).toEqual(ROWS[key].fallback)
    },
  )

  test.each(goods.filter(isOpen))('$flag reads $text as a flag', ({ key, text, value }) => {
    expect(toConfig(raw({ flags: { [key]: text } }))[key]).toEqual(value)
  })

  test.each(goods)('$environment reads $text from the environment', one => {
    const environment = { ...HOME, [one.environment]: one.text }
    expect(toConfig(raw({ environment }))[one.key]).toEqual(one.value)
  })

  test.each(goods)('$flag reads $text from the file', ({ key, flag, text, value }) => {
    expect(toConfig(raw({ file: file({ [fileKey(flag)]: text }) }))[key]).toEqual(value)
  })

  test.each(goods.filter(one => one.isSecret))(
    '$flag is rejected, as process lists show flags, and not repeated',
    ({ key, text, environment }) => {
      const fault = faultOf(raw({ flags: { [key]: text } }))
      expect(fault).toMatchObject({ code: 'usage' })
      expect(fault.message).toMatch(new RegExp(`would show a secret .* ${environment} in`))
      expect(fault.message).not.toContain(text)
    },
  )

  test.each(bads.filter(isOpen))(
    '$flag rejects $text and describes the valid values',
    ({ key, flag, text, takes }) => {
      const fault = faultOf(raw({ flags: { [key]: text } }))
      expect(fault).toMatchObject({ code: 'usage' })
      expect(fault.message).toMatch(new RegExp(`^${flag} is .*; it takes `, 's'))
      expect(fault.message).toMatch(takes)
    },
  )

  test.each(
    // An empty variable counts as not set.
    bads.filter(({ text }) => text !== ''),
  )('$environment rejects $text and names the variable', one => {
    const fault = faultOf(raw({ environment: { ...HOME, [one.environment]: one.text } }))
    expect(fault).toMatchObject({ code: 'bad_config' })
    expect(fault.message).toMatch(new RegExp(`^${one.environment} is .*; it takes `, 's'))
    expect(fault.message).toMatch(one.takes)
  })

  test.each(bads)('$flag rejects $text in the file and names key and file', one => {
    const fault = faultOf(raw({ file: file({ [fileKey(one.flag)]: one.text }) }))
    expect(fault).toMatchObject({ code: 'bad_config' })
    expect(fault.message).toContain(`"${fileKey(one.flag)}" in ev.config.json is `)
    expect(fault.message).toMatch(one.takes)
    if (one.isSecret) expect(fault.message).not.toContain(one.text)
  })
})

test('the signal gravatar needs an API key', () => {
  const flags = { signals: 'gravatar' }
  expect(() => toConfig({ flags, environment: {}, file: null })).toThrow(/EV_GRAVATAR_KEY/)
  const environment = { EV_GRAVATAR_KEY: '0123456789abcdef' }
  expect(toConfig({ flags, environment, file: null }).signals).toEqual(['gravatar'])
})

describe('flags, environment and file', () => {
  const all = {
    flags: { smtpPort: '1' },
    environment: { ...HOME, EV_SMTP_PORT: '2' },
    file: file({ 'smtp-port': 3 }),
  }

  test.each([
    ['a flag wins over everything else', all, 1],
    ['the environment wins over the file', { ...all, flags: {} }, 2],
    ['the file wins over the default', { file: all.file }, 3],
    [
      'an empty variable is not set',
      { environment: { ...HOME, EV_SMTP_PORT: '' }, file: all.file },
      3,
    ],
    ['an omitted flag does not win', { ...all, flags: { smtpPort: undefined } }, 2],
  ] as [string, Partial<RawSettings>, number][])('%s', (_, given, port) => {
    expect(toConfig(raw(given)).smtpPort).toBe(port)
  })

  test('a switch passed as a flag is on', () => {
    expect(toConfig(raw({ flags: { specialDomains: true } })).specialDomains).toBe(true)
  })

  test('a file may contain numbers, booleans and lists', () => {
    const values = { concurrency: 7, cache: false, 'allow-ranges': ['192.0.2.0/24', 'fd00::/8'] }
    expect(toConfig(raw({ file: file(values) }))).toMatchObject({
      concurrency: 7,
      cache: false,
      allowRanges: ['192.0.2.0/24', 'fd00::/8'],
    })
  })

  test.each([
    ['null', null],
    ['an object', { name: 'probe.example.com' }],
    ['a list that contains an object', [{}]],
  ])('%s in the file is refused', (_, value) => {
    const fault = faultOf(raw({ file: file({ helo: value, 'disposable-file': value }) }))
    expect(fault.message).toMatch(
      /^"helo" in ev\.config\.json is .* a string, a number or a list\.$/,
    )
  })

  test.each([
    ['smtpPort', 'Did you mean "smtp-port"?'],
    ['EV_HELO', 'Did you mean "helo"?'],
    ['--mail-from', 'Did you mean "mail-from"?'],
    ['connect-timeout-ms', 'Did you mean "connect-timeout"?'],
    ['threads', ''],
    ['EV_LIST_ALOW_RANGES', 'Did you mean "list-allow-ranges"?'],
  ])('the unknown key %s is refused', (key, meant) => {
    const fault = faultOf(raw({ file: file({ [key]: '1' }) }))
    expect(fault).toMatchObject({ code: 'bad_config' })
    expect(fault.message).toBe(
      `"${key}" in ev.config.json is not a setting of ev.${meant && ` ${meant}`} To list all settings, run "ev config --help-all".`,
    )
  })

  test.each([
    [
      { EV_HELLO: 'probe.example.com' },
      'EV_HELLO in the environment is not a setting of ev. Did you mean EV_HELO? ',
    ],
    [{ EV_Port: '1' }, 'EV_Port in the environment is not a setting of ev. Did you mean EV_PORT? '],
    [{ EV_QQ: '1' }, 'EV_QQ in the environment is not a setting of ev. '],
    [
      { EV_METRIC_TOKEN: 's3cret', EV_QQ: '1', EV_SERCET: 's3cret' },
      'EV_METRIC_TOKEN, EV_QQ and EV_SERCET in the environment are not settings of ev. Did you mean EV_METRICS_TOKEN and EV_SECRET? ',
    ],
  ])('the unknown variables of %j are refused, without their values', (unknown, sentences) => {
    const fault = faultOf(raw({ environment: { ...HOME, ...unknown } }))
    expect(fault).toMatchObject({ code: 'bad_config' })
    expect(fault.message).toBe(`${sentences}To list all settings, run "ev config --help-all".`)
  })

  test('an unknown variable without a value, and those of clients and commands, are allowed', () => {
    const environment = {
      ...HOME,
      EV_HELLO: '',
      EV_KEY: 'ev_live_x',
      EV_URL: 'https://ev.example.com',
      EV_HOME: '/opt/ev',
      EV_WEBHOOK_SECRET: 'whsec_x',
      EV_CONFIG: 'ev.json',
      EVENT: '1',
    }
    expect(toConfig(raw({ environment })).helo).toBe(hostname())
  })

  test('no setting is taken for a variable of Kubernetes or Docker', () => {
    const environment = Object.fromEntries(SETTINGS.map(one => [one.environment, '1']))
    expect(findServiceLinks(environment)).toEqual([])
  })

  describe('host and port of the listen address', () => {
    test.each<[string, Partial<RawSettings>, string]>([
      ['a port in the environment', { environment: { EV_PORT: '3000' } }, '127.0.0.1:3000'],
      ['a host in the file', { file: file({ host: '::' }) }, '[::]:8080'],
      [
        'a port in the environment changes the address of the file',
        { environment: { EV_PORT: '3000' }, file: file({ listen: '0.0.0.0:443' }) },
        '0.0.0.0:3000',
      ],
      [
        'a listen address as a flag wins over a port in the environment',
        { flags: { listen: '[::1]:443' }, environment: { EV_PORT: '3000' } },
        '[::1]:443',
      ],
      [
        'host and port come from different sources',
        { flags: { port: '1' }, environment: { EV_HOST: 'localhost' }, file: file({ port: 2 }) },
        'localhost:1',
      ],
      [
        'a port in the environment changes the address that an image sets there',
        { environment: { EV_LISTEN: '0.0.0.0:8080', EV_PORT: '9000' } },
        '0.0.0.0:9000',
      ],
      [
        'the same port twice is no contradiction',
        { file: file({ listen: '0.0.0.0:443', port: 443 }) },
        '0.0.0.0:443',
      ],
    ])('%s', (_, given, listen) => {
      expect(toConfig(raw(given)).listen).toBe(listen)
    })

    test.each<[Partial<RawSettings>, string]>([
      [{ flags: { listen: '0.0.0.0:1', port: '2' } }, '--port and --listen exclude'],
      [
        { file: file({ listen: '0.0.0.0:1', port: 2 }) },
        '"port" and "listen" in ev.config.json exclude',
      ],
    ])('that contradict it are refused: %j', (given, message) => {
      expect(faultOf(raw(given)).message).toContain(message)
    })
  })

  test('a password in a bad URL is not repeated', () => {
    const fault = faultOf(
      raw({ environment: { ...HOME, EV_PROXY: 'http://ann:s3cret@192.0.2.9' } }),
    )
    expect(fault.message).toContain('EV_PROXY is "…@192.0.2.9"')
    expect(fault.message).not.toContain('s3cret')
  })

  test.each([
    'postgres://ann:s3cret#@db.example/ev',
    'postgres://ann:s3cret',
    'postgres:ann:s3cret@db.example/ev',
    'postgres://db.example?password=s3cret',
  ])('the password of a database is not repeated, anywhere in %s', url => {
    const given = [
      raw({ flags: { database: url } }),
      raw({ environment: { ...HOME, EV_DATABASE: url } }),
      raw({ file: file({ database: url }) }),
    ]
    for (const one of given) {
      const { message } = faultOf(one)
      expect(message).toMatch(/is "postgres:…"; it takes sqlite:FILE or postgres:/)
      expect(message).not.toMatch(/s3cret|ann/)
    }
  })

  describe('a mail server with credentials', () => {
    const url = 'smtps://ann%40shop:s3cr%23t@mail.example.com'

    test('is taken from the environment and the file', () => {
      expect(toConfig(raw({ environment: { EV_NOTIFY_SMTP: url } })).notifySmtp).toBe(url)
      expect(toConfig(raw({ file: file({ 'notify-smtp': url }) })).notifySmtp).toBe(url)
    })

    test.each([url, 'ann:s3cr%23t@mail.example.com', 'smtp://ann@mail.example.com'])(
      'is refused as the flag %s, as process lists show flags, and not repeated',
      given => {
        const fault = faultOf(raw({ flags: { notifySmtp: given } }))
        expect(fault).toMatchObject({ code: 'usage' })
        expect(fault.message).toMatch(
          /^--notify-smtp would show a secret .* EV_NOTIFY_SMTP in .* "notify-smtp" in the config/s,
        )
        expect(fault.message).not.toMatch(/ann|s3cr/)
      },
    )

    test.each([
      'ann:s3cret@mail.example.com',
      'smtp://ann:s3cret', // The host was forgotten.
      'smtp://ann:99#s3cret@mail.example.com',
      'smtp://ann:99/s3cret@mail.example.com',
      'smtp://ann:99?s3cret@mail.example.com',
      'smtp://ann:100%s3cret@mail.example.com',
      'smtp://ann:s3cret%0D%0A@mail.example.com',
      'smtp://ann:s3cret@',
      'smtp://ann@mail.example.com',
      'smtp://:s3cret@mail.example.com',
    ])('is not repeated if it is invalid: %s', given => {
      for (const where of [
        { environment: { ...HOME, EV_NOTIFY_SMTP: given } },
        { file: file({ 'notify-smtp': given }) },
      ]) {
        const fault = faultOf(raw(where))
        expect(fault.message).toMatch(/notify.smtp"? .*is invalid; it takes smtp:/i)
        expect(fault.message).not.toMatch(/ann|s3cret/)
      }
    })
  })

  test('the data directory follows XDG_DATA_HOME', () => {
    const environment = { ...HOME, XDG_DATA_HOME: '/data' }
    expect(toConfig(raw({ environment })).dataDir).toBe(join('/data', 'ev'))
  })

  test('the configuration is frozen, lists included', () => {
    const config = toConfig(raw({ flags: { dns: '192.0.2.53' } }))
    expect(() => Object.assign(config, { smtpPort: 1 })).toThrow(TypeError)
    expect(() => (config.dns as string[]).push('192.0.2.54')).toThrow(TypeError)
    expect(() => (config.allowRanges as string[]).push('0.0.0.0/0')).toThrow(TypeError)
  })
})

describe('fixed names', () => {
  // Scripts depend on them: names may be added, but not renamed.
  test.each([
    ['--data-dir', 'EV_DATA_DIR'],
    ['--database', 'EV_DATABASE'],
    ['--database-connections', 'EV_DATABASE_CONNECTIONS'],
    ['--dns', 'EV_DNS'],
    ['--smtp-port', 'EV_SMTP_PORT'],
    ['--helo', 'EV_HELO'],
    ['--mail-from', 'EV_MAIL_FROM'],
    ['--source-address', 'EV_SOURCE_ADDRESS'],
    ['--proxy', 'EV_PROXY'],
    ['--egress', 'EV_EGRESS'],
    ['--allow-ranges', 'EV_ALLOW_RANGES'],
    ['--special-domains', 'EV_SPECIAL_DOMAINS'],
    ['--connect-timeout', 'EV_CONNECT_TIMEOUT'],
    ['--greeting-timeout', 'EV_GREETING_TIMEOUT'],
    ['--reply-timeout', 'EV_REPLY_TIMEOUT'],
    ['--session-timeout', 'EV_SESSION_TIMEOUT'],
    ['--deadline', 'EV_DEADLINE'],
    ['--sessions-per-operator', 'EV_SESSIONS_PER_OPERATOR'],
    ['--recipients-per-session', 'EV_RECIPIENTS_PER_SESSION'],
    ['--sessions-per-second', 'EV_SESSIONS_PER_SECOND'],
    ['--concurrency', 'EV_CONCURRENCY'],
    ['--greylist-delay', 'EV_GREYLIST_DELAY'],
    ['--cache', 'EV_CACHE'],
    ['--disposable-file', 'EV_DISPOSABLE_FILE'],
    ['--allow-file', 'EV_ALLOW_FILE'],
    ['--listen', 'EV_LISTEN'],
    ['--tls-cert', 'EV_TLS_CERT'],
    ['--tls-key', 'EV_TLS_KEY'],
    ['--insecure-http', 'EV_INSECURE_HTTP'],
    ['--trust-proxy', 'EV_TRUST_PROXY'],
    ['--base-url', 'EV_BASE_URL'],
    ['--limits', 'EV_LIMITS'],
    ['--plan', 'EV_PLAN'],
    ['--webhook-allow-ranges', 'EV_WEBHOOK_ALLOW_RANGES'],
    ['--list-allow-ranges', 'EV_LIST_ALLOW_RANGES'],
    ['--metrics-listen', 'EV_METRICS_LISTEN'],
    ['--metrics-token', 'EV_METRICS_TOKEN'],
    ['--keep-results', 'EV_KEEP_RESULTS'],
    ['--keep-history', 'EV_KEEP_HISTORY'],
    ['--min-free-disk', 'EV_MIN_FREE_DISK'],
    ['--secret', 'EV_SECRET'],
    ['--secret-file', 'EV_SECRET_FILE'],
    ['--log', 'EV_LOG'],
    ['--log-format', 'EV_LOG_FORMAT'],
  ])('%s is also %s', (flag, environment) => {
    expect(SETTINGS.find(one => one.flag === flag)?.environment).toBe(environment)
  })

  test('no two settings share one', () => {
    const names = SETTINGS.flatMap(({ flag, environment }) => [flag, environment])
    expect(new Set(names).size).toBe(names.length)
  })
})

function faultOf(given: RawSettings): EvError {
  try {
    toConfig(given)
  } catch (error) {
    if (error instanceof EvError) return error
    throw error
  }
  throw new Error('it was taken')
}

describe('egresses of the config file', () => {
  const egresses = (value: unknown, flags = {}) =>
    toConfig(raw({ flags, file: file({ egresses: value, helo: 'all.example.com' }) })).egresses

  test('default to one, built from the settings', () => {
    const config = toConfig(raw({ flags: { helo: 'a.example.com', egress: 'office' } }))
    expect(config.egresses).toEqual([
      { name: 'office', helo: 'a.example.com', mailFrom: '', sourceAddress: null, proxy: null },
    ])
  })

  test('inherit omitted fields from the settings', () => {
    const two = [
      { name: 'a', 'source-address': '192.0.2.1' },
      { name: 'b', mailFrom: 'x@y.test' },
    ]
    expect(egresses(two)).toEqual([
      {
        name: 'a',
        helo: 'all.example.com',
        mailFrom: '',
        sourceAddress: '192.0.2.1',
        proxy: null,
      },
      {
        name: 'b',
        helo: 'all.example.com',
        mailFrom: 'x@y.test',
        sourceAddress: null,
        proxy: null,
      },
    ])
  })

  test('are all used unless one is selected by name', () => {
    const two = [{ name: 'a' }, { name: 'b' }]
    expect(egresses(two).map(({ name }) => name)).toEqual(['a', 'b'])
    expect(egresses(two, { egress: 'b' }).map(({ name }) => name)).toEqual(['b'])
  })

  test.each([
    [{}, /takes a list such as/],
    [[], /takes a list such as/],
    [['a'], /takes an object such as/],
    [[{ helo: 'a.example.com' }], /takes a "name" in each entry; entry 1 has none/],
    [[{ name: 'a' }, { name: 'a' }], /"a" is used twice/],
    [[{ name: 'a', hello: 'x' }], /takes no "hello", only name, helo, mail-from/],
    [[{ name: 'a', helo: 'x y' }], /in "helo" a host name such as .*, not "x y"/],
    [[{ name: 'a', proxy: 'http://u:pw@h' }], /in "proxy" socks5:.*, not "…@h"/],
  ])('%j is refused', (value, says) => {
    const fault = faultOf(raw({ file: file({ egresses: value }) }))
    expect(fault.code).toBe('bad_config')
    expect(fault.message).toMatch(says)
    expect(fault.message).not.toContain('pw@')
  })

  test('a selected egress that does not exist is refused', () => {
    const given = raw({ flags: { egress: 'c' }, file: file({ egresses: [{ name: 'a' }] }) })
    const fault = faultOf(given)
    expect(fault.message).toMatch(/takes an egress named "c", which was selected; it has only a\./)
    expect(fault.code).toBe('usage')
  })
})

describe('operators of the config file', () => {
  const operators = (value: unknown) =>
    toConfig(raw({ file: file({ operators: value, egresses: [{ name: 'a' }, { name: 'b' }] }) }))
      .operators

  test('omitted fields keep their value', () => {
    expect(operators({ google: { 'sessions-per-operator': 1, egresses: ['b'] } })).toEqual({
      google: {
        hosts: [],
        title: null,
        truth: null,
        sessionsPerOperator: 1,
        recipientsPerSession: null,
        sessionsPerSecond: null,
        egresses: ['b'],
      },
    })
  })

  test('a custom operator is matched by its host suffixes', () => {
    const parsed = operators({ acme: { hosts: ['.MX.acme.example'], truth: 'accepts-all' } })
    expect(parsed.acme).toMatchObject({ hosts: ['mx.acme.example'], truth: 'accepts-all' })
  })

  test.each([
    [[], /takes an object such as/],
    [{ google: 1 }, /for "google" an object/],
    [{ 'a b': {} }, /a short name/],
    [{ google: { sessions: 1 } }, /for "google" no "sessions", only hosts, title/],
    [{ google: { 'sessions-per-operator': 0 } }, /a whole number from 1 to 1000, not 0/],
    [{ google: { truth: 'lies' } }, /tells, accepts-all, tenant, gateway, parked, not "lies"/],
    [{ google: { egresses: ['c'] } }, /in "egresses" a, b, not \["c"\]/],
    [{ acme: { hosts: ['com'] } }, /host name suffixes such as/],
  ])('%j is refused', (value, says) => {
    const fault = faultOf(
      raw({ file: file({ operators: value, egresses: [{ name: 'a' }, { name: 'b' }] }) }),
    )
    expect(fault.message).toMatch(says)
  })
})

describe('plans and limits of the config file', () => {
  const given = (values: Record<string, unknown>) => toConfig(raw({ file: file(values) }))

  test('omitted fields of a plan are left out', () => {
    expect(given({ plans: { starter: { requests: 5, per: 'minute' } } }).plans).toEqual({
      starter: { requests: 5, perMs: 60_000 },
    })
    expect(given({ plans: { free: { 'credits-per-day': null } } }).plans).toEqual({
      free: { creditsPerDay: null },
    })
    const planLimits = { 'concurrent-jobs': 4, 'stored-rows': null, 'stored-feedback': 9 }
    expect(given({ plans: { free: planLimits } }).plans).toEqual({
      free: { concurrentJobs: 4, storedRows: null, storedFeedback: 9 },
    })
  })

  test('limits of a client address are read by name', () => {
    expect(given({ 'ip-limits': { 'single-per-minute': 5, 'bulk-per-hour': 2 } }).ipLimits).toEqual(
      { singlePerMinute: 5, bulkPerHour: 2 },
    )
    expect(given({}).ipLimits).toEqual({})
  })

  test.each([
    [{ plans: [] }, /"plans" in .* takes an object such as/],
    [{ plans: { free: { requests: 0 } } }, /for "free" in "requests" a whole number from 1/],
    [{ plans: { free: { per: 'day' } } }, /in "per" second, minute, not "day"/],
    [
      { plans: { free: { credits: 1 } } },
      /only requests, per, credits-per-day, concurrent-jobs, stored-rows, stored-feedback/,
    ],
    [{ plans: { 'a b': {} } }, /a short name/],
    [{ 'ip-limits': { single: 1 } }, /only single-per-minute, bulk-per-hour/],
    [{ 'ip-limits': { 'bulk-per-hour': 'ten' } }, /in "bulk-per-hour" a whole number/],
  ])('%j is refused', (values, says) => {
    const fault = faultOf(raw({ file: file(values) }))
    expect(fault.code).toBe('bad_config')
    expect(fault.message).toMatch(says)
  })
})
