import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseFeedback } from '../../../src/feedback/feedback.ts'
import {
  MESSAGE_BYTES_MAX,
  parseReportMessage,
} from '../../../src/feedback/formats/report-message.ts'
import { fc, runs } from '../../support/property.ts'

const NOW = Date.parse('2026-11-23T12:00:00Z')
const FOLDER = new URL('../../../fixtures/feedback/', import.meta.url)
const read = (name: string) => readFileSync(new URL(`${name}.eml`, FOLDER))
const SAMPLES = [
  ...['rfc3464-failed', 'postfix-failed', 'rfc6533-failed', 'rfc5965-abuse'],
  ...['opensmtpd-failed', 'sendmail-alias', 'exim-alias'],
].map(read)

describe('a delivery status notification', () => {
  test('of RFC 3464 §E.1 is a bounce with a temporary code', async () => {
    expect(await parseReportMessage(read('rfc3464-failed'), NOW)).toEqual([
      {
        address: 'louisl@larry.slip.umd.edu',
        kind: 'bounced',
        code: 426,
        enhancedCode: null,
        text: 'connection timed out',
        sender: 'owner-info-mime@cs.utk.edu',
        occurredAt: Date.parse('2026-07-07T21:15:49Z'),
      },
    ])
  })

  test('of Postfix has one bounce for each failed recipient, and none for a delay', async () => {
    const occurredAt = Date.parse('2026-11-16T10:00:00Z')
    expect(await parseReportMessage(read('postfix-failed'), NOW)).toEqual([
      {
        address: 'gone@example.com',
        kind: 'bounced',
        code: 550,
        enhancedCode: '5.1.1',
        text: '<gone@example.com>: Recipient address rejected: User unknown in virtual mailbox table',
        sender: 'news@example.net',
        occurredAt,
      },
      {
        address: 'full@example.com',
        kind: 'bounced',
        code: 552,
        enhancedCode: '5.2.2',
        text: 'Mailbox full',
        sender: 'news@example.net',
        occurredAt,
      },
    ])
  })
})

describe('a report as a mail server writes it', () => {
  /** The address and the outcome of each piece of feedback. */
  async function outcomesOf(name: string) {
    const items = await parseReportMessage(read(name), NOW)
    return items.map(item => {
      const feedback = parseFeedback(item, NOW)
      return typeof feedback === 'string' ? feedback : [feedback.addressKey, feedback.outcome]
    })
  }

  test('of OpenSMTPD has the replies in the text for people', async () => {
    expect(await outcomesOf('opensmtpd-failed')).toEqual([
      ['gone@example.com', 'dead'],
      ['refused@example.com', null],
      ['full@example.com', null],
    ])
  })

  test('of Sendmail names the recipients of an alias in a field of its own', async () => {
    expect(await outcomesOf('sendmail-alias')).toEqual([
      ['full@example.com', null],
      ['gone@example.com', 'dead'],
    ])
  })

  test('of Exim repeats an alias without its recipients, and says nothing about them', async () => {
    expect(await outcomesOf('exim-alias')).toEqual([])
  })
})

