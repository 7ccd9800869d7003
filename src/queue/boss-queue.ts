import { type Queue as BossOptions, type ConstructorOptions, PgBoss } from 'pg-boss'
import { type Clock, HOUR, SECOND, sleep } from '../base/clock.ts'
import { messageOf } from '../base/error.ts'
import type { Log, LogFields } from '../base/log.ts'
import type { Random } from '../base/random.ts'
import { BossEntries, nameOf } from './boss-entries.ts'
import { FaultLog } from './fault-log.ts'
import type { Queue, QueueStatus } from './queue.ts'
import { checkQueueTimings, DEFAULT_QUEUE_TIMINGS, type QueueTimings } from './queue-timings.ts'
import { SharedKind } from './shared-kind.ts'
import { SCHEMA } from './statements.ts'

export type BossQueueParts = {
  /** `postgres://…` of the database that all processes share. */
  readonly url: string
  readonly clock: Clock
  readonly log: Log
  readonly random: Random
  /** The class of its connections, a `pg.Client`. */
  readonly Client: object
  readonly timings?: QueueTimings
}

/** For statements. */
const CONNECTIONS = 2
/** One more listens for what others put. */
export const QUEUE_CONNECTIONS = CONNECTIONS + 1
/** Longer than anything waits here: what pg-boss gives up after a while is never given up. */
const FOR_EVER_SECONDS = 10 * 365 * 24 * 3_600
const INT_MAX = 2 ** 31 - 1

/** Of every kind. */
const kindOf = ({ heartbeatMs }: QueueTimings) =>
  ({
    policy: 'exclusive',
    notify: true,
    heartbeatSeconds: heartbeatMs / SECOND,
    // The most that pg-boss takes; a run that is alive is not ended by it before.
    expireInSeconds: (24 * HOUR) / SECOND,
    retryLimit: INT_MAX,
    retentionSeconds: FOR_EVER_SECONDS,
    // Entries go when they are done with; this is for what somebody ended by hand.
    deleteAfterSeconds: 60,
    warningQueueSize: INT_MAX,
  }) as const satisfies Omit<BossOptions, 'name'>

/** A queue that all processes share which are given the same PostgreSQL: pg-boss keeps the entries, in tables of its own. */
export async function bossQueue(parts: BossQueueParts): Promise<Queue> {
  const queue = new BossQueue(parts)
  await queue.start()
  return queue
}

class BossQueue implements Queue {
  readonly #parts: BossQueueParts
  readonly #timings: QueueTimings
  readonly #boss: PgBoss
  readonly #faults: FaultLog
  readonly #kinds = new Map<string, { readonly kind: SharedKind; readonly name: string }>()
  #status: QueueStatus = { waiting: 0, running: 0 }
  /** What pg-boss tells about new entries by; empty while nobody listens. */
  #channel = ''
  #cancelBeat: (() => void) | null = null
  #supervising: Promise<void> | null = null
  #supervisedAt = Number.NEGATIVE_INFINITY
  /** Nothing can be put any more: that is no fault, as others find out what is missing. */
  #isLeft = false
  #closed: Promise<void> | null = null

