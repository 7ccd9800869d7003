import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { composeDoctor } from '../../../src/compose/doctor.ts'
import { toConfig } from '../../../src/config/config.ts'
import { createHealth } from '../../../src/dashboard/health/create-health.ts'
import { createDoctorCache, runDoctor } from '../../../src/doctor/doctor-cache.ts'
import { readMachineStatus } from '../../../src/engine/machine-status.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { fakeClock } from '../../support/clock.ts'
import { tempDatabase, tempFolder } from '../../support/database.ts'
import { createTestEngine } from '../../support/engine.ts'
import { scriptedMx } from '../../support/mx.ts'
import { countedRandom } from '../../support/random.ts'
import { zone } from '../../support/zone.ts'

const REFUSES = {
  greeting: '554 5.7.1 blocked using zen.spamhaus.org, see https://lists.example/x',
}

/** As `compose/service.ts` builds it, with test dependencies. */
async function createHealthWithDoctor() {
  const dataDir = tempFolder()
  const databaseUrl = `sqlite:${join(dataDir, 'ev.sqlite')}`
  const { engine, clock, verify } = createTestEngine({ script: REFUSES })
  const database = await tempDatabase({ clock })
  const config = toConfig({
    flags: { dataDir, helo: 'probe.test', allowRanges: '192.0.2.0/24' },
    environment: {},
    file: null,
  })
  const doctorClock = fakeClock(Date.UTC(2027, 1, 2))
  const names = zone({ 'mx.test': { A: ['192.0.2.1'] } })
  const mx = scriptedMx({})
  const deps = { clock: doctorClock, random: countedRandom(), resolver: names, dial: mx }
  let opened = 0
  let closed = 0
  const doctorCache = createDoctorCache({
    clock,
    log: silentLog,
    runChecks: runDoctor(() => {
      opened++
      const doctorDeps = composeDoctor(config, { databaseUrl, exchangers: ['mx.test'] }, deps)
      return { ...doctorDeps, close: () => void closed++ }
    }),
  })
  const health = createHealth({
    clock,
    database,
    egressPool: engine.egressPool,
    smtpPort: 25,
    doctorCache,
    machine: () => readMachineStatus(engine, { smtpPort: 25, findPortFailure: () => null }),
    titleOf: name => name,
    worker: { status: () => ({ jobs: 1, waiting: 2, running: 3 }) },
    deliveries: { status: () => ({ inFlight: 4, delivered: 0, retried: 0, failed: 0 }) },
    memoryBytes: () => 5,
    disk: async () => ({ freeBytes: 7e9, isLow: false }),
    settings: { version: '1.2.3', concurrency: 200, databaseUrl },
  })
  const counts = () => ({ opened, closed })
  return { health, doctorCache, clock, doctorClock, dataDir, verify, mx, names, counts }
}

test('health does no lookups and connections before it is read', async () => {
  const { health, clock, mx, names, counts } = await createHealthWithDoctor()
  await clock.advance(3_600_000)
  health.alert()
  health.operators()
  expect([mx.sessions.length, names.asked.length, counts().opened]).toEqual([0, 0, 0])
})

test('the doctor of the service uses the configured dependencies, and closes them', async () => {
  const { health, doctorCache, clock, doctorClock, mx, counts } = await createHealthWithDoctor()
  expect(health.doctorChecks()).toMatchObject({ checks: [], isRunning: true })
  await doctorClock.advance(30_000)
  await expect.poll(() => health.doctorChecks().isRunning).toBe(false)
  const { checks } = health.doctorChecks()
  expect(checks.find(({ check }) => check === 'port-25')?.says).toContain('mx.test')
  expect(mx.sessions.length).toBeGreaterThan(0)
  expect(counts()).toEqual({ opened: 1, closed: 1 })
  await clock.advance(60_000)
  health.rerunChecks()
  await doctorCache.close()
  expect(counts()).toEqual({ opened: 2, closed: 2 })
})

test('an operator that blocks this service is reported with its reply', async () => {
  const { health, verify } = await createHealthWithDoctor()
  await verify('ann@a.test')
  await verify('bob@a.test')
  const [one] = health.operators().shown
  expect(one).toMatchObject({
    refusal: { skipped: 1, answer: { why: 'blocklist', reply: { code: 554 } } },
  })
})

test('jobs and process are reported', async () => {
  const { health, clock, dataDir } = await createHealthWithDoctor()
  await clock.advance(7_000)
  expect(health.queue()).toEqual({ jobs: 1, waiting: 2, running: 3 })
  expect(await health.workers()).toEqual({
    concurrency: 200,
    requestsInFlight: 4,
    deliveriesOpen: 0,
    noticesOpen: 0,
  })
  expect(await health.process()).toMatchObject({
    version: '1.2.3',
    upMs: 7_000,
    memoryBytes: 5,
    databaseBytes: null,
    freeBytes: 7e9,
  })
  writeFileSync(join(dataDir, 'ev.sqlite'), 'x'.repeat(30))
  expect(await health.process()).toMatchObject({ databaseBytes: 30 })
  writeFileSync(join(dataDir, 'ev.sqlite-wal'), 'x'.repeat(12))
  expect(await health.process()).toMatchObject({ databaseBytes: 42 })
})
