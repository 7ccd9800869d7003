import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  MESSAGE_BYTES_MAX,
  parseReportMessage,
} from '../../../src/feedback/formats/report-message.ts'
import { fc, runs } from '../../support/property.ts'

const NOW = Date.parse('2026-11-23T12:00:00Z')
const FOLDER = new URL('../../../fixtures/feedback/', import.meta.url)
const read = (name: string) => readFileSync(new URL(`${name}.eml`, FOLDER))
const SAMPLES = ['rfc3464-failed', 'postfix-failed', 'rfc5965-abuse'].map(read)

describe('a delivery status notification', () => {
  test('of RFC 3464 §E.1 is a bounce with a temporary code', async () => {
    expect(await parseReportMessage(read('rfc3464-failed'), NOW)).toEqual([
      {
        ...{ address: 'louisl@larry.slip.umd.edu', kind: 'bounced' },
        ...{ code: 426, enhancedCode: '4.0.0', text: 'connection timed out' },
        occurredAt: Date.parse('2026-07-07T21:15:49Z'),
      },
    ])
  })

  test('of Postfix has one bounce for each failed recipient, and none for a delay', async () => {
    const occurredAt = Date.parse('2026-11-16T10:00:00Z')
    expect(await parseReportMessage(read('postfix-failed'), NOW)).toEqual([
      {
        ...{ address: 'gone@example.com', kind: 'bounced', code: 550, enhancedCode: '5.1.1' },
        text: '<gone@example.com>: Recipient address rejected: User unknown in virtual mailbox table',
        occurredAt,
      },
      {
        ...{ address: 'full@example.com', kind: 'bounced', code: 552, enhancedCode: '5.2.2' },
        ...{ text: 'Mailbox full', occurredAt },
      },
    ])
  })
})

test('the abuse report of RFC 5965 §B.2 is a complaint', async () => {
  expect(await parseReportMessage(read('rfc5965-abuse'), NOW)).toEqual([
    {
      ...{ address: 'user@example.com', kind: 'complained' },
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
  const group = 'Final-Recipient: rfc822; a@b.example\nAction: failed\nStatus: 5.1.1\n\n'
  const fields = `Reporting-MTA: dns; a.example\n\n${group.repeat(50_000)}`
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
    { numRuns: runs(10_000) },
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
