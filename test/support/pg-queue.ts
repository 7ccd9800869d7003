import { sql } from 'kysely'
import { onTestFinished } from 'vitest'
import { ListeningPool } from '../../src/db/postgres/listening-pool.ts'
import { type Clock, HOUR, systemClock } from '../../src/platform/clock.ts'
import { type Log, silentLog } from '../../src/platform/log.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { createBossQueue, QUEUE_CONNECTIONS } from '../../src/queue/boss-queue.ts'
import type { Queue, QueueTimings } from '../../src/queue/queue.ts'
import { FAST_TIMINGS } from './fast-timings.ts'
import { openServer, tempPostgres } from './postgres-pool.ts'
import { ask } from './postgres-server.ts'

/** Returns the URL of a PostgreSQL database without queue tasks. */
export async function emptyPostgres(): Promise<string> {
  const url = await tempPostgres()
  onTestFinished(async () => {
    const { db, close } = await openServer(url)
    const { rows } = await IS_MADE.execute(db)
    // Truncated instead of dropped, as another test may reuse the database and creating tables is
    // slow.
    if (rows[0]?.made === true) for (const statement of EMPTY_BOSS) await statement.execute(db)
    await close()
  })
  return url
}

const IS_MADE = sql<{ made: boolean }>`select to_regclass('ev_boss.job') is not null as made`
const EMPTY_BOSS = [sql`truncate ev_boss.job`, sql`delete from ev_boss.queue`]

type OpenOptions = {
  readonly log?: Log
  readonly timings?: QueueTimings
  readonly clock?: Clock
}

/** Opens a queue like a separate process; closed after the test. */
export async function openQueue(
  url: string,
  { log = silentLog, timings = FAST_TIMINGS.queue, clock = systemClock }: OpenOptions = {},
): Promise<Queue> {
  const database = new ListeningPool(url, systemClock, { max: QUEUE_CONNECTIONS, name: 'ev queue' })
  const queue = await createBossQueue({ database, clock, random: systemRandom, log, timings })
  onTestFinished(() => queue.close())
  return queue
}

/** With these timings a queue claims tasks only when a put wakes it. */
export const NO_POLLING: QueueTimings = {
  ...FAST_TIMINGS.queue,
  beatMs: HOUR,
  pollMs: HOUR,
}

/** Returns the task rows of pg-boss. */
export const entriesIn = (url: string) =>
  ask<{ id: string; name: string; singleton_key: string; state: string; retry_count: number }>(
    url,
    'select * from ev_boss.job',
  )

/**
 * Makes pg-boss expire the worker of a task at its next monitoring, by moving its last heartbeat to
 * the past. pg-boss requires an expiry of at least 10 s.
 */
export const loseHeartbeat = (url: string, key: string) =>
  ask(
    url,
    `update ev_boss.job set heartbeat_on = now() - interval '1 minute'
    where singleton_key = $1 and state = 'active'`,
    [key],
  )
