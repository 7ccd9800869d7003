import { expect, test } from 'vitest'
import { SECOND } from '../../../src/platform/clock.ts'
import { knows } from '../../support/engine.ts'
import { createTestJob } from '../../support/job.ts'
import { scriptedMx } from '../../support/mx.ts'
import type { ZoneEntry } from '../../support/zone.ts'

test('items wait for the limit of their destination address without delaying others', async () => {
  const names = Array.from({ length: 60 }, (_, n) => `vanity${n}.test`)
  const zone = names.flatMap((name): [string, ZoneEntry][] => [
    [name, { MX: [[10, `mx.${name}`]] }],
    [`mx.${name}`, { A: ['192.0.2.80'] }],
  ])
  const mx = scriptedMx(knows('ann'))
  let peak = 0
  const texts = [...names, 'b.test'].map(name => `ann@${name}`)
  const fixture = await createTestJob({
    texts,
    zone: Object.fromEntries(zone),
    flags: { sessionsPerSecond: '1', concurrency: '5' },
    dial: {
      ...mx,
      async connect(to, signal) {
        const socket = await mx.connect(to, signal)
        const open = mx.sessions.filter(session => !session.closed && session.to.ip === to.ip)
        peak = Math.max(peak, open.length)
        return socket
      },
    },
  })
  const startedAt = fixture.clock.now()
  // No server has deferred the waiting items.
  expect(await fixture.work({ wait: false })).toMatchObject({ state: 'completed', deliverable: 61 })
  expect(peak).toBeLessThanOrEqual(2)
  const doneAt = (await fixture.results()).map(result => (result?.checkedAt ?? 0) - startedAt)
  expect(doneAt.at(-1)).toBeLessThan(30 * SECOND)
  expect(Math.max(...doneAt)).toBeGreaterThanOrEqual(58 * SECOND)
  expect(Math.max(...doneAt)).toBeLessThan(120 * SECOND)
})

test('items with a backup exchanger wait for that limit too, and keep their result', async () => {
  const names = Array.from({ length: 20 }, (_, n) => `customer${n}.test`)
  const zone = names.flatMap((name): [string, ZoneEntry][] => [
    [
      name,
      {
        MX: [
          [10, `mail.${name}`],
          [20, 'mx.backup.example'],
        ],
      },
    ],
    [`mail.${name}`, { A: ['192.0.2.80'] }],
  ])
  const job = await createTestJob({
    texts: names.map(name => `ann@${name}`),
    zone: { ...Object.fromEntries(zone), 'mx.backup.example': { A: ['192.0.2.90'] } },
    flags: { sessionsPerSecond: '1' },
    script: knows('ann'),
  })
  expect(await job.work()).toMatchObject({ state: 'completed', done: 20, deliverable: 20 })
  expect(job.loggedErrors).toEqual([])
})
