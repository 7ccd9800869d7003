import type { Clock } from '../../src/platform/clock.ts'
import type { Claim, TaskStore } from '../../src/queue/task-consumer.ts'

/** Time without renewal after which a claim expires. */
const HEARTBEAT_MS = 10_000

type Task = { readonly id: string; attempt: number; isActive: boolean; touchedAt: number }

/** Shared tasks in memory: the behavior of pg-boss on a fake clock. */
export class FakeTaskStore implements TaskStore {
  readonly #clock: Clock
  /** By key, oldest first. */
  readonly #tasks = new Map<string, Task>()
  #added = 0
  /** Calls in order. */
  readonly calls: string[] = []
  /** Error for every call. */
  fault: Error | null = null
  /** Calls wait for this promise once it is set. */
  gate: Promise<void> | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get keys(): string[] {
    return [...this.#tasks.keys()]
  }

  async add(keys: readonly string[]): Promise<void> {
    await this.#called(`add ${keys}`)
    for (const key of keys) {
      const fresh = { id: `${this.#added++}`, attempt: 0, isActive: false, touchedAt: 0 }
      if (!this.#tasks.has(key)) this.#tasks.set(key, fresh)
    }
  }

  async claim(max: number): Promise<Claim[]> {
    await this.#called('claim')
    const waiting = [...this.#tasks].filter(([, task]) => !task.isActive).slice(0, max)
    return waiting.map(([key, task]) => {
      task.isActive = true
      task.attempt++
      task.touchedAt = this.#clock.monotonicNow()
      return { key, id: task.id, attempt: task.attempt }
    })
  }

  async complete(claims: readonly Claim[]): Promise<void> {
    await this.#called(`complete ${claims.map(({ key }) => key)}`)
    for (const claim of claims) if (this.#held(claim) !== null) this.#tasks.delete(claim.key)
  }

  async touch(claims: readonly Claim[]): Promise<ReadonlySet<string>> {
    await this.#called('touch')
    const held = claims.filter(claim => this.#held(claim) !== null)
    for (const claim of held) (this.#held(claim) as Task).touchedAt = this.#clock.monotonicNow()
    return new Set(held.map(({ id }) => id))
  }

  /** Tasks with an expired claim wait again. */
  expire(): void {
    for (const task of this.#tasks.values()) {
      if (this.#clock.monotonicNow() - task.touchedAt > HEARTBEAT_MS) task.isActive = false
    }
  }

  /** Expires the claim of its worker. */
  takeAway(key: string): void {
    const task = this.#tasks.get(key)
    if (task === undefined) throw new Error(`${key} is not there`)
    task.isActive = false
  }

  #held({ key, id, attempt }: Claim): Task | null {
    const task = this.#tasks.get(key)
    return task?.isActive && task.id === id && task.attempt === attempt ? task : null
  }

  async #called(call: string): Promise<void> {
    this.calls.push(call)
    await this.gate
    if (this.fault !== null) throw this.fault
  }
}
