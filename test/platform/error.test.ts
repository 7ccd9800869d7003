import { expect, test } from 'vitest'
import { EvError, errorMessage } from '../../src/platform/error.ts'

test('EvError has a code, a message and a cause', () => {
  const cause = new Error('ENOSPC')
  const error = new EvError('cannot_write', 'out.csv cannot be written.', { cause })
  expect(error).toBeInstanceOf(Error)
  expect(error).toMatchObject({
    name: 'EvError',
    code: 'cannot_write',
    message: 'out.csv cannot be written.',
    cause,
  })
})

test.each([
  [new Error('it broke'), 'it broke'],
  ['a text', 'a text'],
  [undefined, 'undefined'],
  [{ message: 'pg-boss hands out such', stack: 'at …' }, 'pg-boss hands out such'],
  [Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }), 'connection refused'],
  [new Error('connect ECONNREFUSED 192.0.2.9:5432'), 'connection refused (192.0.2.9:5432)'],
  [new Error('getaddrinfo ENOTFOUND db.example'), 'host not found (db.example)'],
  [new Error('read ECONNRESET'), 'connection reset'],
  [new Error("ENOENT: no such file or directory, open 'a.csv'"), 'no such file or directory'],
  [new Error('error:0480006C:PEM routines::no start line'), 'PEM routines: no start line'],
  [
    new Error(
      '407D:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:../a.c:918:SSL alert number 48\n',
    ),
    'SSL routines: tlsv1 alert unknown ca',
  ],
  [new URL('mailto:ann@x.test'), 'mailto:ann@x.test'],
])('errorMessage returns a message for any thrown value: %s', (thrown, text) => {
  expect(errorMessage(thrown)).toBe(text)
})
