import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { xorshift } from '../support/random.ts'
import { startChaosService } from './service.ts'

/** Most faults of this kind show within ten kills; use EV_KILLS=100 before a release. */
const KILLS = Number(process.env.EV_KILLS ?? 10)
const SEED = Number(process.env.EV_SEED ?? 20_261_123)
/** Longest time from the first acknowledgement to the kill. */
const WORK_MS_MAX = 500
/** Longest time from the start of the process to the kill; it may not listen yet. */
const LIFE_MS_MAX = 1_500

/** Applies only to a test that hangs. */
const TIMEOUT_MS = 300_000 + KILLS * 5_000

test('a service that is killed repeatedly with -9 loses nothing that it acknowledged and does nothing twice', {
  timeout: TIMEOUT_MS,
}, async () => {
  const chaos = await startChaosService()
  const workload = chaos.startWorkload()
  const random = xorshift(SEED)
  for (let kills = 0; kills < KILLS; kills++) {
    if (kills % 3 === 0) {
      await setTimeout(random() * LIFE_MS_MAX)
    } else {
      await workload.next()
      await setTimeout(random() * WORK_MS_MAX)
    }
    const result = await chaos.service.end('SIGKILL')
    expect(result, result.stderr).toMatchObject({ signal: 'SIGKILL' })
    chaos.start()
  }
  await workload.everyKind()
  await workload.stop()
  const counts = Object.entries(workload.acknowledged).map(([kind, { size }]) => `${kind} ${size}`)
  console.log(`${KILLS} kills; acknowledged: ${counts.join(', ')}`)
  await chaos.expectLedger(workload)
})
