import { expect, test } from 'vitest'
import type { Check } from '../../src/doctor/doctor.ts'
import { createDoctorCache, findPortFailure } from '../../src/doctor/doctor-cache.ts'
import { MINUTE } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { fakeClock } from '../support/clock.ts'

const check = (says: string): Check => ({
  check: 'dns',
  egress: null,
  state: 'ok',
  says,
  todo: null,
})

/** A doctor cache with scripted checks. */
function createTestCache() {
  const clock = fakeClock()
  const runs: {
    say(text: string): Promise<void>
    fail(text: string): Promise<void>
    end(error?: Error): Promise<void>
    signal: AbortSignal
  }[] = []
  const errors: string[] = []
  async function* runChecks(signal: AbortSignal): AsyncGenerator<Check> {
    const logged: Check[] = []
    let wake = () => {}
    let over: { error: Error | null } | null = null
    const emitCheck = async (act: () => void) => {
      act()
      wake()
      await clock.advance(0)
    }
    runs.push({
      signal,
      say: text => emitCheck(() => void logged.push(check(text))),
      fail: text => emitCheck(() => void logged.push({ ...check(text), state: 'fail' })),
      end: (error: Error | undefined) => emitCheck(() => (over = { error: error ?? null })),
    })
    signal.addEventListener('abort', () => wake())
    for (;;) {
      for (const one of logged.splice(0)) yield one
      if (over !== null || signal.aborted) break
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
    const { error } = over ?? { error: null }
    if (error !== null) throw error
  }
  const log = { ...silentLog, error: (message: string) => void errors.push(message) }
  const doctorCache = createDoctorCache({ clock, log, runChecks })
  const words = () => doctorCache.read().checks.map(({ says }) => says)
  /** The current run. */
  const currentRun = () => runs.at(-1) as (typeof runs)[number]
  return { clock, doctorCache, runs, currentRun, words, errors }
}

test('no checks run before they are read', async () => {
  const { clock, doctorCache, runs } = createTestCache()
  await clock.advance(60 * MINUTE)
  expect(runs).toHaveLength(0)
  expect(doctorCache.read()).toEqual({ checks: [], at: null, isRunning: true, fault: null })
  expect(runs).toHaveLength(1)
})

test('the first run shows partial results', async () => {
  const { clock, doctorCache, currentRun, words } = createTestCache()
  doctorCache.read()
  await currentRun().say('one')
  expect(words()).toEqual(['one'])
  await currentRun().say('two')
  expect(doctorCache.read()).toMatchObject({ at: null, isRunning: true })
  await currentRun().end()
  expect(words()).toEqual(['one', 'two'])
  expect(doctorCache.read()).toMatchObject({ at: clock.now(), isRunning: false })
})

test('results are cached for ten minutes, then refreshed in the background', async () => {
  const { clock, doctorCache, runs, currentRun, words } = createTestCache()
  doctorCache.read()
  await currentRun().say('old')
  await currentRun().end()
  await clock.advance(10 * MINUTE)
  expect(doctorCache.read().isRunning).toBe(false)
  expect(runs).toHaveLength(1)
  await clock.advance(1)
  const cached = doctorCache.read()
  expect(cached).toMatchObject({ isRunning: true, at: clock.now() - 10 * MINUTE - 1 })
  expect(words()).toEqual(['old'])
  await currentRun().say('new')
  expect(words()).toEqual(['old'])
  await currentRun().end()
  expect(words()).toEqual(['new'])
  expect(runs).toHaveLength(2)
})

test('runs are neither concurrent nor more frequent than one a minute', async () => {
  const { clock, doctorCache, runs, currentRun } = createTestCache()
  doctorCache.rerun()
  await clock.advance(2 * MINUTE)
  doctorCache.rerun()
  doctorCache.read()
  expect(runs).toHaveLength(1)
  await currentRun().end()
  doctorCache.rerun()
  expect(runs).toHaveLength(2)
  await currentRun().end()
  await clock.advance(MINUTE - 1)
  doctorCache.rerun()
  expect(runs).toHaveLength(2)
  await clock.advance(1)
  doctorCache.rerun()
  expect(runs).toHaveLength(3)
})

test('a failed run keeps the previous results, and can be retried a minute later', async () => {
  const { clock, doctorCache, runs, currentRun, words, errors } = createTestCache()
  doctorCache.read()
  await currentRun().say('old')
  await currentRun().end()
  await clock.advance(11 * MINUTE)
  doctorCache.read()
  await currentRun().end(new Error('no disk'))
  expect(doctorCache.read()).toMatchObject({ isRunning: false, fault: 'no disk' })
  expect(words()).toEqual(['old'])
  expect(errors).toEqual(['doctor checks failed'])
  expect(runs).toHaveLength(2)
  await clock.advance(MINUTE)
  expect(doctorCache.read().isRunning).toBe(true)
  await currentRun().end()
  expect(doctorCache.read().fault).toBeNull()
})

test('closing aborts a run and prevents further ones', async () => {
  const { clock, doctorCache, runs, currentRun } = createTestCache()
  doctorCache.read()
  await doctorCache.close()
  expect(currentRun().signal.aborted).toBe(true)
  await clock.advance(20 * MINUTE)
  doctorCache.read()
  doctorCache.rerun()
  expect(runs).toHaveLength(1)
})

test('a result with a failure is stale after two minutes', async () => {
  const { clock, doctorCache, runs, currentRun } = createTestCache()
  doctorCache.read()
  await currentRun().fail('port closed')
  await currentRun().end()
  await clock.advance(2 * MINUTE)
  doctorCache.read()
  expect(runs).toHaveLength(1)
  await clock.advance(1)
  doctorCache.read()
  expect(runs).toHaveLength(2)
})

test('the latest result is read without starting a run', () => {
  const { doctorCache, runs } = createTestCache()
  expect(doctorCache.latest).toMatchObject({ at: null, isRunning: false })
  expect(runs).toHaveLength(0)
})

test.each([
  [null, 'a', true, 'closed'],
  ['a', 'a', true, 'closed'],
  ['b', 'a', true, null],
  [null, 'a', undefined, null],
] as const)(
  'a port check of egress %s tells about %s, if it is blocked: %s',
  (egress, asked, blocked, expected) => {
    const port = { check: 'port-25', egress, state: 'fail', says: 'closed', todo: null } as const
    const checks = [{ ...port, ...(blocked && { blocked }) }]
    expect(findPortFailure({ checks, at: null, isRunning: false, fault: null }, asked)).toBe(
      expected,
    )
  },
)
