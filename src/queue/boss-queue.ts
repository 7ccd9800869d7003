import { type ConstructorOptions, PgBoss, type Queue as QueueOptions } from 'pg-boss'
import { type Clock, HOUR, SECOND, sleep } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, type LogEvent, type LogFields, LogThrottle, writeLog } from '../platform/log.ts'
import type { Random } from '../platform/random.ts'
import { checkQueueTimings, DEFAULT_QUEUE_TIMINGS, type Queue, type QueueTimings } from './queue.ts'
import { type Claim, TaskConsumer, type TaskStore } from './task-consumer.ts'
import { QUEUE_LOG } from './telemetry.ts'

type BossDatabase = NonNullable<ConstructorOptions['db']>

/** The shared PostgreSQL database, with the interface that pg-boss expects. */
type QueueDatabase = Required<Pick<BossDatabase, 'executeSql' | 'listen'>> & {
  /** False while notifications from other processes may be lost. */
  readonly isListening: boolean
  end(): Promise<void>
}

type BossQueueDeps = {
  /** Closed together with the queue. */
  readonly database: QueueDatabase
  readonly clock: Clock
  readonly log: Log
  readonly random: Random
  readonly timings?: QueueTimings
}

/** Connections of the queue: one listens, two run statements. */
export const QUEUE_CONNECTIONS = 3
/**
 * An empty queue is supervised less often by this factor, once it has been empty for as many
 * intervals. Notifications report the next task; the factor limits the delay if they are lost.
 */
const EMPTY_FACTOR = 3
/** Schema of the pg-boss tables. */
const SCHEMA = 'ev_boss'
const INT_MAX = 2 ** 31 - 1

/** Options of all kinds. Each key exists at most once, waiting or running. */
const optionsFor = ({ heartbeatMs }: QueueTimings): Omit<QueueOptions, 'name'> => ({
  policy: 'exclusive',
  notify: true,
  heartbeatSeconds: heartbeatMs / SECOND,
  // The maximum of pg-boss: claims expire by their heartbeat instead.
  expireInSeconds: (24 * HOUR) / SECOND,
  retryLimit: INT_MAX,
  warningQueueSize: INT_MAX,
})

/** Creates a queue shared by all processes on the same PostgreSQL; pg-boss stores the due tasks. */
export async function createBossQueue(deps: BossQueueDeps): Promise<Queue> {
  const queue = new BossQueue(deps)
  await queue.start()
  return queue
}

class BossQueue implements Queue {
  readonly #deps: BossQueueDeps
  readonly #timings: QueueTimings
  readonly #boss: PgBoss
  readonly #faults: FaultLog
  /** By queue name in pg-boss. */
  readonly #consumers = new Map<string, TaskConsumer>()
  #cancelTick: (() => void) | null = null
  #wokenAt = Number.NEGATIVE_INFINITY
  #supervisedAt = Number.NEGATIVE_INFINITY
  /** Monotonic time when there was a task, as far as this process knows. */
  #busyAt: number
  #supervising: Promise<void> | null = null
  /**
   * The queue is shut down: puts are dropped, and reconciliation in other processes enqueues the
   * missing tasks.
   */
  #isShutDown = false
  #closed: Promise<void> | null = null

