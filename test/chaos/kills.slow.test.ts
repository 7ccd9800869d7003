import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { xorshift } from '../support/random.ts'
import { chaosService } from './service.ts'

/** Most faults of this kind show within ten kills; EV_KILLS=100 is for releases. */
const KILLS = Number(process.env.EV_KILLS ?? 10)
const SEED = Number(process.env.EV_SEED ?? 20_261_123)
/** From its first answer to its end. */
const WORK_MS_MAX = 500
/** From the start of the process to its end: it may not listen yet. */
const LIFE_MS_MAX = 1_500

/** Only ends what hangs. */
const TIMEOUT_MS = 300_000 + KILLS * 5_000

test('a service that is killed with -9 again and again loses nothing that it took, and does nothing twice', {
  timeout: TIMEOUT_MS,
}, async () => {
  const chaos = await chaosService()
  const workload = chaos.startWorkload()
  const random = xorshift(SEED)
  for (let kills = 0; kills < KILLS; kills++) {
    if (kills % 3 === 0) {
      await setTimeout(random() * LIFE_MS_MAX)
    } else {
      await workload.next()
      await setTimeout(random() * WORK_MS_MAX)
    }
    const ran = await chaos.service.end('SIGKILL')
    expect(ran, ran.stderr).toMatchObject({ signal: 'SIGKILL' })
    chaos.start()
  }
  await workload.everyKind()
  await workload.stop()
  const counts = Object.entries(workload.acknowledged).map(([kind, { size }]) => `${kind} ${size}`)
  console.log(`${KILLS} kills; acknowledged: ${counts.join(', ')}`)
  await chaos.expectLedger(workload)
})