describe('of a report', () => {
  /** The address and the outcome of each piece of feedback; null: nothing about the mailbox. */
  async function outcomes(...groups: (readonly string[])[]) {
    return await outcomesFor('news@b.test', ...groups)
  }

  async function outcomesFor(sender: string, ...groups: (readonly string[])[]) {
    const recipients = groups.map(fields => [...fields, 'Action: failed'].join('\n'))
    const status = ['Reporting-MTA: dns; out.example', ...recipients].join('\n\n')
    const message = wrapped(`Content-Type: message/delivery-status\n\n${status}\n`)
    const items = await parseReportMessage(Buffer.from(`To: ${sender}\n${message}`), NOW)
    return items.map(item => {
      const feedback = parseFeedback(item, NOW)
      return typeof feedback === 'string' ? feedback : [feedback.addressKey, feedback.outcome]
    })
  }
  const final = (address: string) => `Final-Recipient: rfc822;${address}`
  const original = (address: string) => `Original-Recipient: rfc822;${address}`
  const STATUS = 'Status: 5.1.1 (bad destination mailbox address)'
  const UNKNOWN = ['Status: 5.1.1', 'Diagnostic-Code: smtp; 550 5.1.1 User unknown']

  test.each<[string, readonly string[], 'dead' | null]>([
    ['a status without a cause says nothing', ['Status: 5.0.0'], null],
    ['nor does one with a comment', ['Status: 5.0.0 (permanent failure)'], null],
    ['nor does another class', ['Status: 5.3.0'], null],
    ['nor does a bare code', ['Status: 5.0.0', 'Diagnostic-Code: smtp; 550'], null],
    ['nor does a code in a private field', ['Status: 5.0.0', 'X-Info: smtp; 550 5.1.1 x'], null],
    ['a status with a cause counts', [STATUS], 'dead'],
    ['beside a reply, it does not', [STATUS, 'Diagnostic-Code: smtp; 550 Message rejected'], null],
    ['nor beside a bare code', [STATUS, 'Diagnostic-Code: smtp; 550'], null],
    ['a reply counts', ['Status: 5.0.0', 'Diagnostic-Code: smtp; 550 User unknown'], 'dead'],
    [
      'a reply after the words of the sending server counts',
      [
        'Status: 5.0.0',
        'Diagnostic-Code: smtp; SMTP error from remote mail server after RCPT TO:<ann@a.test>: 550 No such user',
      ],
      'dead',
    ],
    [
      'also if no colon precedes it',
      [
        'Status: 5.0.0',
        'Diagnostic-Code: SMTP; SMTP error, RCPT TO: Host a.test(192.0.2.1) RCPT TO said 550 No such user here',
      ],
      'dead',
    ],
  ])('%s', async (_, fields, outcome) => {
    expect(await outcomes([final('ann@a.test'), ...fields])).toEqual([['ann@a.test', outcome]])
  })

  test.each<[string, 'dead' | null]>([
    [`5.1.0 - Unknown address error 550-'5.7.1 <news@b.test>... Access denied'`, null],
    [`5.1.0 - Unknown address error 550-'Message rejected'`, null],
    [`5.1.0 - Unknown address error 554-'5.7.1 Listed by an RBL (see "why")'`, null],
    [`5.1.1 - Bad destination email address 550-"maximum line length is 998"`, null],
    [`5.1.2 - Bad destination host 'DNS Hard Error looking up a.test (MX): NXDOMAIN'`, null],
    [`5.4.7 - Delivery expired (message too old) 'timeout'`, null],
    ['5.1.0 - Unknown address error', null],
    [`5.1.0 - Unknown address error 550-'5.1.1 User unknown'`, 'dead'],
    [`5.3.0 - Other mail system problem 550-'No such user here'`, 'dead'],
    [`Remote server returned '550 5.1.1 No such user'`, 'dead'],
    [`Remote server returned '554 5.7.1 Refused'`, null],
    ['550 5.1.351 Remote server returned unknown recipient -> 550 Refused', null],
    ['550 5.4.300 Message expired -> 450 4.1.1 User unknown', null],
    ['550 5.1.351 Remote server returned unknown recipient -> 550 5.1.1 No such user', 'dead'],
  ])('the label of a gateway is not the reply: %s', async (label, outcome) => {
    const diagnostic = `Diagnostic-Code: smtp; ${label} (delivery attempts: 0)`
    const fields = [final('ann@a.test'), 'Status: 5.1.1 (bad destination mailbox)', diagnostic]
    const [piece] = await outcomes(fields)
    // Without a label, the status is that of the server.
    expect(piece).toEqual(['ann@a.test', outcome])
  })

  test('a reply that names the sender of the message, and not the recipient, is about the sender', async () => {
    const fields = (text: string) => [
      final('ann@a.test'),
      'Status: 5.1.1',
      `Diagnostic-Code: smtp; 550 5.1.1 ${text}`,
    ]
    expect(await outcomes(fields('<news@b.test>: no such user'))).toEqual([['ann@a.test', null]])
    expect(await outcomes(fields('<ann@a.test>: no such user (from news@b.test)'))).toEqual([
      ['ann@a.test', 'dead'],
    ])
  })

  test.each([
    ['list-bounces+ann=a.test@b.test'],
    ['prvs=1234567890=news@b.test'],
    ['SRS0=abcd=12=c.test=news@b.test'],
  ])('the sender may be %s', async sender => {
    const fields = (text: string) => [
      final('ann@a.test'),
      `Diagnostic-Code: smtp; 550 5.1.1 ${text}`,
    ]
    expect(await outcomesFor(sender, fields(`<${sender}>: no such user`))).toEqual([
      ['ann@a.test', null],
    ])
    expect(await outcomesFor(sender, fields(`no such user, from=${sender}`))).toEqual([
      ['ann@a.test', null],
    ])
  })

  test('the outcome of forwarded mail belongs to the address that was mailed', async () => {
    const forwarded = [original('ann@a.test'), final('ann.lee@b.test'), ...UNKNOWN]
    expect(await outcomes(forwarded)).toEqual([['ann@a.test', 'dead']])
    const unparsed = [original('ann@localhost..'), final('ann.lee@b.test'), ...UNKNOWN]
    expect(await outcomes(unparsed)).toEqual([['ann.lee@b.test', 'dead']])
    const unknown = [original('unknown'), final('ann.lee@b.test'), ...UNKNOWN]
    expect(await outcomes(unknown)).toEqual([['ann.lee@b.test', 'dead']])
  })

  test('an address that its server reports twice for one recipient stands for that one', async () => {
    const actual = 'X-Actual-Recipient: rfc822; ann@mail.a.test'
    const once = [final('ann@a.test'), actual, ...UNKNOWN]
    expect(await outcomes(once, once)).toEqual([
      ['ann@a.test', 'dead'],
      ['ann@a.test', 'dead'],
    ])
  })

  test('recipients without an empty line between them each have their outcome', async () => {
    const full = [final('bob@a.test'), original('bob@a.test'), 'Action: failed', 'Status: 5.2.2']
    const gone = [final('ann@a.test'), original('ann@a.test'), ...UNKNOWN]
    const expected = [
      ['bob@a.test', null],
      ['ann@a.test', 'dead'],
    ]
    expect(await outcomes([...full, ...gone])).toEqual(expected)
    const actionFirst = ['Action: failed', 'Status: 5.2.2', final('bob@a.test')]
    expect(
      await outcomes([...actionFirst, 'Action: failed', ...UNKNOWN, final('ann@a.test')]),
    ).toEqual(expected)
  })

  test.each([
    ['Final-Recipient : rfc/822;ann@a.test'],
    ['Original-Recipient: <ann@a.test>'],
    ['Final-Recipient: rfc822; ann@a.test (Ann Lee)'],
    ['Final-Recipient: rfc822;SMTP:ann@a.test'],
    ['Final-Recipient: rfc822; mailto:ann@a.test'],
  ])('a recipient may be written as %s', async recipient => {
    expect(await outcomes([recipient, ...UNKNOWN])).toEqual([['ann@a.test', 'dead']])
  })

  test.each([['failed (permanent failure)'], ['Failed;'], ['"failed"'], ['failure'], ['Error']])(
    'a failure may be written as %s',
    async action => {
      const fields = [final('ann@a.test'), `Action: ${action}`, ...UNKNOWN].join('\n')
      const message = wrapped(`Content-Type: message/delivery-status\n\n${fields}\n`)
      expect(await parseReportMessage(Buffer.from(message), NOW)).toMatchObject([
        { address: 'ann@a.test', kind: 'bounced' },
      ])
    },
  )

  test('fields about the message may be missing', async () => {
    const fields = [original('ann@a.test'), 'Action: failed', ...UNKNOWN].join('\n')
    const message = wrapped(`Content-Type: message/delivery-status\n\n${fields}\n`)
    expect(await parseReportMessage(Buffer.from(message), NOW)).toMatchObject([
      { address: 'ann@a.test', kind: 'bounced' },
    ])
  })

  test('one failed recipient of several does not speak for the address of all', async () => {
    const bob = [original('sales@a.test'), final('bob@a.test'), ...UNKNOWN]
    const eve = [original('sales@a.test'), final('eve@a.test'), 'Action: delivered']
    expect(await outcomes(bob, eve)).toEqual([
      ['bob@a.test', 'dead'],
      ['eve@a.test', 'alive'],
    ])
  })
})

