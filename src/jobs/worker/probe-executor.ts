import { ConnectionSemaphore } from '../../engine/probe/connection-semaphore.ts'
import type { Priority } from '../../platform/priority.ts'
import type { Lease, Reschedule } from '../../queue/queue.ts'
import type { ProbeWork } from '../probing/probe-claimed.ts'
import { probeItems, recheckSlot } from '../probing/probe-items.ts'
import type { Slot } from '../probing/probe-tasks.ts'
import type { WorkerMembership } from './worker-deps.ts'

type ProbeExecutorDeps = Omit<ProbeWork, 'lost' | 'holder'> & {
  readonly concurrency: number
  readonly cluster: WorkerMembership | null
  /** Lets requests go before probes; null if the process serves none. */
  readonly priority: Pick<Priority, 'startProbe'> | null
}

/** Runs sessions with operators, at most `concurrency` at a time over all egresses. */
export class ProbeExecutor {
  readonly #deps: ProbeExecutorDeps
  readonly #semaphore: ConnectionSemaphore
  /** Aborts when this member has expired or is about to; a new controller replaces it then. */
  #lost = new AbortController()
  /** The member ID of the last claims, and the one that has expired. */
  #holder: string | null = null
  #lostOwner: string | null = null
  readonly #unsubscribe: () => void

  constructor(deps: ProbeExecutorDeps) {
    this.#deps = deps
    this.#semaphore = new ConnectionSemaphore(deps.concurrency)
    const subscriptions = [
      deps.cluster?.onLost(() => this.#onLost()),
      deps.cluster?.onSilent(() => this.#abort()),
    ]
    this.#unsubscribe = () => {
      for (const unsubscribe of subscriptions) unsubscribe?.()
    }
  }

  /**
   * Runs one session for a slot and returns when the slot is due again. On a shared queue the task
   * is passed on after each session, which costs nothing measurable compared to the session.
   */
  async serve(slot: Slot, lease: Lease): Promise<Reschedule> {
    const { stopping, database, timings } = this.#deps
    const releaseSlot = await this.#semaphore.acquire()
    let endProbe: (() => void) | undefined
    try {
      endProbe = await this.#deps.priority?.startProbe()
      // The worker may have stopped while this waited for the semaphore.
      if (stopping.aborted || lease.lost.aborted) return { dueAt: database.steadyClock.now() }
      if (this.#isLost) return { dueAt: database.steadyClock.now() + timings.rejoinMs }
      return await this.#probe(slot, lease)
    } finally {
      endProbe?.()
      releaseSlot()
    }
  }

  /** Returns when a slot that is done is due again. */
  recheck(slot: Slot): Promise<Reschedule> {
    return recheckSlot(this.#deps, slot)
  }

  /** Removes the listeners of the membership. */
  end(): void {
    this.#unsubscribe()
  }

  #probe(slot: Slot, lease: Lease): Promise<Reschedule> {
    this.#holder = this.#deps.cluster?.id ?? null
    // Without a cluster, neither of the two aborts, and a combined signal is not free.
    const isShared = this.#deps.cluster !== null
    const lost = isShared ? AbortSignal.any([lease.lost, this.#lost.signal]) : lease.lost
    return probeItems({ ...this.#deps, lost, holder: this.#holder }, slot)
  }

  get #isLost(): boolean {
    return this.#lostOwner !== null && this.#deps.cluster?.id === this.#lostOwner
  }

  #onLost() {
    this.#lostOwner = this.#holder
    this.#abort()
  }

  #abort() {
    this.#lost.abort()
    this.#lost = new AbortController()
  }
}
