import { expect, test, vi } from 'vitest'
import { breakOff } from '../../src/base/break-off.ts'

test('a socket is destroyed without an error, which it would throw', () => {
  const destroy = vi.fn()
  expect(breakOff({ destroy }, new Error('gone'))).toBe(true)
  expect(destroy.mock.calls).toEqual([[]])
})

test('a stream of HTTP/2 is told why, as it would else have ended well', () => {
  const destroy = vi.fn()
  const cause = new Error('gone')
  breakOff({ stream: {}, destroy }, cause)
  breakOff({ stream: {}, destroy }, 'a word')
  expect(destroy.mock.calls).toEqual([[cause], [new Error('a word')]])
})

test('where there is no connection nothing is broken off', () => {
  expect(breakOff(undefined, new Error('gone'))).toBe(false)
})
