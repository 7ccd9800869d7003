import { expect, test } from 'vitest'
import { createDoctorCache } from '../../../src/dashboard/health/create-health.ts'
import type { Check } from '../../../src/doctor/doctor.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { fakeClock } from '../../support/clock.ts'

const check = (says: string): Check => ({
  ...{ check: 'dns', egress: null, state: 'ok', says, todo: null },
})

/** A doctor cache with scripted checks. */
function practice() {
  const clock = fakeClock()
  const visits: {
    say(text: string): Promise<void>
    end(error?: Error): Promise<void>
    signal: AbortSignal
  }[] = []
  const complaints: string[] = []
  async function* runChecks(signal: AbortSignal): AsyncGenerator<Check> {
    const said: Check[] = []
    let wake = () => {}
    let over: { error: Error | null } | null = null
    const tell = async (act: () => void) => {
      act()
      wake()
      await clock.advance(0)
    }
    visits.push({
      signal,
      say: text => tell(() => void said.push(check(text))),
      end: (error: Error | undefined) => tell(() => (over = { error: error ?? null })),
    })
    signal.addEventListener('abort', () => wake())
    for (;;) {
      for (const one of said.splice(0)) yield one
      if (over !== null || signal.aborted) break
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
    const { error } = over ?? { error: null }
    if (error !== null) throw error
  }
  const log = { ...silentLog, error: (message: string) => void complaints.push(message) }
  const doctorCache = createDoctorCache({ clock, log, runChecks })
  const words = () => doctorCache.read().checks.map(({ says }) => says)
  /** The current run. */
  const visit = () => visits.at(-1) as (typeof visits)[number]
  return { clock, doctorCache, visits, visit, words, complaints }
}

test('no checks run before they are read', async () => {
  const { clock, doctorCache, visits } = practice()
  await clock.advance(60 * MINUTE)
  expect(visits).toHaveLength(0)
  expect(doctorCache.read()).toEqual({ checks: [], at: null, isRunning: true, fault: null })
  expect(visits).toHaveLength(1)
})

test('the first run shows partial results', async () => {
  const { clock, doctorCache, visit, words } = practice()
  doctorCache.read()
  await visit().say('one')
  expect(words()).toEqual(['one'])
  await visit().say('two')
  expect(doctorCache.read()).toMatchObject({ at: null, isRunning: true })
  await visit().end()
  expect(words()).toEqual(['one', 'two'])
  expect(doctorCache.read()).toMatchObject({ at: clock.now(), isRunning: false })
})

test('results are cached for ten minutes, then refreshed in the background', async () => {
  const { clock, doctorCache, visits, visit, words } = practice()
  doctorCache.read()
  await visit().say('old')
  await visit().end()
  await clock.advance(10 * MINUTE)
  expect(doctorCache.read().isRunning).toBe(false)
  expect(visits).toHaveLength(1)
  await clock.advance(1)
  const looked = doctorCache.read()
  expect(looked).toMatchObject({ isRunning: true, at: clock.now() - 10 * MINUTE - 1 })
  expect(words()).toEqual(['old'])
  await visit().say('new')
  expect(words()).toEqual(['old'])
  await visit().end()
  expect(words()).toEqual(['new'])
  expect(visits).toHaveLength(2)
})

test('runs are neither concurrent nor more frequent than one a minute', async () => {
  const { clock, doctorCache, visits, visit } = practice()
  doctorCache.rerun()
  await clock.advance(2 * MINUTE)
  doctorCache.rerun()
  doctorCache.read()
  expect(visits).toHaveLength(1)
  await visit().end()
  doctorCache.rerun()
  expect(visits).toHaveLength(2)
  await visit().end()
  await clock.advance(MINUTE - 1)
  doctorCache.rerun()
  expect(visits).toHaveLength(2)
  await clock.advance(1)
  doctorCache.rerun()
  expect(visits).toHaveLength(3)
})

test('a failed run keeps the previous results, and can be retried a minute later', async () => {
  const { clock, doctorCache, visits, visit, words, complaints } = practice()
  doctorCache.read()
  await visit().say('old')
  await visit().end()
  await clock.advance(11 * MINUTE)
  doctorCache.read()
  await visit().end(new Error('no disk'))
  expect(doctorCache.read()).toMatchObject({ isRunning: false, fault: 'no disk' })
  expect(words()).toEqual(['old'])
  expect(complaints).toEqual(['doctor checks failed'])
  expect(visits).toHaveLength(2)
  await clock.advance(MINUTE)
  expect(doctorCache.read().isRunning).toBe(true)
  await visit().end()
  expect(doctorCache.read().fault).toBeNull()
})

test('closing aborts a run and prevents further ones', async () => {
  const { clock, doctorCache, visits, visit } = practice()
  doctorCache.read()
  await doctorCache.close()
  expect(visit().signal.aborted).toBe(true)
  await clock.advance(20 * MINUTE)
  doctorCache.read()
  doctorCache.rerun()
  expect(visits).toHaveLength(1)
})
