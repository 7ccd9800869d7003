import { setTimeout as wait } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { type Log, silentLog } from '../../src/base/log.ts'
import { systemRandom } from '../../src/base/random.ts'
import { bossQueue } from '../../src/queue/boss-queue.ts'
import type { Queue } from '../../src/queue/queue.ts'
import { namingClient } from '../../src/store/postgres/client.ts'
import { tempPostgres } from './database.ts'
import { ask } from './postgres-server.ts'

/** The URL of a PostgreSQL database in which nobody has put anything yet. */
export async function emptyPostgres(): Promise<string> {
  const url = await tempPostgres()
  onTestFinished(() => ask(url, 'drop schema if exists ev_boss cascade').then(() => {}))
  return url
}

/** A queue as a process of its own would have it; closed with the test. */
export async function openQueue(url: string, log: Log = silentLog): Promise<Queue> {
  const queue = await bossQueue({
    url,
    clock: systemClock,
    random: systemRandom,
    log,
    Client: namingClient(systemClock),
  })
  onTestFinished(() => queue.close())
  return queue
}

const PATIENCE_MS = 20_000

/** Waits for what a real server does, in vain for twenty seconds at the most. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error('it does not come')
    await wait(20)
  }
}

/** All that pg-boss keeps of entries. */
export const entriesIn = (url: string) =>
  ask<{ id: string; name: string; singleton_key: string; state: string; retry_count: number }>(
    url,
    'select * from ev_boss.job',
  )