describe('a notification with international addresses (RFC 6533)', () => {
  const occurredAt = Date.parse('2026-11-16T10:00:00Z')
  const failed = { kind: 'bounced', code: null, enhancedCode: '5.1.1', text: '', occurredAt }
  const arrivedAt = 'Arrival-Date: Mon, 16 Nov 2026 10:00:00 +0000'

  test('has addresses in UTF-8 and with escapes, and ignores what is no character', async () => {
    const sender = 'news@example.net'
    expect(await parseReportMessage(read('rfc6533-failed'), NOW)).toEqual([
      {
        ...failed,
        sender,
        address: 'δοκιμή@παράδειγμα.δοκιμή',
        code: 550,
        text: '<δοκιμή@παράδειγμα.δοκιμή>: άγνωστος χρήστης',
      },
      { ...failed, sender, address: 'jürgen+news@example.com' },
      { ...failed, sender, address: 'ann@example.com', kind: 'delivered', enhancedCode: '2.1.5' },
      { ...failed, sender, address: String.raw`half\x{D800}@example.com` },
    ])
  })

  test.each([
    ['base64', (fields: string) => Buffer.from(fields).toString('base64')],
    ['quoted-printable', (fields: string) => fields.replaceAll('ü', '=C3=BC')],
  ])('may be encoded as %s', async (encoding, encode) => {
    const fields = `Reporting-MTA: dns; a.example\n${arrivedAt}\n\nFinal-Recipient: utf-8; jürgen@example.com\nAction: failed\nStatus: 5.1.1\n`
    const part = `Content-Type: message/global-delivery-status\nContent-Transfer-Encoding: ${encoding}`
    const message = Buffer.from(wrapped(`${part}\n\n${encode(fields)}`))
    expect(await parseReportMessage(message, NOW)).toEqual([
      { ...failed, address: 'jürgen@example.com' },
    ])
  })

  test.each([
    [String.raw`utf-8;\x{5B89}\x{1F600}@example.com`, '安😀@example.com'],
    [String.raw`UTF-8 ; <j\x{fc}rgen@example.com>`, 'jürgen@example.com'],
    // The escapes belong to the type utf-8 only.
    [String.raw`rfc822;j\x{FC}rgen@example.com`, String.raw`j\x{FC}rgen@example.com`],
    [String.raw`utf-8;j\x{110000}@example.com`, String.raw`j\x{110000}@example.com`],
  ])('the recipient %s is %s', async (recipient, address) => {
    const fields = `Reporting-MTA: dns; a.example\n\nFinal-Recipient: ${recipient}\nAction: failed\nStatus: 5.1.1`
    const message = Buffer.from(wrapped(`Content-Type: message/delivery-status\n\n${fields}\n`))
    expect(await parseReportMessage(message, NOW)).toMatchObject([{ address }])
  })
})

