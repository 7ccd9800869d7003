import type { PgBoss, Queue as QueueOptions } from 'pg-boss'
import type { Claim, TaskStore } from './task-store.ts'

/** Tasks added by one statement. */
const ADD_MAX = 1_000

/** The tasks of one kind as jobs of pg-boss: one call of its API each. */
export class BossTasks implements TaskStore {
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
export const queueName = (kind: string) =>
  kind.replace(/[^A-Za-z0-9.\-/]/gu, mark => `_${mark.codePointAt(0)?.toString(16)}_`)

/** PostgreSQL takes no U+0000 and no half of a surrogate pair; JSON escapes both. */
const toText = (key: string) => JSON.stringify(key).slice(1, -1)
const fromText = (text: string): string => JSON.parse(`"${text}"`)
