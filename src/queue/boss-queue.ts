import { type ConstructorOptions, PgBoss, type Queue as QueueOptions } from 'pg-boss'
import { type Clock, HOUR, SECOND, sleep } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, type LogFields, LogThrottle } from '../platform/log.ts'
import type { Random } from '../platform/random.ts'
import type { Queue, QueueStatus } from './queue.ts'
import { checkQueueTimings, DEFAULT_QUEUE_TIMINGS, type QueueTimings } from './queue-timings.ts'
import { type Claim, TaskConsumer, type TaskStore } from './task-consumer.ts'

type BossDatabase = NonNullable<ConstructorOptions['db']>

/** The PostgreSQL that all processes share, in the form in which pg-boss takes one. */
export type QueueDatabase = Required<Pick<BossDatabase, 'executeSql' | 'listen'>> & {
  /** False while notifications by other processes may get lost. */
  readonly isListening: boolean
  end(): Promise<void>
}

export type BossQueueDeps = {
  /** Closed with the queue. */
  readonly database: QueueDatabase
  readonly clock: Clock
  readonly log: Log
  readonly random: Random
  readonly timings?: QueueTimings
}

/** Connections that the queue needs: one listens, two run statements. */
export const QUEUE_CONNECTIONS = 3
/** Where pg-boss has its tables. */
const SCHEMA = 'ev_boss'
const INT_MAX = 2 ** 31 - 1

/** Of every kind. A key is there once, waiting or running. */
const optionsFor = ({ heartbeatMs }: QueueTimings): Omit<QueueOptions, 'name'> => ({
  policy: 'exclusive',
  notify: true,
  heartbeatSeconds: heartbeatMs / SECOND,
  // The longest that pg-boss allows: a claim ends by its missing heartbeat.
  expireInSeconds: (24 * HOUR) / SECOND,
  retryLimit: INT_MAX,
  warningQueueSize: INT_MAX,
})

/** A queue that all processes share which are given the same PostgreSQL: pg-boss keeps the tasks that are due. */
export async function bossQueue(deps: BossQueueDeps): Promise<Queue> {
  const queue = new BossQueue(deps)
  await queue.start()
  return queue
}

class BossQueue implements Queue {
  readonly #deps: BossQueueDeps
  readonly #timings: QueueTimings
  readonly #boss: PgBoss
  readonly #faults: FaultLog
  /** By the name that pg-boss knows a kind by. */
  readonly #consumers = new Map<string, TaskConsumer>()
  #stored: QueueStatus = { waiting: 0, running: 0 }
  #cancelBeat: (() => void) | null = null
  #wokenAt = Number.NEGATIVE_INFINITY
  #supervisedAt = Number.NEGATIVE_INFINITY
  #supervising: Promise<void> | null = null
  /** Nothing can be put any more: that is no fault, as others find out what is missing. */
  #isLeft = false
  #closed: Promise<void> | null = null

