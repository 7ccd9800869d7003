import { describe, expect, test } from 'vitest'
import { backoff, type RetryOptions, retry } from '../../src/platform/retry.ts'
import { fakeClock } from '../support/clock.ts'

/** Retries a call that fails `failures` times; `attempts` has the second of each attempt. */
function bench(failures: number, options: Partial<RetryOptions> = {}) {
  const clock = fakeClock()
  const startedAt = clock.monotonicNow()
  const attempts: number[] = []
  const run = async () => {
    attempts.push((clock.monotonicNow() - startedAt) / 1_000)
    if (attempts.length <= failures) throw new Error(`failure ${attempts.length}`)
    return 'done'
  }
  const ended = retry(run, { clock, isRetryable: () => true, ...options })
  return { clock, attempts, ended }
}

describe('a retry', () => {
  test('ends with the first success', async () => {
    const { clock, attempts, ended } = bench(3, { delayMs: 1_000 })
    await clock.advance(10_000)
    expect(await ended).toBe('done')
    expect(attempts).toEqual([0, 1, 2, 3])
  })

  test('waits for its backoff', async () => {
    const { clock, attempts, ended } = bench(5, { delayMs: backoff(1_000, 5_000) })
    await clock.advance(60_000)
    await ended
    expect(attempts).toEqual([0, 1, 3, 7, 12, 17])
  })

  test('ends at an error that is not retryable', async () => {
    const isRetryable = (error: unknown) => (error as Error).message !== 'failure 2'
    const { attempts, ended } = bench(3, { isRetryable })
    await expect(ended).rejects.toThrow('failure 2')
    expect(attempts).toHaveLength(2)
  })

  test('ends after the maximum number of attempts', async () => {
    const { attempts, ended } = bench(9, { attemptsMax: 4 })
    await expect(ended).rejects.toThrow('failure 4')
    expect(attempts).toHaveLength(4)
  })

  test('starts no attempt after its deadline', async () => {
    const clock = fakeClock()
    const { ended } = bench(99, { clock, delayMs: 1_000, until: clock.monotonicNow() + 2_500 })
    const rejected = expect(ended).rejects.toThrow('failure 4')
    await clock.advance(60_000)
    await rejected
  })

  test('makes a last attempt when its signal aborts, and reports each earlier failure', async () => {
    const stopping = new AbortController()
    const reported: number[] = []
    const onRetry = (_: unknown, attempt: number) => void reported.push(attempt)
    const { clock, attempts, ended } = bench(99, {
      delayMs: 1_000,
      signal: stopping.signal,
      onRetry,
    })
    const rejected = expect(ended).rejects.toThrow('failure 3')
    await clock.advance(1_500)
    stopping.abort()
    await rejected
    expect([attempts, reported, clock.pending]).toEqual([[0, 1, 1.5], [1, 2], 0])
  })
})
