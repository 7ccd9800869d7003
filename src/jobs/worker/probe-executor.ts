import { ConnectionSemaphore } from '../../engine/probe/connection-semaphore.ts'
import type { Priority } from '../../platform/priority.ts'
import type { Lease, Reschedule } from '../../queue/queue.ts'
import { probeItems, recheckSlot } from '../probing/probe-items.ts'
import { type ProbeWork } from '../probing/probe-claimed.ts'
import type { Slot } from '../probing/probe-tasks.ts'
import type { WorkerMembership } from './worker-deps.ts'

export type ProbeExecutorDeps = Omit<ProbeWork, 'lost' | 'holder'> & {
  readonly concurrency: number
  readonly cluster: WorkerMembership | null
  /** Requests that go first; null: there are none. */
  readonly priority: Pick<Priority, 'startProbe'> | null
}

/** Conversations with operators, so many at the same time over all egresses. */
export class ProbeExecutor {
  readonly #deps: ProbeExecutorDeps
  readonly #places: ConnectionSemaphore
  /** Aborts when the others took us for dead, or are about to; then there is another. */
  #lost = new AbortController()
  /** The member under which items were claimed last, and the one that is lost. */
  #holder: string | null = null
  #lostOwner: string | null = null
  readonly #forget: () => void

  constructor(deps: ProbeExecutorDeps) {
    this.#deps = deps
    this.#places = new ConnectionSemaphore(deps.concurrency)
    const forget = [
      deps.cluster?.onLost(() => this.#lose()),
      deps.cluster?.onSilent(() => this.#abort()),
    ]
    this.#forget = () => {
      for (const end of forget) end?.()
    }
  }

  /**
   * One conversation for a slot; gives when it is due again. On a shared queue its entry goes from hand to hand for each,
   * which was measured to cost nothing beside what a conversation takes.
   */
  async serve(slot: Slot, lease: Lease): Promise<Reschedule> {
    const { stopping, database, timings } = this.#deps
    const handBack = await this.#places.take()
    const endProbe = await this.#deps.priority?.startProbe()
    try {
      // It may have waited for its place until now.
      if (stopping.aborted || lease.lost.aborted) return { dueAt: database.clock.now() }
      if (this.#isLost) return { dueAt: database.clock.now() + timings.rejoinMs }
      return await this.#converse(slot, lease)
    } finally {
      endProbe?.()
      handBack()
    }
  }

  /** When a slot is due again that was given up. */
  recheck(slot: Slot): Promise<Reschedule> {
    return recheckSlot(this.#deps, slot)
  }

  /** Nobody tells us of a loss any more. */
  end(): void {
    this.#forget()
  }

  #converse(slot: Slot, lease: Lease): Promise<Reschedule> {
    this.#holder = this.#deps.cluster?.id ?? null
    const lost = AbortSignal.any([lease.lost, this.#lost.signal])
    return probeItems({ ...this.#deps, lost, holder: this.#holder }, slot)
  }

  get #isLost(): boolean {
    return this.#lostOwner !== null && this.#deps.cluster?.id === this.#lostOwner
  }

  #lose() {
    this.#lostOwner = this.#holder
    this.#abort()
  }

  #abort() {
    this.#lost.abort()
    this.#lost = new AbortController()
  }
}
