import { describe, expect, test } from 'vitest'
import { badge, time } from '../../../src/dashboard/page/text.ts'

describe('times', () => {
  test('are in UTC for who has no scripts, and for scripts to show in the reader’s zone', async () => {
    expect(String(await time(Date.UTC(2026, 2, 21, 10, 30)))).toBe(
      '<time datetime="2026-03-21T10:30:00.000Z" title="2026-03-21 10:30:00 UTC">2026-03-21 10:30:00 UTC</time>',
    )
  })

  test('that never were are told as asked', async () => {
    expect(String(await time(null, 'never'))).toBe('never')
  })
})

test('a class is told by a word and a sign, not by its colour alone', async () => {
  expect(String(await badge('risky'))).toMatch(/is-risky.*aria-hidden="true">!<\/span> risky/)
})