  constructor(deps: BossQueueDeps) {
    this.#deps = deps
    this.#timings = deps.timings ?? DEFAULT_QUEUE_TIMINGS
    checkQueueTimings(this.#timings)
    this.#busyAt = deps.clock.monotonicNow()
    this.#faults = new FaultLog({ ...deps, clearMs: this.#timings.clearMs })
    this.#boss = new PgBoss({
      db: this.#notifyingDatabase(),
      schema: SCHEMA,
      useListenNotify: true,
      // `supervise` is called by this class: the built-in one also runs schedules and flows, which
      // are not used.
      supervise: false,
      schedule: false,
      reindex: false,
      monitorVacuum: false,
      monitorIntervalSeconds: Math.max(1, this.#timings.monitorMs / SECOND),
    })
    this.#boss.on('error', error => {
      this.#faults.fault(QUEUE_LOG.databaseError, { error: errorMessage(error) })
    })
    this.#boss.on('warning', ({ message }) =>
      writeLog(deps.log, QUEUE_LOG.bossWarning, { error: message }),
    )
  }

  async start(): Promise<void> {
    try {
      await this.#boss.start()
    } catch (error) {
      await this.#shutDown()
      throw error
    }
    this.#tick()
  }

  put(kind: string, key: string, dueAt?: number): Promise<void> {
    return this.putAll(kind, [key], dueAt)
  }

  async putAll(kind: string, keys: readonly string[], dueAt = 0): Promise<void> {
    if (this.#isShutDown || keys.length === 0) return
    this.#noteTask()
    await this.#consumerOf(kind).put(keys, Math.max(0, dueAt - this.#deps.clock.now()))
  }

  work(...[kind, handler, options]: Parameters<Queue['work']>): ReturnType<Queue['work']> {
    return this.#consumerOf(kind).work(handler, options)
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  #consumerOf(kind: string): TaskConsumer {
    const name = queueName(kind)
    const existing = this.#consumers.get(name)
    if (existing !== undefined) return existing
    const consumer = new TaskConsumer({
      store: new BossTasks(this.#boss, name, optionsFor(this.#timings)),
      clock: this.#deps.clock,
      timings: this.#timings,
      onFault: (event, fields) => this.#faults.fault(event, { kind, ...fields }),
      onFailure: fields => this.#faults.failure(kind, fields),
    })
    this.#consumers.set(name, consumer)
    return consumer
  }

  /** Notifications wake these consumers as well as the workers of pg-boss. */
  #notifyingDatabase(): BossDatabase {
    const { database } = this.#deps
    return {
      executeSql: (text, values) => database.executeSql(text, values),
      listen: (channel, onNotification, onReconnect) =>
        database.listen(
          channel,
          name => {
            onNotification(name)
            this.#noteTask()
            this.#consumers.get(name)?.wake()
          },
          () => {
            onReconnect()
            this.#noteTask()
            this.#wakeAll()
          },
        ),
    }
  }

  #noteTask() {
    this.#busyAt = this.#deps.clock.monotonicNow()
  }

  /** Interval of the supervision: longer while the queue is empty and notifications arrive. */
  #supervisionMs(now: number): number {
    const { monitorMs } = this.#timings
    const emptyMs = monitorMs * EMPTY_FACTOR
    return this.#deps.database.isListening && now - this.#busyAt >= emptyMs ? emptyMs : monitorMs
  }

  #wakeAll() {
    this.#wokenAt = this.#deps.clock.monotonicNow()
    for (const consumer of this.#consumers.values()) consumer.wake()
  }

  /**
   * The interval is jittered, so that processes started together do not poll at the same moment.
   */
  #tick() {
    const { clock, random, database } = this.#deps
    const { beatMs, pollMs } = this.#timings
    const now = clock.monotonicNow()
    for (const consumer of this.#consumers.values()) consumer.renewClaims()
    if (this.#supervising === null && now - this.#supervisedAt >= this.#supervisionMs(now)) {
      this.#supervisedAt = now
      this.#supervising = this.#supervise().finally(() => {
        this.#supervising = null
      })
    } else if (!database.isListening || now - this.#wokenAt >= pollMs) this.#wakeAll()
    const waitMs = beatMs * 0.9 + random.below(beatMs * 0.2)
    this.#cancelTick = clock.after(waitMs, () => this.#tick())
  }

  /** Releases expired claims, and notes whether there are tasks. */
  async #supervise(): Promise<void> {
    try {
      await this.#boss.supervise()
      const queues = await this.#boss.getQueues()
      if (queues.some(({ queuedCount, activeCount }) => queuedCount + activeCount > 0)) {
        this.#noteTask()
      }
      this.#faults.success()
      this.#wakeAll()
    } catch (error) {
      this.#faults.fault(QUEUE_LOG.maintenanceFailed, { error: errorMessage(error) })
    }
  }

  async #close(): Promise<void> {
    const consumers = [...this.#consumers.values()]
    // The tick continues: running tasks keep their claims and may enqueue more.
    await Promise.all(consumers.map(consumer => consumer.stop()))
    this.#isShutDown = true
    await Promise.all(consumers.map(consumer => consumer.flushed()))
    this.#cancelTick?.()
    await this.#shutDown()
  }

  /** Does not wait longer than `leaveMs` for a server that does not respond. */
  async #shutDown(): Promise<void> {
    const finished = new AbortController()
    const shutdown = Promise.resolve(this.#supervising)
      .then(() => this.#boss.stop({ graceful: false }))
      .then(() => this.#deps.database.end())
      .catch(error => {
        this.#faults.fault(QUEUE_LOG.shutdownFailed, { error: errorMessage(error) })
      })
      .finally(() => finished.abort())
    await Promise.race([shutdown, sleep(this.#deps.clock, this.#timings.leaveMs, finished.signal)])
  }
}

/** Maximum tasks inserted by one statement. */
const ADD_MAX = 1_000

/** The tasks of one kind, stored as pg-boss jobs; each method is one API call. */
class BossTasks implements TaskStore {
  readonly #boss: PgBoss
  readonly #name: string
  readonly #options: Omit<QueueOptions, 'name'>
  #created: Promise<void> | null = null

  constructor(boss: PgBoss, name: string, options: Omit<QueueOptions, 'name'>) {
    this.#boss = boss
    this.#name = name
    this.#options = options
  }

  async add(keys: readonly string[]): Promise<void> {
    await this.#create()
    // Sorted, because two processes that insert the same keys in different orders would deadlock.
    const texts = keys.map(toText).sort()
    for (let from = 0; from < texts.length; from += ADD_MAX) {
      const jobs = texts.slice(from, from + ADD_MAX)
      await this.#boss.insert(
        this.#name,
        jobs.map(key => ({ singletonKey: key, data: { key } })),
      )
    }
  }

  async claim(max: number): Promise<Claim[]> {
    await this.#create()
    // Only due tasks are stored. By their time, those stored before the clock of the server was set
    // back would wait until it has caught up.
    const options = { batchSize: max, ignoreStartAfter: true }
    const jobs = await this.#boss.fetch<{ key: string }>(this.#name, options)
    return jobs.map(({ id, data, retryCount }) => ({
      id,
      key: fromText(data.key),
      attempt: retryCount,
    }))
  }

  async complete(claims: readonly Claim[]): Promise<void> {
    // Deleted rather than completed: completed jobs would stay in the table until maintenance
    // removes them.
    await this.#boss.deleteJob(this.#name, toAttempts(claims))
  }

  async touch(claims: readonly Claim[]): Promise<ReadonlySet<string>> {
    const response = await this.#boss.touch(this.#name, toAttempts(claims))
    // The declared type lacks this field, which pg-boss itself uses to renew the leases of its
    // workers.
    return new Set((response as { readonly settled: readonly string[] }).settled)
  }

  /** Creates the queue on first use; concurrent calls by several processes are safe. */
  #create(): Promise<void> {
    this.#created ??= this.#boss.createQueue(this.#name, this.#options).catch(error => {
      this.#created = null
      throw error
    })
    return this.#created
  }
}

