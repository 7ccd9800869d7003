import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { ListeningPool } from '../../src/db/postgres/listening-pool.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { createBossQueue, QUEUE_CONNECTIONS } from '../../src/queue/boss-queue.ts'

// A worker process for kind `k` that records the start and end of each run in the table `ledger`
// and reports lost leases to its parent. Arguments: the database URL, the concurrency, and the
// duration of a run in ms.
const [url = '', concurrency, runMs] = process.argv.slice(2)
const log = {
  ...silentLog,
  error: (message: string, fields: object = {}) => console.error(message, fields),
}
const ledger = new pg.Pool({ connectionString: url })
const queue = await createBossQueue({
  database: new ListeningPool(url, systemClock, { max: QUEUE_CONNECTIONS }),
  clock: systemClock,
  random: systemRandom,
  log,
})

queue.work(
  'k',
  async (key, { lost }) => {
    lost.addEventListener('abort', () => process.send?.({ lost: key }))
    const { rows } = await ledger.query(
      `insert into ledger (key, pid, began_at) values ($1, $2, clock_timestamp()) returning id`,
      [key, process.pid],
    )
    await wait(Number(runMs))
    await ledger.query('update ledger set ended_at = clock_timestamp() where id = $1', [rows[0].id])
    return 'done'
  },
  { concurrency: Number(concurrency) },
)
process.send?.({ ready: true })

process.on('message', async () => {
  await queue.close()
  await ledger.end()
  process.disconnect()
})
