import { type ConstructorOptions, PgBoss, type QueueOptions } from 'pg-boss'
import { type Clock, HOUR, SECOND } from '../base/clock.ts'
import { messageOf } from '../base/error.ts'
import type { Log, LogFields } from '../base/log.ts'
import type { Random } from '../base/random.ts'
import type { Claim, Ended, Entries, Wanted } from './entries.ts'
import type { Queue, QueueStatus } from './queue.ts'
import { SharedKind } from './shared-kind.ts'
import { END, SCHEMA, SOONER } from './statements.ts'

export type BossQueueParts = {
  /** `postgres://…` of the database that all processes share. */
  readonly url: string
  readonly clock: Clock
  readonly log: Log
  readonly random: Random
}

/** Beside them one listens for what others put: three connections in all. */
const CONNECTIONS = 2
const CONNECT_MS = 5 * SECOND
const STATEMENT_MS = 10 * SECOND
/** How often each kind is looked at, in the mean; what is put wakes its workers at once. */
const BEAT_MS = SECOND
/** How often entries are looked for whose worker died; over all processes, not for each. */
const MONITOR_SECONDS = 2
/** The least that pg-boss takes: an entry whose worker is not heard of for so long is another's. */
const HEARTBEAT_SECONDS = 10
/** Longer than anything waits here: what pg-boss gives up after a while is never given up. */
const FOR_EVER_SECONDS = 10 * 365 * 24 * 3_600
const INT_MAX = 2 ** 31 - 1
/** Entries written by one statement. */
const PUT_MAX = 1_000
/** Transactions that stand in each other's way oftener than this do so for a reason. */
const CONFLICTS_MAX = 10

/** Of every kind. */
const KIND = {
  policy: 'exclusive',
  notify: true,
  heartbeatSeconds: HEARTBEAT_SECONDS,
  // The most that pg-boss takes; a run that is alive is not ended by it before.
  expireInSeconds: (24 * HOUR) / SECOND,
  retryLimit: INT_MAX,
  retentionSeconds: FOR_EVER_SECONDS,
  // Entries go when they are done with; this is for what somebody ended by hand.
  deleteAfterSeconds: 60,
  warningQueueSize: INT_MAX,
} as const satisfies QueueOptions & { policy: string; notify: boolean; warningQueueSize: number }

/** A queue that all processes share which are given the same PostgreSQL: pg-boss keeps the entries, in tables of its own. */
export async function bossQueue(parts: BossQueueParts): Promise<Queue> {
  const queue = new BossQueue(parts)
  await queue.start()
  return queue
}

class BossQueue implements Queue {
  readonly #parts: BossQueueParts
  readonly #boss: PgBoss
  readonly #kinds = new Map<string, { readonly kind: SharedKind; readonly name: string }>()
  #status: QueueStatus = { waiting: 0, running: 0 }
  /** What pg-boss tells about new entries by; empty while nobody listens. */
  #channel = ''
  #cancelBeat: (() => void) | null = null
  #supervising: Promise<void> | null = null
  #supervisedAt = Number.NEGATIVE_INFINITY
  #complainedAt = Number.NEGATIVE_INFINITY
  #closed: Promise<void> | null = null

