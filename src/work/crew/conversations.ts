import { SECOND } from '../../base/clock.ts'
import { Places } from '../../probe/places.ts'
import type { Lease, NextDue } from '../../queue/queue.ts'
import type { Slot } from '../probe/entries.ts'
import { type ProbeWork, probeItems } from '../probe/probe-items.ts'
import type { CrewMembership } from '../start-worker.ts'

/**
 * An entry of a shared queue costs a few ms from hand to hand, so a slot goes on with it for so long while there is
 * room for others; where all places are taken others may wait, and it does so for the shorter time.
 */
const SERIES_MS = 10 * SECOND
const CROWDED_MS = SECOND
/** More connections are not opened in a row, however short they are. */
const SERIES_MAX = 50
/** Until we are a member again. */
const REJOIN_MS = SECOND / 2

export type ConversationParts = Omit<ProbeWork, 'lost' | 'holder'> & {
  readonly concurrency: number
  readonly cluster: CrewMembership | null
}

/** Conversations with operators, so many at the same time over all egresses. */
export class Conversations {
  readonly #parts: ConversationParts
  readonly #places: Places
  #running = 0
  /** Aborts when the others took us for dead; then there is another. */
  #lost = new AbortController()
  /** The member under which items were claimed last, and the one that is lost. */
  #holder: string | null = null
  #lostHolder: string | null = null
  readonly #forget: () => void

  constructor(parts: ConversationParts) {
    this.#parts = parts
    this.#places = new Places(parts.concurrency)
    this.#forget = parts.cluster?.onLost(() => this.#lose()) ?? (() => {})
  }

  /** Serves one slot for a while; gives when it is due again. */
  async serve(slot: Slot, lease: Lease): Promise<NextDue> {
    const handBack = await this.#places.take()
    this.#running++
    try {
      return await this.#series(slot, lease)
    } finally {
      this.#running--
      handBack()
    }
  }

  /** Nobody tells us of a loss any more. */
  end(): void {
    this.#forget()
  }

  async #series(slot: Slot, lease: Lease): Promise<NextDue> {
    const { clock } = this.#parts.database
    const { stopping, cluster } = this.#parts
    const begunAt = clock.ticks()
    for (let number = 1; ; number++) {
      // It may have waited for its place until now.
      if (stopping.aborted || lease.lost.aborted) return { dueAt: clock.now() }
      if (this.#isLost) return { dueAt: clock.now() + REJOIN_MS }
      const next = await this.#converse(slot, lease)
      if (cluster === null || next === 'done' || next.dueAt > clock.now()) return next
      const limitMs = this.#running < this.#parts.concurrency ? SERIES_MS : CROWDED_MS
      if (number === SERIES_MAX || clock.ticks() - begunAt >= limitMs) return next
    }
  }

  #converse(slot: Slot, lease: Lease): Promise<NextDue> {
    this.#holder = this.#parts.cluster?.id ?? null
    const lost = AbortSignal.any([lease.lost, this.#lost.signal])
    return probeItems({ ...this.#parts, lost, holder: this.#holder }, slot)
  }

  get #isLost(): boolean {
    return this.#lostHolder !== null && this.#parts.cluster?.id === this.#lostHolder
  }

  #lose() {
    this.#lostHolder = this.#holder
    this.#lost.abort()
    this.#lost = new AbortController()
  }
}
