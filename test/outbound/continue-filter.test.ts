import { expect, test } from 'vitest'
import { ContinueFilter } from '../../src/outbound/continue-filter.ts'
import { fc } from '../support/property.ts'

const CONTINUE = 'HTTP/1.1 100 Continue\r\nServer: x\r\n\r\n'
const HINTS = 'HTTP/1.1 103 Early Hints\r\n\r\n'
const FINAL = `HTTP/1.1 200 OK\r\nContent-Length: ${CONTINUE.length}\r\n\r\n${CONTINUE}`
const HEAD_BYTES_MAX = 256

/** What the filter passes on of a response, given in chunks. */
const passedOf = (...chunks: string[]) => {
  const filter = new ContinueFilter(HEAD_BYTES_MAX)
  return chunks.map(chunk => filter.push(Buffer.from(chunk))?.toString() ?? '').join('')
}

const LONG = `HTTP/1.1 100 Continue\r\nA: ${'a'.repeat(HEAD_BYTES_MAX)}`

test.each([
  ['a final response', FINAL, FINAL],
  ['100', CONTINUE + FINAL, FINAL],
  ['100 between other interim responses', HINTS + CONTINUE + HINTS + FINAL, HINTS + HINTS + FINAL],
  ['100 behind a blank line', `\r\n${CONTINUE}${FINAL}`, FINAL],
  ['an incomplete 100', CONTINUE.slice(0, -1), ''],
  ['a head that is too long', LONG, LONG],
  ['what is not HTTP', 'SSH-2.0-x\r\n', 'SSH-2.0-x\r\n'],
  ['another version', 'HTTP/1.0 100 Continue\r\n\r\n', 'HTTP/1.0 100 Continue\r\n\r\n'],
])('%s', (_, response, passed) => {
  expect(passedOf(response)).toBe(passed)
})

test('removes 100 in chunks of any size', () =>
  fc.assert(
    fc.property(fc.array(fc.nat(120), { maxLength: 20 }), cuts => {
      const response = CONTINUE + HINTS + CONTINUE + FINAL
      const ends = [...cuts.toSorted((a, b) => a - b), response.length]
      const chunks = ends.map((end, n) => response.slice(ends[n - 1] ?? 0, end))
      expect(passedOf(...chunks)).toBe(HINTS + FINAL)
    }),
  ))

test('leaves the body of a response, and finds the start of the next one', () => {
  const filter = new ContinueFilter(HEAD_BYTES_MAX)
  expect(filter.push(Buffer.from(FINAL))?.toString()).toBe(FINAL)
  expect(filter.push(Buffer.from(CONTINUE))?.toString()).toBe(CONTINUE)
  filter.startResponse()
  expect(filter.push(Buffer.from(CONTINUE))).toBeNull()
})