  constructor(parts: BossQueueParts) {
    this.#parts = parts
    this.#timings = parts.timings ?? DEFAULT_QUEUE_TIMINGS
    checkQueueTimings(this.#timings)
    this.#faults = new FaultLog({ ...parts, clearMs: this.#timings.clearMs })
    this.#boss = new PgBoss(optionsFor(parts, this.#timings))
    this.#boss.on('error', error => {
      this.#complain('the queue has trouble with its database', { error: messageOf(error) })
    })
    this.#boss.on('warning', ({ message }) => parts.log.warn('pg-boss warns', { error: message }))
  }

  async start(): Promise<void> {
    this.#overhear()
    try {
      await this.#boss.start()
    } catch (error) {
      await this.#boss.stop({ graceful: false }).catch(() => {})
      throw error
    }
    this.#beat()
  }

  put(kind: string, key: string, dueAt?: number): Promise<void> {
    return this.putAll(kind, [key], dueAt)
  }

  async putAll(kind: string, keys: readonly string[], dueAt?: number): Promise<void> {
    if (this.#isLeft || keys.length === 0) return
    const waitMs = dueAt === undefined ? 0 : Math.max(0, dueAt - this.#parts.clock.now())
    await this.#kindOf(kind).put(keys, waitMs)
  }

  work(...[kind, handler, options]: Parameters<Queue['work']>): ReturnType<Queue['work']> {
    return this.#kindOf(kind).work(handler, options)
  }

  status(): QueueStatus {
    return this.#status
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  #kindOf(kind: string): SharedKind {
    const known = this.#kinds.get(kind)
    if (known !== undefined) return known.kind
    const name = nameOf(kind)
    const fresh = new SharedKind({
      timings: this.#timings,
      entries: new BossEntries({
        ...{ boss: this.#boss, name, options: kindOf(this.#timings), channel: () => this.#channel },
      }),
      clock: this.#parts.clock,
      complain: (message, fields) => this.#complain(message, { kind, ...fields }),
      onFailure: fields => this.#faults.failure(kind, fields),
    })
    this.#kinds.set(kind, { kind: fresh, name })
    return fresh
  }

  /** pg-boss wakes workers of its own when somebody puts something; ours hear it here. */
  #overhear() {
    const db = this.#boss.getDb()
    const listen = db.listen?.bind(db)
    if (listen === undefined) return
    db.listen = (channel, onNotification, onReconnect) => {
      this.#channel = channel
      const heard = (name: string) => {
        onNotification(name)
        for (const one of this.#kinds.values()) if (one.name === name) one.kind.wake()
      }
      const reconnected = () => {
        onReconnect()
        for (const { kind } of this.#kinds.values()) kind.wake()
      }
      return listen(channel, heard, reconnected)
    }
  }

  /** Processes that were started together do not all look in the same moment. */
  #beat() {
    const { clock, random } = this.#parts
    const { beatMs, monitorMs } = this.#timings
    for (const { kind } of this.#kinds.values()) kind.beat()
    if (clock.ticks() - this.#supervisedAt >= monitorMs) this.#supervise()
    const waitMs = beatMs * 0.9 + random.below(beatMs * 0.2)
    this.#cancelBeat = clock.after(waitMs, () => this.#beat())
  }

  #supervise() {
    if (this.#supervising !== null) return
    this.#supervisedAt = this.#parts.clock.ticks()
    this.#supervising = this.#lookAfterOthers().finally(() => {
      this.#supervising = null
    })
  }

  /** Gives the entries of those that are not heard of to others, and counts. */
  async #lookAfterOthers(): Promise<void> {
    try {
      await this.#boss.supervise()
      const kinds = await this.#boss.getQueues()
      this.#status = {
        waiting: kinds.reduce((sum, { queuedCount }) => sum + queuedCount, 0),
        running: kinds.reduce((sum, { activeCount }) => sum + activeCount, 0),
      }
      this.#faults.success()
      // What was given back is looked for at once.
      for (const { kind } of this.#kinds.values()) kind.wake()
    } catch (error) {
      this.#complain('the queue cannot be looked after now', { error: messageOf(error) })
    }
  }

  #complain(message: string, fields: LogFields) {
    this.#faults.fault(message, fields)
  }

  async #close(): Promise<void> {
    // The beat goes on meanwhile, as what runs is to be kept until it ends; and it may put more.
    await Promise.all([...this.#kinds.values()].map(({ kind }) => kind.stop()))
    this.#isLeft = true
    await Promise.all([...this.#kinds.values()].map(({ kind }) => kind.quiet()))
    this.#cancelBeat?.()
    await this.#leave()
  }

  /** A server that does not answer is not waited for. */
  async #leave(): Promise<void> {
    const left = new AbortController()
    const leaving = (this.#supervising ?? Promise.resolve())
      .then(() => this.#boss.stop({ graceful: false }))
      .catch(error =>
        this.#complain('the queue was not left in order', { error: messageOf(error) }),
      )
      .finally(() => left.abort())
    await Promise.race([leaving, sleep(this.#parts.clock, this.#timings.leaveMs, left.signal)])
  }
}

/** Only what we use runs: no schedules, no flows, no statistics kept, no rebuilding of indexes. */
function optionsFor({ url, Client }: BossQueueParts, timings: QueueTimings): ConstructorOptions {
  const options = {
    Client,
    connectionString: url,
    application_name: 'ev queue',
    schema: SCHEMA,
    max: CONNECTIONS,
    useListenNotify: true,
    // We supervise ourselves: there, flows would be looked for as well.
    ...{ supervise: false, schedule: false, reindex: false, monitorVacuum: false },
    monitorIntervalSeconds: Math.max(1, timings.monitorMs / SECOND),
    // What the pool of pg takes beyond what pg-boss names.
    connectionTimeoutMillis: timings.connectMs,
    statement_timeout: timings.statementMs,
    // The server may be frozen, or gone without a word: then it ends nothing by itself.
    query_timeout: timings.statementMs + timings.silenceMs,
    keepAlive: true,
  }
  return options
}