  constructor(parts: BossQueueParts) {
    this.#parts = parts
    this.#boss = new PgBoss(optionsFor(parts.url))
    this.#boss.on('error', error => {
      this.#complain('the queue has trouble with its database', { error: messageOf(error) })
    })
    this.#boss.on('warning', ({ message }) => this.#complain('pg-boss warns', { error: message }))
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
    if (this.#closed !== null || keys.length === 0) return
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
      entries: new BossEntries(this.#boss, name, () => this.#channel),
      clock: this.#parts.clock,
      complain: (message, fields) => this.#complain(message, { kind, ...fields }),
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
    for (const { kind } of this.#kinds.values()) kind.beat()
    if (clock.ticks() - this.#supervisedAt >= MONITOR_SECONDS * SECOND) this.#supervise()
    const waitMs = BEAT_MS * 0.9 + random.below(BEAT_MS * 0.2)
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
    } catch (error) {
      this.#complain('the queue cannot be looked after now', { error: messageOf(error) })
    }
  }

  /** Where all fails, as with a database that is away, one line tells it as well as hundreds. */
  #complain(message: string, fields: LogFields) {
    const now = this.#parts.clock.ticks()
    if (now - this.#complainedAt < SECOND) return
    this.#complainedAt = now
    this.#parts.log.error(message, fields)
  }

  async #close(): Promise<void> {
    const kinds = [...this.#kinds.values()]
    // The beat goes on meanwhile: what runs is to be kept until it ends.
    await Promise.all(kinds.map(({ kind }) => kind.stop()))
    await Promise.all(kinds.map(({ kind }) => kind.quiet()))
    this.#cancelBeat?.()
    await this.#supervising
    await this.#boss.stop({ graceful: false })
  }
}

/** Only what we use runs: no schedules, no flows, no statistics kept, no rebuilding of indexes. */
function optionsFor(url: string): ConstructorOptions {
  const options = {
    connectionString: url,
    application_name: 'ev queue',
    schema: SCHEMA,
    max: CONNECTIONS,
    useListenNotify: true,
    // We supervise ourselves: there, flows would be looked for as well.
    ...{ supervise: false, schedule: false, reindex: false, monitorVacuum: false },
    monitorIntervalSeconds: MONITOR_SECONDS,
    // What the pool of pg takes beyond what pg-boss names.
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    // The server may be frozen, or gone without a word: then it ends nothing by itself.
    query_timeout: STATEMENT_MS + 2 * SECOND,
    keepAlive: true,
  }
  return options
}

/** The entries of one kind, each a job of pg-boss. */
class BossEntries implements Entries {
  readonly #boss: PgBoss
  readonly #name: string
  readonly #channel: () => string
  #made: Promise<void> | null = null

  constructor(boss: PgBoss, name: string, channel: () => string) {
    this.#boss = boss
    this.#name = name
    this.#channel = channel
  }

  async put(wanted: readonly Wanted[]): Promise<void> {
    await this.#make()
    const texts = wanted.map(one => ({ ...one, key: textOf(one.key) }))
    for (let from = 0; from < texts.length; from += PUT_MAX) {
      await withoutConflict(() => this.#insert(texts.slice(from, from + PUT_MAX)))
    }
  }

  async take(max: number): Promise<Claim[]> {
    await this.#make()
    const jobs = await this.#boss.fetch<{ key: string }>(this.#name, { batchSize: max })
    return jobs.map(({ id, data, retryCount }) => ({
      ...{ id, key: keyOf(data.key), attempt: retryCount },
    }))
  }

  async end(ended: readonly Ended[]): Promise<ReadonlyMap<string, number | null>> {
    const first = await this.#end(ended)
    const rest = ended.filter(({ claim }) => !first.has(claim.id))
    return rest.length === 0 ? first : new Map([...first, ...(await this.#end(rest))])
  }

  async touch(claims: readonly Claim[]): Promise<ReadonlySet<string>> {
    const attempts = claims.map(({ id, attempt }) => ({ id, retryCount: attempt }))
    const answer = await this.#boss.touch(this.#name, attempts)
    // Its type leaves out what it has.
    return new Set((answer as { settled: string[] }).settled)
  }

  /** On first use; several processes may do it at once. */
  #make(): Promise<void> {
    this.#made ??= this.#boss.createQueue(this.#name, KIND).catch(error => {
      this.#made = null
      throw error
    })
    return this.#made
  }

  async #insert(wanted: readonly Wanted[]): Promise<void> {
    for (let left = wanted; left.length > 0; ) {
      const jobs = left.map(({ key, waitMs }) => ({
        ...{ singletonKey: key, data: { key } },
        ...(waitMs > 0 ? { startAfter: waitMs / 1_000 } : {}),
      }))
      const fresh = await this.#boss.insert(this.#name, jobs, { returnId: true })
      if (fresh?.length === left.length) return
      const there = await this.#makeSooner(left)
      // What is not there any more ended in between, and is put anew.
      left = left.filter(({ key }) => !there.has(key))
    }
  }

  async #makeSooner(wanted: readonly Wanted[]): Promise<Set<string>> {
    // All in one order, or two who put the same keys would wait for each other.
    const sorted = wanted.toSorted((a, b) => (a.key < b.key ? -1 : 1))
    const { rows } = await this.#boss
      .getDb()
      .executeSql(SOONER, [
        this.#name,
        sorted.map(({ key }) => key),
        sorted.map(({ waitMs }) => waitMs),
        this.#channel(),
      ])
    return new Set(rows.map(({ key }) => key))
  }

  #end(ended: readonly Ended[]): Promise<Map<string, number | null>> {
    const sorted = ended.toSorted((a, b) => (a.claim.id < b.claim.id ? -1 : 1))
    return withoutConflict(async () => {
      const { rows } = await this.#boss
        .getDb()
        .executeSql(END, [
          this.#name,
          sorted.map(({ claim }) => claim.id),
          sorted.map(({ claim }) => claim.attempt),
          sorted.map(({ waitMs }) => waitMs),
        ])
      return new Map(rows.map(({ id, wait }) => [id, wait]))
    })
  }
}

/** Two statements that wait for each other's rows: one of them is undone by the database, and may be run again. */
async function withoutConflict<T>(run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run()
    } catch (error) {
      const isConflict = error instanceof Error && 'code' in error && error.code === '40P01'
      if (!isConflict || tries === CONFLICTS_MAX) throw error
    }
  }
}

/** pg-boss takes letters, digits and a few marks in the name of a kind: others are written as their numbers. */
const nameOf = (kind: string) =>
  kind.replace(/[^A-Za-z0-9.\-/]/gu, mark => `_${mark.codePointAt(0)?.toString(16)}_`)

/** PostgreSQL takes no U+0000 and no half of a pair; JSON writes both in other characters. */
const textOf = (key: string) => JSON.stringify(key).slice(1, -1)
const keyOf = (text: string): string => JSON.parse(`"${text}"`)
