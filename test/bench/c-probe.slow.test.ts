import { afterAll, expect, test } from 'vitest'
import { compileCProbe } from '../../bench/engine/c-probe.ts'
import { TestBed } from '../../bench/engine/measure.ts'
import type { Shape } from '../../bench/engine/scenario.ts'

const cProbe = compileCProbe()
afterAll(() => cProbe?.close())

const SHAPES: readonly Shape[] = [
  { name: 'a domain for each address', addresses: 300, domains: 300, hosts: 300 },
  { name: 'all domains at one hoster', addresses: 3_000, domains: 300, hosts: 1 },
]

// Without a C compiler the benchmarks leave it out.
test.runIf(cProbe !== null).each(SHAPES)(
  'the bare probe in C finds what the one in Node finds, with as many questions: $name',
  async shape => {
    const testBed = await TestBed.open(shape, 0, cProbe)
    try {
      const bare = await testBed.measure('bare')
      const c = await testBed.measure('c')
      for (const { missing, repeated, wrong } of [bare, c])
        expect({ missing, repeated, wrong }).toEqual({ missing: 0, repeated: 0, wrong: 0 })
      expect(c.counters.dns.total).toBe(bare.counters.dns.total)
      expect(c.counters.total.commands.RCPT).toBe(shape.addresses)
    } finally {
      await testBed.close()
    }
  },
)
