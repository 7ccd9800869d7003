import { type Clock, DAY, HOUR, MINUTE } from '../base/clock.ts'
import { TtlMap } from '../base/ttl-map.ts'
import type { Probed } from '../probe/lane/lane.ts'

/** What a mail server said of an address, kept for a while. */
export type Remembered = {
  readonly probed: Omit<Probed, 'dialogue' | 'egress'> & Partial<Pick<Probed, 'egress'>>
  /** Wall-clock time of the answer, epoch ms. */
  readonly at: number
}

/** Where definite answers are remembered: in this process by default, in the database for lists. */
export interface ResultMemory {
  recall(keys: readonly string[]): Promise<ReadonlyMap<string, Remembered>>
  remember(entries: ReadonlyMap<string, Remembered>): Promise<void>
}

/** How long an answer counts as fresh, and how long it is kept at all, to stand in when asking again fails. */
type Keep = { readonly freshMs: number; readonly keepMs: number }

const ACCEPTED: Keep = { freshMs: DAY, keepMs: 7 * DAY }
/** The catch-all test came to nothing, perhaps for the moment: it is worth another question soon. */
const UNDECIDED: Keep = { freshMs: 10 * MINUTE, keepMs: 7 * DAY }
const REJECTED: Keep = { freshMs: 6 * HOUR, keepMs: 6 * HOUR }

/** Null for what must not be remembered: 4xx, silence, garbage and refusals of us say nothing of the address. */
export function keepFor(probed: Pick<Probed, 'answer' | 'catchAll'>): Keep | null {
  if (probed.answer.kind === 'accepted') return probed.catchAll === null ? UNDECIDED : ACCEPTED
  return probed.answer.kind === 'rejected' ? REJECTED : null
}

export function isFresh({ probed, at }: Remembered, now: number): boolean {
  const keep = keepFor(probed)
  // A clock that was set back makes an entry from the future: better to ask again.
  return keep !== null && now >= at && now - at < keep.freshMs
}

/** Whether an answer may still stand in when asking again fails, or while it is asked again. */
export function isKept({ probed, at }: Remembered, now: number): boolean {
  const keep = keepFor(probed)
  return keep !== null && now - at < keep.keepMs
}

/** What may be kept of an answer: the facts, not the words of one conversation. */
export function memorable({ dialogue: _, ...probed }: Probed, now: number): Remembered | null {
  return keepFor(probed) === null ? null : { probed, at: now }
}

export const noMemory: ResultMemory = {
  recall: async () => new Map(),
  remember: async () => {},
}

/** About 1 KB each. */
const ADDRESSES_MAX = 20_000

/** Remembers in this process, bounded. */
export function processMemory(clock: Clock): ResultMemory {
  const known = new TtlMap<Remembered>({ sizeMax: ADDRESSES_MAX, clock })
  return {
    async recall(keys) {
      const found = new Map<string, Remembered>()
      for (const key of keys) {
        const remembered = known.get(key)
        if (remembered !== undefined) found.set(key, remembered)
      }
      return found
    },
    async remember(entries) {
      for (const [key, remembered] of entries) {
        const keep = keepFor(remembered.probed)
        if (keep !== null) known.set(key, remembered, keep.keepMs)
      }
    },
  }
}
