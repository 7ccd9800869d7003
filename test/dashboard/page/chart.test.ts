import { describe, expect, test } from 'vitest'
import { bars, donut } from '../../../src/dashboard/page/chart.ts'

describe('a donut chart', () => {
  test('has an arc for each share, which add up to the ring', async () => {
    const text = String(
      await donut([
        { label: 'deliverable', value: 1, kind: 'deliverable' },
        { label: 'risky', value: 0, kind: 'risky' },
        { label: 'unknown', value: 3, kind: 'unknown' },
      ]),
    )
    const arcs = [...text.matchAll(/stroke-dasharray="([\d.]+) /g)].map(match => Number(match[1]))
    expect(arcs).toEqual([25, 0, 75])
  })

  test('is an empty ring without data', async () => {
    const text = String(await donut([{ label: 'risky', value: 0, kind: 'risky' }]))
    expect(text).toContain('stroke-dasharray="0.000 100.000"')
    expect(text).toContain('0%')
    expect(text).not.toContain('NaN')
  })
})

describe('a bar chart', () => {
  test('has bars in proportion to their counts, scaled to the longest', async () => {
    const text = String(
      await bars('By reason', [
        { label: 'one', segments: [{ value: 4, kind: 'deliverable' }] },
        {
          label: '<b>two</b>',
          segments: [
            { value: 1, kind: 'risky' },
            { value: 1, kind: 'unknown' },
          ],
        },
      ]),
    )
    const widths = [...text.matchAll(/width="([\d.]+)"/g)].map(match => Number(match[1]))
    expect(widths).toEqual([100, 25, 25])
    expect(text).toContain('&lt;b&gt;two&lt;/b&gt;')
    expect(text).toContain('2 <small>33.3%</small>')
  })

  test('has empty bars without data', async () => {
    const text = String(
      await bars('By reason', [{ label: 'a', segments: [{ value: 0, kind: 'risky' }] }]),
    )
    expect(text).toContain('width="0.00"')
  })
})
