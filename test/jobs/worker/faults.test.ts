import { describe, expect, test } from 'vitest'
import { CatchAllCache } from '../../../src/engine/probe/catch-all.ts'
import { EgressPool } from '../../../src/engine/probe/egress-pool.ts'
import { RateController } from '../../../src/engine/rate-control/controller.ts'
import { DestinationLimits } from '../../../src/engine/rate-control/destination-limits.ts'
import { ResultWriter } from '../../../src/jobs/results/result-writer.ts'
import { ActiveJobs } from '../../../src/jobs/worker/active-jobs.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { Priority } from '../../../src/platform/priority.ts'
import { throwOnce, variedList } from '../../support/faults.ts'
import { createTestJob } from '../../support/job.ts'
import { sampled } from '../../support/property.ts'
import { knows, users } from '../../support/recipients.ts'
import { createTestWorker } from '../../support/worker.ts'

/** What throws, by the class that it belongs to. */
const BOTH = [
  ['the egress look-up', EgressPool.prototype, ['primaryFor', 'ranked', 'limitsFor', 'prober']],
  ['the egress look-up', EgressPool.prototype, ['availableFor', 'mayAsk', 'isDeprioritised']],
  ['the egress look-up', EgressPool.prototype, ['uncertainForMs']],
  ['the rate control', RateController.prototype, ['start', 'succeeded', 'onReply']],
  ['the rate control', DestinationLimits.prototype, ['includes', 'start']],
  ['the catch-all cache', CatchAllCache.prototype, ['get', 'set', 'acquire', 'isResolved']],
  ['the result writer', ResultWriter.prototype, ['add', 'settled', 'flushed']],
  ['the start of the job', ActiveJobs.prototype, ['add']],
] as const
const STORED = [['the priority', Priority.prototype, ['startProbe']]] as const

const toCases = (groups: readonly (readonly [string, object, readonly string[]])[]) =>
  groups.flatMap(([name, owner, methods]) => methods.map(method => [name, method, owner] as const))

/** `npm test` lets each call fail in one of these two kinds of lists, by turns. */
const KINDS_OF_LISTS = 2

describe.each([
  ['a list', null, BOTH],
  ['a list of a service', new Priority(systemClock), [...STORED, ...BOTH]],
] as const)('each row of %s has its result although once throws', (_, priority, groups) => {
  test.each(sampled(toCases(groups), KINDS_OF_LISTS))('%s: %s', async (_, method, owner) => {
    const { zone, expected, script } = variedList()
    const home = await createTestWorker({
      zone,
      script,
      flags: { sessionsPerSecond: '2' },
      deps: { priority },
    })
    await home.submit('job_1', [...expected.keys()])
    const hasThrown = throwOnce(owner, method)
    home.worker.take('job_1')
    expect(await home.finished('job_1')).toMatchObject([{ state: 'completed' }])
    expect(await home.reasons('job_1')).toEqual([...expected.values()])
    expect(hasThrown()).toBe(true)
  })
})

const ENGINE = BOTH.filter(([name]) => /egress|rate control|catch-all/.test(name))

/** The calls fail in the two other kinds of lists already. */
const ENGINE_SHARE = 4

test.each(sampled(toCases(ENGINE), ENGINE_SHARE))(
  'each row of a list of the command line has its result although once throws %s: %s',
  async (_, method, owner) => {
    const { zone, expected, script } = variedList()
    const fixture = await createTestJob({
      texts: [...expected.keys()],
      zone,
      script,
      flags: { sessionsPerSecond: '2' },
    })
    const hasThrown = throwOnce(owner, method)
    expect(await fixture.work()).toMatchObject({ state: 'completed' })
    expect(await fixture.reasons()).toEqual([...expected.values()])
    expect(hasThrown()).toBe(true)
  },
)

test('a list of the command line whose results cannot be handed over ends with an error, and continues', async () => {
  const texts = [...users(30), 'nonsense']
  const fixture = await createTestJob({ texts, script: knows(...users(30)) })
  throwOnce(ResultWriter.prototype, 'add')
  await expect(fixture.work()).rejects.toThrow('decided of the sink failed: add')
  expect(await fixture.work()).toMatchObject({ state: 'completed', done: 31, deliverable: 30 })
  expect(fixture.loggedErrors).toEqual([])
})
