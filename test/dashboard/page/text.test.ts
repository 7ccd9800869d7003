import { describe, expect, test } from 'vitest'
import { badge, time } from '../../../src/dashboard/page/text.ts'

describe('times', () => {
  test('are rendered in UTC and have the seconds in the tooltip', async () => {
    expect(String(await time(Date.UTC(2026, 2, 21, 10, 30)))).toBe(
      '<time datetime="2026-03-21T10:30:00.000Z" title="2026-03-21 10:30:00 UTC">2026-03-21 10:30 UTC</time>',
    )
  })

  test('that are null are rendered as the given text', async () => {
    expect(String(await time(null, 'never'))).toBe('never')
  })
})

test('a class is rendered as an icon and a label, not only by color', async () => {
  expect(String(await badge('risky'))).toMatch(
    /is-risky"><svg .*aria-hidden="true">.*<\/svg>Risky</,
  )
})