  constructor(deps: BossQueueDeps) {
    this.#deps = deps
    this.#timings = deps.timings ?? DEFAULT_QUEUE_TIMINGS
    checkQueueTimings(this.#timings)
    this.#faults = new FaultLog({ ...deps, clearMs: this.#timings.clearMs })
    this.#boss = new PgBoss({
      ...{ db: this.#wakingDatabase(), schema: SCHEMA, useListenNotify: true },
      // `supervise` is called here: with it go schedules, flows and other things that nobody needs.
      ...{ supervise: false, schedule: false, reindex: false, monitorVacuum: false },
      monitorIntervalSeconds: Math.max(1, this.#timings.monitorMs / SECOND),
    })
    this.#boss.on('error', error => {
      this.#faults.fault('the queue has trouble with its database', { error: errorMessage(error) })
    })
    this.#boss.on('warning', ({ message }) => deps.log.warn('pg-boss warns', { error: message }))
  }

  async start(): Promise<void> {
    try {
      await this.#boss.start()
    } catch (error) {
      await this.#leave()
      throw error
    }
    this.#beat()
  }

  put(kind: string, key: string, dueAt?: number): Promise<void> {
    return this.putAll(kind, [key], dueAt)
  }

  async putAll(kind: string, keys: readonly string[], dueAt = 0): Promise<void> {
    if (this.#isLeft || keys.length === 0) return
    await this.#consumerOf(kind).put(keys, Math.max(0, dueAt - this.#deps.clock.now()))
  }

  work(...[kind, handler, options]: Parameters<Queue['work']>): ReturnType<Queue['work']> {
    return this.#consumerOf(kind).work(handler, options)
  }

  status(): QueueStatus {
    const later = [...this.#consumers.values()].reduce((sum, one) => sum + one.later, 0)
    return { ...this.#stored, waiting: this.#stored.waiting + later }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  #consumerOf(kind: string): TaskConsumer {
    const name = queueName(kind)
    const known = this.#consumers.get(name)
    if (known !== undefined) return known
    const consumer = new TaskConsumer({
      store: new BossTasks(this.#boss, name, optionsFor(this.#timings)),
      ...{ clock: this.#deps.clock, timings: this.#timings },
      onFault: (message, fields) => this.#faults.fault(message, { kind, ...fields }),
      onFailure: fields => this.#faults.failure(kind, fields),
    })
    this.#consumers.set(name, consumer)
    return consumer
  }

  /** What pg-boss listens for wakes our consumers as well as its own workers. */
  #wakingDatabase(): BossDatabase {
    const { database } = this.#deps
    return {
      executeSql: (text, values) => database.executeSql(text, values),
      listen: (channel, onNotification, onReconnect) =>
        database.listen(
          channel,
          name => {
            onNotification(name)
            this.#consumers.get(name)?.wake()
          },
          () => {
            onReconnect()
            this.#wakeAll()
          },
        ),
    }
  }

  #wakeAll() {
    this.#wokenAt = this.#deps.clock.monotonicNow()
    for (const consumer of this.#consumers.values()) consumer.wake()
  }

  /** Processes that were started together do not all look in the same moment. */
  #beat() {
    const { clock, random, database } = this.#deps
    const { beatMs, pollMs, monitorMs } = this.#timings
    const now = clock.monotonicNow()
    for (const consumer of this.#consumers.values()) consumer.beat()
    if (this.#supervising === null && now - this.#supervisedAt >= monitorMs) {
      this.#supervisedAt = now
      this.#supervising = this.#supervise().finally(() => {
        this.#supervising = null
      })
    } else if (!database.isListening || now - this.#wokenAt >= pollMs) this.#wakeAll()
    const waitMs = beatMs * 0.9 + random.below(beatMs * 0.2)
    this.#cancelBeat = clock.after(waitMs, () => this.#beat())
  }

  /** Gives the tasks of processes that are not heard of to others, and counts. */
  async #supervise(): Promise<void> {
    try {
      await this.#boss.supervise()
      const queues = await this.#boss.getQueues()
      this.#stored = {
        waiting: queues.reduce((sum, { queuedCount }) => sum + queuedCount, 0),
        running: queues.reduce((sum, { activeCount }) => sum + activeCount, 0),
      }
      this.#faults.success()
      this.#wakeAll()
    } catch (error) {
      this.#faults.fault('the queue cannot be looked after now', { error: errorMessage(error) })
    }
  }

  async #close(): Promise<void> {
    const consumers = [...this.#consumers.values()]
    // The beat goes on meanwhile: what runs keeps its claim until it ends, and may put more.
    await Promise.all(consumers.map(consumer => consumer.stop()))
    this.#isLeft = true
    await Promise.all(consumers.map(consumer => consumer.quiet()))
    this.#cancelBeat?.()
    await this.#leave()
  }

  /** A server that does not answer is not waited for. */
  async #leave(): Promise<void> {
    const left = new AbortController()
    const leaving = Promise.resolve(this.#supervising)
      .then(() => this.#boss.stop({ graceful: false }))
      .then(() => this.#deps.database.end())
      .catch(error => {
        this.#faults.fault('the queue was not left in order', { error: errorMessage(error) })
      })
      .finally(() => left.abort())
    await Promise.race([leaving, sleep(this.#deps.clock, this.#timings.leaveMs, left.signal)])
  }
}

/** Tasks added by one statement. */
const ADD_MAX = 1_000

/** The tasks of one kind as jobs of pg-boss: one call of its API each. */
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
    // Two processes that insert the same keys in different orders would wait for each other.
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
    const jobs = await this.#boss.fetch<{ key: string }>(this.#name, { batchSize: max })
    return jobs.map(({ id, data, retryCount }) => ({
      ...{ id, key: fromText(data.key), attempt: retryCount },
    }))
  }

  async complete(claims: readonly Claim[]): Promise<void> {
    // A completed job would stay in the table until pg-boss removes what is old.
    await this.#boss.deleteJob(this.#name, toAttempts(claims))
  }

  async touch(claims: readonly Claim[]): Promise<ReadonlySet<string>> {
    const response = await this.#boss.touch(this.#name, toAttempts(claims))
    // The type of the response names no fields; pg-boss renews the leases of its own workers by this one.
    return new Set((response as { readonly settled: readonly string[] }).settled)
  }

  /** Creates the queue with the first call; several processes may do it at once. */
  #create(): Promise<void> {
    this.#created ??= this.#boss.createQueue(this.#name, this.#options).catch(error => {
      this.#created = null
      throw error
    })
    return this.#created
  }
}