test.each(['message/rfc822', 'message/global', 'message/global-headers', 'text/rfc822-headers'])(
  'an abuse report without recipient takes it from the reported message, of type %s',
  async type => {
    const report = 'Content-Type: message/feedback-report\n\nFeedback-Type: abuse\n'
    const original = `Content-Type: ${type}\n\nTo: <jürgen@example.com>\nSubject: News\n`
    const message = Buffer.from(wrapped(`${report}\n--x\n${original}`))
    expect(await parseReportMessage(message, NOW)).toMatchObject([
      { address: 'jürgen@example.com', kind: 'complained' },
    ])
  },
)

test.each<[string, readonly string[], string, readonly string[]]>([
  [
    'of several recipients',
    ['<ann@a.test>', 'bob@a.test', 'ann@a.test'],
    'x@a.test',
    ['ann@a.test', 'bob@a.test'],
  ],
  ['of a redacted recipient', ['redacted@a.test'], 'redacted@a.test', []],
  ['of a redacted message', [], 'redacted@a.test', []],
])('an abuse report %s names whom it names', async (_, recipients, to, addresses) => {
  const fields = recipients.map(address => `Original-Rcpt-To: ${address}\n`).join('')
  const report = `Content-Type: message/feedback-report\n\nFeedback-Type: abuse\n${fields}`
  const original = `Content-Type: message/rfc822\n\nTo: ${to}\nSubject: News\n`
  const items = await parseReportMessage(Buffer.from(wrapped(`${report}\n--x\n${original}`)), NOW)
  expect(items.map(({ address }) => address)).toEqual(addresses)
})

