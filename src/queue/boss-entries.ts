import type { Claim, Ended, Entries, Fate, Wanted } from './entries.ts'
import { END, SOONER } from './statements.ts'

/** What is used of pg-boss here. */
export type Boss = {
  createQueue(name: string, options: object): Promise<void>
  insert(name: string, jobs: NewJob[], options: { returnId: true }): Promise<string[] | null>
  fetch<Data>(
    name: string,
    options: { batchSize: number },
  ): Promise<{ id: string; data: Data; retryCount: number }[]>
  touch(name: string, attempts: { id: string; retryCount: number }[]): Promise<object>
  getDb(): { executeSql(text: string, values: unknown[]): Promise<{ rows: Row[] }> }
}

type NewJob = { singletonKey: string; data: object; startAfter?: number }
// biome-ignore lint/suspicious/noExplicitAny: A row of whatever was asked.
type Row = any

export type BossEntriesParts = {
  readonly boss: Boss
  /** The kind, as pg-boss knows it. */
  readonly name: string
  readonly options: object
  /** What pg-boss tells about new entries by; empty while nobody listens. */
  readonly channel: () => string
}

/** Entries written by one statement. */
const PUT_MAX = 1_000
/** Transactions that stand in each other's way oftener than this do so for a reason. */
const CONFLICTS_MAX = 10

/** The entries of one kind, each a job of pg-boss. */
export class BossEntries implements Entries {
  readonly #boss: Boss
  readonly #name: string
  readonly #options: object
  readonly #channel: () => string
  #made: Promise<void> | null = null

  constructor({ boss, name, options, channel }: BossEntriesParts) {
    this.#boss = boss
    this.#name = name
    this.#options = options
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

  async end(ended: readonly Ended[]): Promise<readonly Fate[]> {
    const fates = await this.#end(ended)
    const rest = ended.filter(({ claim }) => !fates.has(nameOfClaim(claim)))
    if (rest.length > 0) for (const [name, fate] of await this.#end(rest)) fates.set(name, fate)
    return ended.map(({ claim }) => {
      const fate = fates.get(nameOfClaim(claim))
      return fate === undefined ? 'lost' : fate
    })
  }

  async touch(claims: readonly Claim[]): Promise<ReadonlySet<string>> {
    const attempts = claims.map(({ id, attempt }) => ({ id, retryCount: attempt }))
    const answer = await this.#boss.touch(this.#name, attempts)
    // Its type leaves out what it has.
    return new Set((answer as { settled: string[] }).settled)
  }

  /** On first use; several processes may do it at once. */
  #make(): Promise<void> {
    this.#made ??= this.#boss.createQueue(this.#name, this.#options).catch(error => {
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

  /** Of those whose claim held. */
  #end(ended: readonly Ended[]): Promise<Map<string, number | null>> {
    const sorted = ended
      .map((one, place) => ({ ...one, place }))
      .toSorted((a, b) => (a.claim.id < b.claim.id ? -1 : 1))
    return withoutConflict(async () => {
      const { rows } = await this.#boss
        .getDb()
        .executeSql(END, [
          this.#name,
          sorted.map(({ claim }) => claim.id),
          sorted.map(({ claim }) => claim.attempt),
          sorted.map(({ waitMs }) => waitMs),
          sorted.map(({ place }) => place),
        ])
      return new Map(rows.map(({ id, attempt, wait }) => [nameOfClaim({ id, attempt }), wait]))
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

const nameOfClaim = ({ id, attempt }: Omit<Claim, 'key'>) => `${id} ${attempt}`

/** pg-boss takes letters, digits and a few marks in the name of a kind: others are written as their numbers. */
export const nameOf = (kind: string) =>
  kind.replace(/[^A-Za-z0-9.\-/]/gu, mark => `_${mark.codePointAt(0)?.toString(16)}_`)

/** PostgreSQL takes no U+0000 and no half of a pair; JSON writes both in other characters. */
const textOf = (key: string) => JSON.stringify(key).slice(1, -1)
const keyOf = (text: string): string => JSON.parse(`"${text}"`)