/** With the attempt a call of pg-boss leaves a job alone that somebody else has claimed since. */
const toAttempts = (claims: readonly Claim[]) =>
  claims.map(({ id, attempt }) => ({ id, retryCount: attempt }))

/** pg-boss allows letters, digits and a few marks in the name of a queue: others are written as their numbers. */
const queueName = (kind: string) =>
  kind.replace(/[^A-Za-z0-9.\-/]/gu, mark => `_${mark.codePointAt(0)?.toString(16)}_`)

/** PostgreSQL takes no U+0000 and no half of a surrogate pair; JSON escapes both. */
const toText = (key: string) => JSON.stringify(key).slice(1, -1)
const fromText = (text: string): string => JSON.parse(`"${text}"`)

type FaultLogDeps = {
  readonly clock: Clock
  readonly log: Log
  /** The database works again after a success and so many ms without a fault. */
  readonly clearMs: number
}

const DATABASE = 'database'

/**
 * Reports trouble of a queue. All faults of its database are one trouble, whatever failed by them: it is told once, then
 * once a minute while it goes on, and once that it is over.
 */
export class FaultLog {
  readonly #clock: Clock
  readonly #log: Log
  readonly #clearMs: number
  readonly #reminders: LogThrottle
  /** When the last fault was; null: there was none since the database works. */
  #faultAt: number | null = null

  constructor({ clock, log, clearMs }: FaultLogDeps) {
    this.#clock = clock
    this.#log = log
    this.#clearMs = clearMs
    this.#reminders = new LogThrottle(clock)
  }

  /** A fault of the database. */
  fault(message: string, fields: LogFields): void {
    this.#faultAt = this.#clock.monotonicNow()
    this.#write(DATABASE, message, fields)
  }

  /** The database did what it was asked. */
  success(): void {
    if (this.#faultAt === null || this.#clock.monotonicNow() - this.#faultAt < this.#clearMs) return
    this.#faultAt = null
    this.#reminders.forget(DATABASE)
    this.#log.info('the queue reaches its database again')
  }

  /** A run of this kind failed. */
  failure(kind: string, fields: LogFields): void {
    this.#write(`run ${kind}`, 'work failed and is tried again', { kind, ...fields })
  }

  #write(failure: string, message: string, fields: LogFields): void {
    const repeated = this.#reminders.due(failure)
    if (repeated === null) return
    this.#log.error(message, repeated === 0 ? fields : { ...fields, repeated })
  }
}
