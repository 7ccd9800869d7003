import { expect, test } from 'vitest'
import { eventLine, eventText } from '../../../src/cli/webhooks/listen.ts'
import type { Signatures } from '../../../src/cli/webhooks/listen-server.ts'

const GOOD: Signatures = { own: true, standard: true, fault: null }

function taken(body: string, signatures: Signatures = GOOD, status = 200) {
  const at = new Date(2026, 2, 21, 9, 5, 7).getTime()
  return { arrival: { headers: {}, body: Buffer.from(body) }, signatures, at, status }
}

const EVENT = JSON.stringify({
  event: 'batch.failed',
  event_id: 'evt_1',
  data: { job_id: 'job_1' },
})

test('prints an event in two lines: its type with the signature check, and its data', () => {
  expect(eventText(taken(EVENT))).toBe(
    '09:05:07  batch.failed  evt_1  both signatures valid\n          {"job_id":"job_1"}\n',
  )
  expect(eventText(taken(EVENT, GOOD, 503))).toContain('both signatures valid  responded 503\n')
})

test.each([
  [{ own: false, standard: true }, 'webhook-signature valid. One is wrong.'],
  [{ own: true, standard: false }, 'X-EV-Signature valid. One is wrong.'],
  [{ own: false, standard: false }, 'SIGNATURE NOT VALID: One is wrong.'],
])('prints signatures %j as: %s', (verified, said) => {
  expect(eventText(taken(EVENT, { ...verified, fault: 'One is wrong.' }))).toContain(`  ${said}\n`)
})

test.each([
  ['text that is not JSON', 'x\u001b[2J', '\uFFFD[2J'],
  ['a list', '["\u202e"]', '["\uFFFD"]'],
  ['nothing', '', ''],
  ['null', 'null', 'null'],
  ['an event whose name is a number', '{"event":1}', '{"event":1}'],
])('prints %s as no event, and sanitizes it', (_, body, shown) => {
  const text = eventText(taken(body))
  expect(text).toContain('09:05:07  no event  –  ')
  expect(text).toContain(`${shown}\n`)
  expect(text).not.toMatch(/[\u001b\u202e]/)
})

test('truncates long text in the text format, and not in JSON', () => {
  const body = JSON.stringify({ event: 'e'.repeat(100), data: 'd'.repeat(1_000) })
  expect(eventText(taken(body)).length).toBeLessThan(400)
  const line = eventLine(taken(body))
  expect(JSON.parse(line)).toMatchObject({ event: 'e'.repeat(100), body: JSON.parse(body) })
  expect(line.indexOf('\n')).toBe(line.length - 1)
})

test('distinguishes a body of JSON null from a body that is not JSON', () => {
  expect(JSON.parse(eventLine(taken('null')))).toMatchObject({ event: null, body: null })
  expect(JSON.parse(eventLine(taken('null!')))).toMatchObject({ event: null, body: 'null!' })
})