/** With the attempt number pg-boss ignores a job that another worker has claimed since. */
const toAttempts = (claims: readonly Claim[]) =>
  claims.map(({ id, attempt }) => ({ id, retryCount: attempt }))

/**
 * pg-boss allows only some characters in queue names: all others are written as their code points.
 */
const queueName = (kind: string) =>
  kind.replace(/[^A-Za-z0-9.\-/]/gu, mark => `_${mark.codePointAt(0)?.toString(16)}_`)

/** PostgreSQL text cannot contain U+0000 or lone surrogates; JSON escapes both. */
const toText = (key: string) => JSON.stringify(key).slice(1, -1)
const fromText = (text: string): string => JSON.parse(`"${text}"`)

type FaultLogDeps = {
  readonly clock: Clock
  readonly log: Log
  /** Time without faults after which the database counts as recovered, ms. */
  readonly clearMs: number
}

const DATABASE = 'database'

/**
 * Logs faults of a queue. All database faults count as one fault: it is logged at once, then every minute
 * while it lasts, and once when it is over.
 */
export class FaultLog {
  readonly #clock: Clock
  readonly #log: Log
  readonly #clearMs: number
  readonly #reminders: LogThrottle
  /** Time of the last fault; null once the database has recovered. */
  #faultAt: number | null = null

  constructor({ clock, log, clearMs }: FaultLogDeps) {
    this.#clock = clock
    this.#log = log
    this.#clearMs = clearMs
    this.#reminders = new LogThrottle(clock)
  }

  /** Logs a database fault. */
  fault(event: LogEvent, fields: LogFields): void {
    this.#faultAt = this.#clock.monotonicNow()
    this.#reminders.write(this.#log, DATABASE, event, fields)
  }

  /** Records a successful database call. */
  success(): void {
    if (this.#faultAt === null || this.#clock.monotonicNow() - this.#faultAt < this.#clearMs) return
    this.#faultAt = null
    this.#reminders.forget(DATABASE)
    writeLog(this.#log, QUEUE_LOG.databaseAvailable)
  }

  /** Logs a failed run of a kind. */
  failure(kind: string, fields: LogFields): void {
    const all = { kind, ...fields }
    this.#reminders.write(this.#log, `run ${kind}`, QUEUE_LOG.taskRetried, all)
  }
}
