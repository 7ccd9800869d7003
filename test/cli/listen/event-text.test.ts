import { expect, test } from 'vitest'
import { eventLine, eventText } from '../../../src/cli/listen/event-text.ts'
import type { Signatures } from '../../../src/cli/listen/server.ts'

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

test('an event is shown in two lines: what it is and whether to believe it, and its data', () => {
  expect(eventText(taken(EVENT))).toBe(
    '09:05:07  batch.failed  evt_1  both signatures valid\n          {"job_id":"job_1"}\n',
  )
  expect(eventText(taken(EVENT, GOOD, 503))).toContain('both signatures valid  responded 503\n')
})

test.each([
  [{ own: false, standard: true }, 'webhook-signature valid. One is wrong.'],
  [{ own: true, standard: false }, 'X-EV-Signature valid. One is wrong.'],
  [{ own: false, standard: false }, 'SIGNATURE NOT VALID: One is wrong.'],
])('of signatures that hold as in %j it says: %s', (held, said) => {
  expect(eventText(taken(EVENT, { ...held, fault: 'One is wrong.' }))).toContain(`  ${said}\n`)
})

test.each([
  ['no JSON', 'x\u001b[2J', '\uFFFD[2J'],
  ['a list', '["\u202e"]', '["\uFFFD"]'],
  ['nothing', '', ''],
  ['null', 'null', 'null'],
  ['an event whose name is a number', '{"event":1}', '{"event":1}'],
])('%s is shown as no event, and nothing in it reaches the terminal as it is', (_, body, shown) => {
  const text = eventText(taken(body))
  expect(text).toContain('09:05:07  no event  –  ')
  expect(text).toContain(`${shown}\n`)
  expect(text).not.toMatch(/[\u001b\u202e]/)
})

test('what is long is cut for people, and whole for programs', () => {
  const body = JSON.stringify({ event: 'e'.repeat(100), data: 'd'.repeat(1_000) })
  expect(eventText(taken(body)).length).toBeLessThan(400)
  const line = eventLine(taken(body))
  expect(JSON.parse(line)).toMatchObject({ event: 'e'.repeat(100), body: JSON.parse(body) })
  expect(line.indexOf('\n')).toBe(line.length - 1)
})

test('a body that is JSON null is told from one that is no JSON', () => {
  expect(JSON.parse(eventLine(taken('null')))).toMatchObject({ event: null, body: null })
  expect(JSON.parse(eventLine(taken('null!')))).toMatchObject({ event: null, body: 'null!' })
})