test('the abuse report of RFC 5965 §B.2 is a complaint', async () => {
  expect(await parseReportMessage(read('rfc5965-abuse'), NOW)).toEqual([
    {
      address: 'user@example.com',
      kind: 'complained',
      occurredAt: Date.parse('2026-03-08T18:00:00Z'),
    },
  ])
})

test.each([
  ['a message of a person', 'From: a@b.example\nTo: c@d.example\nSubject: Hi\n\nHello\n'],
  ['an empty message', ''],
  ['text', '\u0000\u0001\u0002'],
  ['nested parts without end', nested(2_000)],
])('%s is no report', async (_, text) => {
  expect(await parseReportMessage(Buffer.from(text), NOW)).toEqual([])
})

test('a returned message of any size does not hide the report before it', async () => {
  const large = Buffer.concat([read('postfix-failed'), Buffer.alloc(4 * MESSAGE_BYTES_MAX, 'a')])
  expect(await parseReportMessage(large, NOW)).toHaveLength(2)
})

test('a report with too many recipients is cut', async () => {
  const groups = Array.from(
    { length: 5_000 },
    (_, n) => `Final-Recipient: rfc822; a${n}@b.test\nAction: failed\nStatus: 5.1.1\n\n`,
  )
  const fields = `Reporting-MTA: dns; a.example\n\n${groups.join('')}`
  const message = `Content-Type: message/delivery-status\n\n${fields}`
  const items = await parseReportMessage(Buffer.from(wrapped(message)), NOW)
  expect(items).toHaveLength(1_000)
})

test('mutated reports never throw and never give invalid kinds', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...SAMPLES),
      fc.array(mutation(), { minLength: 1, maxLength: 8 }),
      async (sample, mutations) => {
        const message = mutations.reduce<Uint8Array>((bytes, mutate) => mutate(bytes), sample)
        for (const { kind, address } of await parseReportMessage(message, NOW)) {
          expect(['bounced', 'delivered', 'complained']).toContain(kind)
          expect(address.length).toBeLessThan(1_001)
        }
      },
    ),
    { numRuns: runs(10_000, 40) },
  )
})

type Mutation = (bytes: Uint8Array) => Uint8Array

/** Deletes, repeats, overwrites or inserts bytes, or cuts the message. */
const mutation = (): fc.Arbitrary<Mutation> =>
  fc
    .record({
      kind: fc.constantFrom('delete', 'repeat', 'overwrite', 'insert', 'cut'),
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      length: fc.nat(80),
      bytes: fc.oneof(
        fc.uint8Array({ maxLength: 40 }),
        fc
          .constantFrom('\r\n', '\n\n', '--', ';', ':', '=?utf-8?b?', '\0', 'rfc822;', '%')
          .map(text => Buffer.from(text)),
      ),
    })
    .map(({ kind, at, length, bytes }) => message => {
      const start = Math.floor(at * message.length)
      const [before, part, after] = [
        message.subarray(0, start),
        message.subarray(start, start + length),
        message.subarray(start + length),
      ]
      switch (kind) {
        case 'delete':
          return Buffer.concat([before, after])
        case 'repeat':
          return Buffer.concat([before, part, part, after])
        case 'overwrite':
          return Buffer.concat([before, bytes, after])
        case 'insert':
          return Buffer.concat([before, bytes, part, after])
        default:
          return before
      }
    })

function nested(depth: number): string {
  let text = 'MIME-Version: 1.0\n'
  for (let i = 0; i < depth; i++)
    text += `Content-Type: multipart/mixed; boundary=b${i}\n\n--b${i}\n`
  return text
}

const wrapped = (part: string) =>
  `MIME-Version: 1.0\nContent-Type: multipart/report; boundary=x\n\n--x\n${part}\n--x--\n`
