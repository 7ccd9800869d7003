import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { FeedbackInput, FeedbackKind } from '../../src/feedback/feedback.ts'
import { detectFormat, readFeedback } from '../../src/feedback/import-feedback.ts'

const NOW = Date.parse('2026-11-23T12:00:00Z')
const POSTFIX = readFileSync(
  new URL('../../fixtures/feedback/postfix-failed.eml', import.meta.url),
  'latin1',
)

/** Reads a text in chunks of a size that cuts lines. */
async function read(text: string, kind: FeedbackKind | null = null) {
  async function* source() {
    for (let at = 0; at < text.length; at += 700) yield Buffer.from(text.slice(at, at + 700))
  }
  const items: FeedbackInput[] = []
  let ignored = 0
  for await (const batch of readFeedback(source(), { now: NOW, kind })) {
    items.push(...batch.items)
    ignored += batch.ignored
  }
  return { items, ignored }
}

test.each([
  ['csv', 'email,event\na@b.example,bounced\n'],
  ['csv', 'a@b.example\n'],
  ['ndjson', '{"email":"a@b.example"}\n'],
  ['mbox', 'From MAILER-DAEMON Mon Nov 16 10:00:05 2026\nSubject: x\n'],
  ['message', 'Return-Path: <>\nReceived: from x\n\n'],
  ['message', POSTFIX],
])('detects %s', (format, text) => {
  expect(detectFormat(Buffer.from(text))).toBe(format)
})

describe('CSV', () => {
  test('may have thousands of columns, of which each row is read once', async () => {
    const names = Array.from({ length: 20_000 }, (_, n) => `column ${n}`)
    const header = ['email', 'event', ...names].join()
    const rows = Array.from({ length: 5_000 }, (_, n) => `a${n}@b.example,bounced\n`)
    const { items } = await read(`${header}\n${rows.join('')}`)
    expect(items).toHaveLength(5_000)
    await expect(read(`${header}${','.repeat(20_000)}\n${rows.join('')}`)).rejects.toThrow(
      /^The row on line 1 has at least [\d,]+ columns, but a list has at most 32,768\./,
    )
  })

  test('has columns by their names', async () => {
    const text = `Recipient;Event Type;Status;Diagnostic-Code;Timestamp;sg_event_id
ann@example.com;x;5.1.1;smtp; 550 unknown;2026-11-01T10:00:00Z;e1
`
    expect((await read(text.replace('smtp; 550', '550'), 'bounced')).items).toEqual([
      {
        address: 'ann@example.com',
        kind: 'bounced',
        code: 550,
        enhancedCode: '5.1.1',
        text: 'unknown',
        occurredAt: Date.parse('2026-11-01T10:00:00Z'),
        id: 'e1',
        isPermanent: null,
      },
    ])
  })

  test('has kinds in the words of providers; others are left out', async () => {
    const rows = [
      'delivered',
      'hard bounce',
      'Soft Bounce',
      'spamreport',
      'deferred',
      'unsubscribe',
    ]
    const text = `email,event\n${rows.map((kind, i) => `a${i}@b.example,${kind}`).join('\n')}\n`
    const { items, ignored } = await read(text)
    expect(items.map(({ kind, isPermanent }) => [kind, isPermanent])).toEqual([
      ['delivered', null],
      ['bounced', true],
      ['bounced', false],
      ['complained', null],
    ])
    expect(ignored).toBe(2)
  })

  test('without a kind needs one', async () => {
    const text = 'email,time\na@b.example,1793520000\nb@b.example,\n'
    expect(await read(text)).toEqual({ items: [], ignored: 2 })
    const { items } = await read(text, 'bounced')
    expect(items.map(({ kind, occurredAt }) => [kind, occurredAt])).toEqual([
      ['bounced', 1_793_520_000_000],
      ['bounced', null],
    ])
  })
})

test('NDJSON has fields by their names; broken lines are left out', async () => {
  const lines = [
    '{"email":"ann@example.com","kind":"bounced","code":550,"text":"5.1.1 unknown","time":1793520000000}',
    'no json',
    '[]',
    '{"email":"bé@example.com","kind":"delivered","nested":{"a":1}}',
  ]
  const { items, ignored } = await read(`${lines.join('\r\n')}\r\n`)
  expect(items).toMatchObject([
    { address: 'ann@example.com', kind: 'bounced', code: 550, enhancedCode: '5.1.1' },
    { address: 'bé@example.com', kind: 'delivered', occurredAt: null },
  ])
  expect(ignored).toBe(2)
})

test('mbox has several messages, with lines that are escaped', async () => {
  const separator = 'From MAILER-DAEMON Mon Nov 16 10:00:05 2026\n'
  const other = 'Subject: Hi\n\n>From the start\nFrom here it is no separator\n\n'
  const { items, ignored } = await read(
    `${separator}${POSTFIX}\n${separator}${other}${separator}${POSTFIX.replaceAll('gone@', 'ann@')}\n`,
  )
  expect(items.map(({ address }) => address)).toEqual([
    ...['gone@example.com', 'full@example.com', 'ann@example.com', 'full@example.com'],
  ])
  expect(ignored).toBe(1)
})

test('a single message is read', async () => {
  expect((await read(POSTFIX)).items).toHaveLength(2)
})

test('an empty file has no feedback', async () => {
  expect(await read('')).toEqual({ items: [], ignored: 0 })
})
