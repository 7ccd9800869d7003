import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import { CallbackAbortController, onAbort } from '../../src/platform/abort.ts'

describe('onAbort', () => {
  test('calls all callbacks of a signal once, with one listener', () => {
    const source = new AbortController()
    const calls: number[] = []
    for (const n of [1, 2, 3]) onAbort(source.signal, () => calls.push(n))
    expect(getEventListeners(source.signal, 'abort')).toHaveLength(1)
    source.abort()
    source.abort()
    expect(calls).toEqual([1, 2, 3])
  })

  test('calls at once if the signal has aborted', () => {
    const calls: number[] = []
    onAbort(AbortSignal.abort(), () => calls.push(1))
    expect(calls).toEqual([1])
  })

  test('does not call what has unsubscribed, even by another callback', () => {
    const source = new AbortController()
    const calls: number[] = []
    onAbort(source.signal, () => unsubscribe())
    const unsubscribe = onAbort(source.signal, () => calls.push(2))
    source.abort()
    expect(calls).toEqual([])
  })

  test('leaves no listener when all have unsubscribed, and starts over after that', () => {
    const source = new AbortController()
    const calls: number[] = []
    const unsubscribe = onAbort(source.signal, () => calls.push(1))
    unsubscribe()
    expect(getEventListeners(source.signal, 'abort')).toEqual([])
    onAbort(source.signal, () => calls.push(2))
    unsubscribe()
    source.abort()
    expect(calls).toEqual([2])
  })
})

test('a CallbackAbortController calls them once without a listener, and none that has unsubscribed', () => {
  const source = new CallbackAbortController()
  const calls: number[] = []
  onAbort(source.signal, () => calls.push(1))
  onAbort(source.signal, () => unsubscribe())
  const unsubscribe = onAbort(source.signal, () => calls.push(2))
  expect(getEventListeners(source.signal, 'abort')).toEqual([])
  source.abort()
  source.abort()
  expect(calls).toEqual([1])
  expect(source.signal.aborted).toBe(true)
  onAbort(source.signal, () => calls.push(3))
  expect(calls).toEqual([1, 3])
})
